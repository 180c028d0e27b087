"""Refusing: what becomes of a sealed shard that an update left out.

What was acknowledged is in it. It is refused only for what it holds, and set aside where the store
has no room for it; whatever failed around it fails the turn, and the next turn counts it.
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

_RETRIED = 100  # shards of a turn
Reasons: TypeAlias = tuple[tuple[str, str], ...]


class _Unforeseen(ShardError):
    """A shard fails in a way that no reader foresees."""


@dataclass(frozen=True)
class Outcomes:
    """Why an update left out shards, by their paths.

    refused : no one can read what they hold
    aside : they can be read, but not counted in the store as it is
    failing : a fault around them; the next cycle counts them
    """

    refused: dict[str, str]
    aside: dict[str, str]
    failing: dict[str, str]

    def named(self, inbox: Inbox) -> tuple[Reasons, Reasons]:
        """Shards that are refused, and that are set aside, by URL with the reason."""
        return _named(inbox, self.refused), _named(inbox, self.aside)

    def require_none_failing(self, inbox: Inbox) -> None:
        """Raise StoreError where something failed around a shard: the turn fails."""
        for path, reason in self.failing.items():
            raise StoreError(
                f"{inbox.folder.shard(path)} was not counted ({reason}), though it can be read; "
                "the next cycle tries again; if that fails too, check workers and storage"
            )


def _named(inbox: Inbox, several: Mapping[str, str]) -> Reasons:
    return tuple((inbox.folder.shard(path), reason) for path, reason in several.items())


def fails_alone(
    store: MomentStore, inbox: Inbox, shard: SealedShard, run: Run
) -> ShardError | None:
    """Return why no one can count the content of a shard; None where it can be read.

    It is fetched, and then read from the memory of this process, so that no storage fails
    meanwhile. A shard that cannot be fetched, or is not as it was sealed, raises a StoreError.
    """
    url, content = inbox.folder.shard(shard.path), inbox.folder.read(shard.path)
    if not is_as_noted(inbox.folder, shard, hashlib.sha256(content).hexdigest()):
        raise StoreError(f"{url} has changed since it was sealed; restore it from a backup")
    try:
        with as_shard(content) as lines:
            for _ in ReadingContext.of(store, run.limits, None).prepared(lines):
                pass
    except ShardError as error:
        return ShardError(url, error.reason)
    except Exception as error:  # of a reader: it would end every turn
        return _Unforeseen(url, f"{type(error).__name__}: {error}")
    return None


def outcomes(
    store: MomentStore,
    inbox: Inbox,
    shards: Sequence[SealedShard],
    bad: Sequence[ShardError],
    run: Run,
) -> Outcomes:
    """Judge the shards that an update left out; errors as of `fails_alone`.

    `shards` are all that the update was given, and `bad` why it left some out. The limits of `run`
    hold.
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
    """Shards that are set aside and to be counted again; notes of deleted ones are deleted."""
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
    """Whether there is anything to count; False where all documents of it were deleted."""
    return documents_left(inbox.folder, shard) > 0


def note_outcomes(
    log: SealLog, seals: Sequence[Seal], again: Sequence[SealedShard], found: Outcomes, version: int
) -> None:
    """Note the outcomes of shards of seals, and of shards that were counted again.

    The first seal with a failed shard and all later ones get no note: the next cycle begins there.
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
    """Refuse the documents of a set-aside shard for good; the caller holds the store's lock."""
    folder, number = log.inbox.folder, seal_of_shard(path)
    reasons = {note.path: note.reason for note in all_set_aside(folder)}
    noted = read_counted(log.inbox, number)
    told = {**noted.left_out, path: f"{reasons[path]} (refused by an admin)"}
    note_counted(log.inbox, number, replace(noted, left_out=told))
    forget_set_aside(folder, path)
