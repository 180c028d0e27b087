"""Exit codes of the commands, as docs/reference/exit_codes.md lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Outcome of a command."""

    DONE = 0
    FAULT = 1  # a bug of this package
    INPUT = 2  # wrong input, or a damaged store
    BAD_SHARDS = 3
    UNFINISHED = 4  # a purge is committed but not finished; the same command finishes it
    NOTHING_NEW = 10  # a nightly job found no new shards
    REJECTED = 11  # a gate of a nightly job rejected the model
    INTERRUPTED = 130
