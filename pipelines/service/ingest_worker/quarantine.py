"""Decide what happens to a sealed shard that an update left out.

The service has already accepted the documents of such a shard. So the shard is refused only if its
content is unreadable. It is set aside if the store has no room for it, or if the tokeniser fails on
a document. Any other failure makes the cycle of the accumulator fail, and the next cycle tries
again to count the shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from streaming_moments.errors import KillsWorkers, NoRoom, ShardError, StoreError
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.ingest_worker.counted import (
    Counted,
    note_counted,
    note_reached,
    read_counted,
)
from streaming_moments.storage.counting.tokenisers.base import TokeniserFailed, TokeniserMissing
from streaming_moments.storage.inbox.deletions import documents_left, is_as_noted
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import Seal, SealedShard, seal_of_shard
from streaming_moments.storage.inbox.set_aside import (
    all_set_aside,
    forget_set_aside,
    is_due,
    set_aside,
)
from streaming_moments.storage.shards import as_shard
from streaming_moments.storage.store.store import MomentStore

_RETRIED = 100  # a cycle tries to count at most this many set-aside shards again
Reasons: TypeAlias = tuple[tuple[str, str], ...]


class _Unforeseen(ShardError):
    """Reading a shard failed unexpectedly, or the tokeniser failed on a document.

    A shard has documents of several users, so it is not refused. It is set aside until the reader
    or the tokeniser works.
    """


@dataclass(frozen=True)
class Outcomes:
    """Reasons why an update left out shards, by their paths.

    refused : content that no one can read
    aside : readable content that the store cannot count now
    failing : other faults; the next cycle tries again to count these shards
    """

    refused: dict[str, str]
    aside: dict[str, str]
    failing: dict[str, str]

    def named(self, inbox: Inbox) -> tuple[Reasons, Reasons]:
        """Return (URL, reason) of each refused shard, and of each set-aside shard."""
        return _named(inbox, self.refused), _named(inbox, self.aside)

    def require_none_failing(self, inbox: Inbox) -> None:
        """Raise StoreError if a readable shard was not counted, so that the cycle fails."""
        for path, reason in self.failing.items():
            raise StoreError(
                f"{inbox.folder.shard(path)} was not counted ({reason}), although it is "
                "readable. The next cycle tries again; if that fails, too, check workers and "
                "storage"
            )


def _named(inbox: Inbox, several: Mapping[str, str]) -> Reasons:
    return tuple((inbox.folder.shard(path), reason) for path, reason in several.items())


def fails_alone(
    store: MomentStore, inbox: Inbox, shard: SealedShard, run: Run
) -> ShardError | None:
    """Return why no process can count the content of a shard; None if the shard is readable.

    Fetches the shard, and reads it from the memory of this process, so that no storage can fail
    during the reading. Raises StoreError if the shard cannot be fetched or was changed after it was
    sealed, or if this process lacks the tokeniser of the store.
    """
    url, content = inbox.folder.shard(shard.path), inbox.folder.read(shard.path)
    if not is_as_noted(inbox.folder, shard, hashlib.sha256(content).hexdigest()):
        raise StoreError(f"{url} has changed since it was sealed; restore it from a backup")
    try:
        with as_shard(content) as lines:
            for _ in ReadingContext.of(store, run.limits, None).prepared(lines):
                pass
    except TokeniserMissing:
        raise
    except ShardError as error:
        kind = _Unforeseen if isinstance(error.__cause__, TokeniserFailed) else ShardError
        return kind(url, error.reason)
    # Catch any other error of a reader. Otherwise this shard would make every cycle fail.
    except Exception as error:
        return _Unforeseen(url, f"{type(error).__name__}: {error}")
    return None


def outcomes(
    store: MomentStore,
    inbox: Inbox,
    shards: Sequence[SealedShard],
    bad: Sequence[ShardError],
    run: Run,
) -> Outcomes:
    """Find out why an update left out shards; raises what `fails_alone` raises.

    `shards` are all shards of the update, and `bad` has the errors of the left-out shards. The
    limits of `run` apply.
    """
    errors, found = {error.url: error for error in bad}, Outcomes({}, {}, {})
    for shard in shards:
        error = errors.get(inbox.folder.shard(shard.path))
        if error is None:
            continue
        alone = fails_alone(store, inbox, shard, run)
        if isinstance(error, NoRoom | KillsWorkers):
            found.aside[shard.path] = error.reason
        elif alone is None:
            found.failing[shard.path] = error.reason
        elif isinstance(alone, _Unforeseen):
            found.aside[shard.path] = alone.reason
        else:
            found.refused[shard.path] = error.reason
    return found


def due_again(log: SealLog) -> tuple[SealedShard, ...]:
    """Return the set-aside shards that are due to be counted again.

    Deletes the notes about shards that no longer exist.
    """
    folder, due = log.inbox.folder, list[SealedShard]()
    for note in all_set_aside(folder):
        if len(due) == _RETRIED:
            break
        if not is_due(folder, note):
            continue
        number = seal_of_shard(note.path)
        kept = log.read_anew(number).shards if number > log.expired() else ()
        found = [shard for shard in kept if shard.path == note.path]
        if found and is_there(log.inbox, found[0]):
            due += found
        else:
            forget_set_aside(folder, note.path)
    return tuple(due)


def is_there(inbox: Inbox, shard: SealedShard) -> bool:
    """Whether a shard has anything to count; False if all its documents were deleted."""
    return documents_left(inbox.folder, shard) > 0


def note_outcomes(
    log: SealLog, seals: Sequence[Seal], again: Sequence[SealedShard], found: Outcomes, version: int
) -> None:
    """Note what an update did with the shards of `seals`, and with the set-aside shards `again`.

    The first seal with a failing shard, and all later seals, get no note. So the next cycle counts
    again from that first seal on.
    """
    inbox = log.inbox
    for shard in (*again, *(shard for one in seals for shard in one.shards)):
        if shard.path in found.aside:
            set_aside(inbox.folder, shard.path, shard.documents, found.aside[shard.path])
    for shard in again:
        if shard.path in found.aside or shard.path in found.failing:
            continue
        number = seal_of_shard(shard.path)
        noted = read_counted(inbox, number)
        left = {path: why for path, why in noted.left_out.items() if path != shard.path}
        left |= {path: why for path, why in found.refused.items() if path == shard.path}
        note_counted(inbox, number, Counted(version, left))
        forget_set_aside(inbox.folder, shard.path)
    for one in seals:
        paths = [shard.path for shard in one.shards]
        if any(path in found.failing for path in paths):
            return
        told = {path: found.refused[path] for path in paths if path in found.refused}
        note_counted(inbox, one.number, Counted(version, told))
        note_reached(inbox, one.number)


def refuse(log: SealLog, path: str) -> None:
    """Refuse the documents of a set-aside shard, so that they are never tried again.

    The caller holds the lock of the store.
    """
    folder, number = log.inbox.folder, seal_of_shard(path)
    reasons = {note.path: note.reason for note in all_set_aside(folder)}
    noted = read_counted(log.inbox, number)
    told = {**noted.left_out, path: f"{reasons[path]} (refused by an admin)"}
    note_counted(log.inbox, number, replace(noted, left_out=told))
    forget_set_aside(folder, path)
