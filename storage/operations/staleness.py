"""Staleness: the numbers of documents counted and forgotten after a model was fitted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, read_ledger
from streaming_moments.storage.log.origins import MERGE
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

# operations of the log whose new segments only count documents that were counted before
_OTHER_SEGMENTS = frozenset({"compact", "rename", "rebase", "purge"})


@dataclass(frozen=True)
class Staleness:
    """How far a model is behind the present counts of its store.

    `counted` and `forgotten` are numbers of documents that were added and subtracted after
    `version`. A shard that was subtracted and added again is in neither. If the content of a shard
    changed, but not its number of documents, both numbers include all its documents. Both have the
    value None if versions after `version` are no longer stored.
    """

    model: str
    version: int
    counted: int | None
    forgotten: int | None

    @property
    def is_stale(self) -> bool:
        """Whether documents were counted or forgotten since the fit; True if that is unknown."""
        return self.counted is None or bool(self.counted or self.forgotten)


def staleness(store: MomentStore, model: str | None = None) -> Staleness:
    """Compare the documents of a version with the documents that a model was fitted to.

    `model` is a name or tag, by default the latest.

    Examples
    --------
    >>> Staleness("m", 3, counted=0, forgotten=20).is_stale
    True
    """
    name = model_called(store.commit, model)
    version = store.models[name].version
    commits = _commits_since(store, version)
    if commits is None:
        return Staleness(name, version, None, None)
    counted, forgotten = _tallied(store, commits)
    # compare the ledgers shard by shard: a shard that was forgotten and counted again is in neither
    # number
    if counted and forgotten:
        first = commits[-1]
        fitted = read_ledger(store.folder, first.segments, store.ledger(), first.sums)
        counted, forgotten = _net(fitted, store.ledger())
    return Staleness(name, version, counted, forgotten)


def forgotten_since(store: MomentStore, model: str | None = None) -> int | None:
    """Return the number of documents that were subtracted after a model was fitted.

    Documents that were added again later are included. Returns None if versions after the fit have
    expired. Arguments and errors are those of `staleness`.
    """
    name = model_called(store.commit, model)
    commits = _commits_since(store, store.models[name].version)
    return None if commits is None else _tallied(store, commits)[1]


def _commits_since(store: MomentStore, version: int) -> tuple[Commit, ...] | None:
    """Return all commits from a version on, the latest first; None if one has expired."""
    commits = store.log(version)
    return None if len(commits) <= store.version - version else tuple(commits)


def _tallied(store: MomentStore, commits: tuple[Commit, ...]) -> tuple[int, int]:
    """Return the numbers of documents that commits add and subtract, summed over the commits."""
    # for each set of segments, remember the totals up to its version: a rollback may restore the
    # segments of an earlier version, and then the totals go back, too
    tallies = {frozenset(_segments(commits[-1])): (0, 0)}
    counted = forgotten = 0
    for after, before in reversed([*pairwise(commits)]):
        more, less = _changed(store, before, after)
        told = counted + more, forgotten + less
        counted, forgotten = tallies.setdefault(frozenset(_segments(after)), told)
    return counted, forgotten


def _net(before: Ledger, after: Ledger) -> tuple[int, int]:
    """Compare two ledgers shard by shard; return the numbers of added and of removed documents.

    A shard that has the same content under another name counts as renamed, not as added or removed.
    """
    old, new = ({one.url: one for one in ledger} for ledger in (before, after))
    counted = forgotten = 0
    for url in old.keys() & new.keys():
        one, other = old[url], new[url]
        more = other.documents - one.documents
        counted, forgotten = counted + max(more, 0), forgotten + max(-more, 0)
        if not more and one.fingerprint != other.fingerprint:
            counted, forgotten = counted + one.documents, forgotten + one.documents
    gone = Counter(old[url].unnamed for url in old.keys() - new.keys())
    came = Counter(new[url].unnamed for url in new.keys() - old.keys())
    return counted + _documents(came - gone), forgotten + _documents(gone - came)


def _documents(shards: Counter[ShardRecord]) -> int:
    return sum(one.documents * number for one, number in shards.items())


def _changed(store: MomentStore, before: Commit, after: Commit) -> tuple[int, int]:
    """Return the numbers of documents that `after` adds to `before`, and subtracts from it."""
    old, new = _segments(before), _segments(after)
    moves = [new[one] for one in new.keys() - old.keys()]
    moves += [-old[one] for one in old.keys() - new.keys()]
    if after.operation == MERGE and old.keys() - new.keys():
        # compare shards, because the new segments of an origin may count the same documents as the
        # segments that they replace
        ledgers = [
            read_ledger(store.folder, one.segments, store.ledger()) for one in (before, after)
        ]
        return _net(*ledgers)
    if after.operation in _OTHER_SEGMENTS:
        moves = [after.documents - before.documents]
    counted = sum(max(move, 0) for move in moves)
    return counted, counted - sum(moves)


def _segments(commit: Commit) -> dict[tuple[str, int], int]:
    """Return the number of documents of each segment, negative if it subtracts them."""
    return {(part.id, part.sign): part.sign * part.documents for part in commit.segments}
