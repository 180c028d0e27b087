"""Compact a store: its segments replaced by their sum, row block by row block on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import StateSize, blocks_in_flight
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.tasks import run_bounded
from streaming_moments.storage.compaction import (
    commit_compaction,
    compaction_groups,
    seal_sum,
    write_sum,
)
from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.growth import store_of_era
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.versions import SegmentReference

COMPACT_AFTER = 16
# the sum, one segment of it, and what is encoded and written
_COPIES = 3


def compact(
    store: MomentStore,
    cluster: Cluster,
    progress: StepProgress | None = None,
    by: Bucket = "day",
) -> MomentStore:
    """Replace the segments of the latest version by their sums.

    Segments of different days stay apart, so that a refit can choose among them, and so do those
    of different vocabularies; those without dates become one. Each sum is a commit of its own.
    Appends of other writers in the meantime stay as they are. Older versions keep their segments.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    cluster : Cluster
        Where to run.
    progress : StepProgress, optional
        Told of each row block.
    by : {"day", "month", "year", "all"}
        How far apart days may be that are added up.

    Returns
    -------
    MomentStore
        At the new version; at the latest if there was nothing to do.

    Raises
    ------
    BoundExceeded
        The memory budget cannot hold a row block.
    StoreError
        The store cannot be read or written, or another writer compacted it or went back to an
        older version meanwhile.
    """
    store = store.latest()
    for sources in compaction_groups(store.commit.segments, store.ledger(), by):
        store = _replaced_by_sum(store, sources, cluster, progress or Silent())
    return store


def compact_when_many(
    store: MomentStore,
    after: int,
    cluster: Cluster,
    progress: StepProgress | None = None,
    by: Bucket = "day",
) -> MomentStore:
    """Compact a store of at least so many segments; 0 never does. Errors as of `compact`."""
    if 0 < after <= len(store.commit.segments):
        return compact(store, cluster, progress, by)
    return store


def _replaced_by_sum(
    store: MomentStore,
    sources: Sequence[SegmentReference],
    cluster: Cluster,
    progress: StepProgress,
) -> MomentStore:
    # as this version names them: another writer may have added words meanwhile
    named = {(part.id, part.sign): part for part in store.commit.segments}
    sources = [named.get((part.id, part.sign), part) for part in sources]
    message = f"compact: {len(sources)} segments"
    if not len(store.ledger().of_segments(sources)):
        return commit_compaction(store, sources, None, message)
    writer = store_of_era(store, sources[0].words).new_segment()
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    each = blocks_in_flight(size, cluster.threads, cluster.memory, _COPIES)
    written = run_bounded(
        cluster,
        write_sum,
        [(writer, sources, index) for index in range(store.row_blocks)],
        cluster.workers * each,
        progress,
        "compacting row blocks",
    )
    segment = seal_sum(store, writer, list(chain.from_iterable(written)), sources)
    return commit_compaction(store, sources, segment, message)
