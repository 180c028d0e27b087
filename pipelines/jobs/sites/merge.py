"""Merge: takes over what other stores hold, each as an origin, without their documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.merging.pulling import Pull, change_text, pull
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class MergeResult:
    """Result of a merge: the store at its latest version, and what was pulled of each origin."""

    store: MomentStore
    pulls: tuple[Pull, ...]


def merge(
    store: MomentStore,
    others: Sequence[str],
    run: Run,
    name: str | None = None,
    unique: bool = False,
    least_documents: int = 0,
    message: str = "",
    compact_after: int = COMPACT_AFTER,
    include_forgotten: bool = False,
) -> MergeResult:
    """Add what other stores on the same foundation hold; a commit for each that has changed.

    The sum is bit for bit that of one store that counted all their shards. Their documents are not
    read. A later call takes only what has changed since, and may follow one that was interrupted.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    others : sequence of str
        URLs of the other stores, which are only read.
    run : Run
        Cluster for merging segments, and options.
    name, unique, least_documents, message, include_forgotten
        As in `storage.merging.pull`; a name needs a single other store.
    compact_after : int
        As in `compact_when_many`. Segments of origins stay beside their sums.

    Raises
    ------
    ForeignStatistics, StoreError
        As in `storage.merging.pull`. Stores before it are merged.
    InvalidInput
        As there. The other stores are merged.
    """
    if name is not None and len(others) != 1:
        raise InvalidInput(
            f"a name is for a single origin, and there are {len(others)} stores",
            "merge them one by one, each with {merge.as}",
        )
    pulls = []

    def take(hub: MomentStore, url: str) -> MomentStore:
        other = MomentStore.open(url, storage_options=run.storage_options, whole=False)
        found = pull(hub, other, name, unique, least_documents, message, include_forgotten)
        pulls.append(found)
        run.tell(pull_line(found))
        return found.store

    store = in_turn(store, others, take)
    return MergeResult(compact_when_many(store, compact_after, run), tuple(pulls))


def in_turn(
    store: MomentStore, others: Sequence[str], take: Callable[[MomentStore, str], MomentStore]
) -> MomentStore:
    """Call `take` for each other store; those that it refuses come again after the others.

    So a shard may move from a store to an earlier one. Raises the first InvalidInput when a round
    refuses all that are left.
    """
    waiting = list(others)
    while waiting:
        refused: list[tuple[str, InvalidInput]] = []
        for url in waiting:
            try:
                store = take(store, url)
            except InvalidInput as error:
                refused.append((url, error))
        if len(refused) == len(waiting):
            raise refused[0][1]
        waiting = [url for url, _ in refused]
    return store


def pull_line(found: Pull) -> str:
    """Describe a pull.

    Examples
    --------
    >>> from streaming_moments.storage.log.commits import Origin
    >>> origin = Origin("0" * 32, "s3://berlin/store", 7, "2026-11-26T00:00:00+00:00")
    >>> pull_line(Pull(None, "berlin", origin, 1200, 200, added=1))
    'berlin at version 7: 200 documents more, 1,200 in all; 1 segment copied, 0 dropped'
    >>> pull_line(Pull(None, "berlin", origin, 1200))
    'berlin at version 7: nothing has changed, 1,200 documents'
    """
    told = f"{found.name} at version {found.origin.version}:"
    number = of_number(found.documents, "document")
    if not found.added and not found.removed and not found.change:
        return f"{told} nothing has changed, {number}"
    parts = [f"{of_number(found.added, 'segment')} copied, {found.removed:,} dropped"]
    if found.left_out:
        parts.append(f"{of_number(len(found.left_out), 'shard')} left out")
    if found.purged:
        parts.append(f"{of_number(len(found.purged), 'shard')} purged")
    if found.withdrawn:
        parts.append(f"{of_number(found.withdrawn, 'origin')} purged")
    return f"{told} {change_text(found.change)}, {found.documents:,} in all; {'; '.join(parts)}"


def pull_as_json(found: Pull) -> dict[str, object]:
    """Describe a pull for machines."""
    return {
        "origin": found.name,
        "url": found.origin.url,
        "origin_version": found.origin.version,
        "time": found.origin.time,
        "documents": found.documents,
        "change": found.change,
        "segments_copied": found.added,
        "segments_dropped": found.removed,
        "left_out": list(found.left_out),
        "purged": len(found.purged),
        "origins_purged": found.withdrawn,
    }
