"""Exit codes of the commands, as docs/reference/exit_codes.md lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Outcome of a command."""

    DONE = 0
    FAULT = 1  # a fault of the package
    INPUT = 2  # wrong input, or a damaged store
    BAD_SHARDS = 3
    UNFINISHED = 4  # part of it is committed, and the same command finishes it
    NOTHING_NEW = 10  # in a nightly run
    REJECTED = 11  # by a gate of a nightly run
    INTERRUPTED = 130
