"""Results of the steps of an accumulator, and their lines in the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from streaming_moments.pipelines.service.ingest_worker.selecting import Compared
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.inbox.expiry import Expired


@dataclass(frozen=True)
class Turn:
    """The result of a cycle.

    sealed, counted : numbers of sealed and counted documents
    version : version of the store after the cycle; None if nothing was to be counted
    left_out : refused shards, which no one can read, with the reason
    set_aside : readable shards that cannot be counted now, with the reason
    forgotten : number of deleted documents
    failed : steps that failed, with the reason; all other steps are done
    """

    sealed: int = 0
    counted: int = 0
    version: int | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    set_aside: tuple[tuple[str, str], ...] = ()
    forgotten: int = 0
    failed: tuple[tuple[str, Exception], ...] = ()


Done: TypeAlias = Turn | Expired | Compared | str


def lines_of(found: Done) -> Iterator[str]:
    """Yield the lines of the log about what a step did."""
    if isinstance(found, Turn):
        if found.failed and found == Turn(failed=found.failed):
            return  # nothing was done, and the failed steps were already reported
        version = "" if found.version is None else f", version {found.version}"
        gone = f", forgotten {found.forgotten}" if found.forgotten else ""
        yield f"sealed {found.sealed}, counted {found.counted}{gone}{version}"
    elif isinstance(found, Expired):
        if found:
            yield (
                f"expired: {of_number(found.shards, 'shard')}, {of_number(found.seals, 'seal')}, "
                f"{of_number(found.claims, 'key')}"
            )
    elif isinstance(found, Compared):
        yield f"compared numbers of topics of version {found.version}"
    else:
        yield f"night: {found}"


def warnings_of(found: Done) -> Iterator[str]:
    """Yield the lines of the log about documents that a step could not count."""
    if isinstance(found, Turn):
        for url, reason in found.left_out:
            yield f"left out {url}: {reason}"
        for url, reason in found.set_aside:
            yield f"set aside {url}: {reason}"
