"""Staleness: what was counted and forgotten since a model was fitted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.ledger import Ledger, read_ledger
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

# commits whose segments hold the documents of others
_OTHER_SEGMENTS = frozenset({"compact", "rebase", "purge"})


@dataclass(frozen=True)
class Staleness:
    """How far a model is behind what its store counts now.

    `counted` and `forgotten` are documents added and subtracted since `version`, net for each
    shard, or None where versions since are no longer stored. Both include all documents of a shard
    whose content changed but not its number of documents.
    """

    model: str
    version: int
    counted: int | None
    forgotten: int | None

    @property
    def is_stale(self) -> bool:
        """Whether anything was, or that cannot be told."""
        return self.counted is None or bool(self.counted or self.forgotten)


def staleness(store: MomentStore, model: str | None = None) -> Staleness:
    """Compare what a version counts with what the statistics of a model of it had.

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
    counted, forgotten = _tallied(commits)
    if counted and forgotten:  # of which some may be of the same shards
        first = commits[-1]
        fitted = read_ledger(store.folder, first.segments, store.ledger(), first.sums)
        counted, forgotten = _net(fitted, store.ledger())
    return Staleness(name, version, counted, forgotten)


def forgotten_since(store: MomentStore, model: str | None = None) -> int | None:
    """Documents subtracted since a model was fitted, those among them that came since as well.

    None if versions since were expired; arguments and errors as of `staleness`.
    """
    name = model_called(store.commit, model)
    commits = _commits_since(store, store.models[name].version)
    return None if commits is None else _tallied(commits)[1]


def _commits_since(store: MomentStore, version: int) -> tuple[Commit, ...] | None:
    """All commits from a version on, the latest first; None if one was expired."""
    commits = store.log(version)
    return None if len(commits) <= store.version - version else tuple(commits)


def _tallied(commits: tuple[Commit, ...]) -> tuple[int, int]:
    """Documents that commits count, and take away, each by itself."""
    # a rollback has the segments of a version before it
    tallies = {frozenset(_segments(commits[-1])): (0, 0)}
    counted = forgotten = 0
    for after, before in reversed([*pairwise(commits)]):
        more, less = _changed(before, after)
        told = counted + more, forgotten + less
        counted, forgotten = tallies.setdefault(frozenset(_segments(after)), told)
    return counted, forgotten


def _net(before: Ledger, after: Ledger) -> tuple[int, int]:
    """Documents that one ledger has more than another, and fewer, by shard."""
    old, new = ({one.url: one for one in ledger} for ledger in (before, after))
    counted = forgotten = 0
    for url in old.keys() | new.keys():
        one, other = old.get(url), new.get(url)
        more = (other.documents if other else 0) - (one.documents if one else 0)
        counted, forgotten = counted + max(more, 0), forgotten + max(-more, 0)
        if one and other and not more and one.fingerprint != other.fingerprint:
            counted, forgotten = counted + one.documents, forgotten + one.documents
    return counted, forgotten


def _changed(before: Commit, after: Commit) -> tuple[int, int]:
    """Documents that a commit counts, and takes away."""
    old, new = _segments(before), _segments(after)
    moves = [new[one] for one in new.keys() - old.keys()]
    moves += [-old[one] for one in old.keys() - new.keys()]
    if after.operation in _OTHER_SEGMENTS:
        moves = [after.documents - before.documents]
    counted = sum(max(move, 0) for move in moves)
    return counted, counted - sum(moves)


def _segments(commit: Commit) -> dict[tuple[str, int], int]:
    """Documents of each, negative if they are subtracted."""
    return {(part.id, part.sign): part.sign * part.documents for part in commit.segments}
