"""Exit codes of the commands, as the README lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    FAULT = 1  # ours
    INPUT = 2  # wrong input, or a store that is unsound
    BAD_SHARDS = 3
    UNFINISHED = 4  # part of it is committed: the same command finishes it
    NOTHING_NEW = 10  # in a nightly run
    REFUSED = 11  # by a gate of a nightly run
    INTERRUPTED = 130
