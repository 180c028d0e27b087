"""Compact a store: replace its segments by their sum, row block by row block on the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from streaming_moments.pipelines.cluster.memory import (
    PROCESS_BYTES,
    blocks_at_once,
    blocks_in_flight,
)
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.covering import Part, reference_of
from streaming_moments.storage.log.ledger import Ledger
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.operations.compaction import (
    SegmentsChanged,
    commit_compaction,
    compaction_groups,
    seal_sum,
    write_sums,
)
from streaming_moments.storage.operations.growth import store_of_era
from streaming_moments.storage.operations.levels import (
    FEWEST,
    commit_sum,
    parts_of_whole,
    parts_to_sum,
    read_for,
    segments_to_replace,
    sums_gone,
)
from streaming_moments.storage.segments.blocks import joining_bytes
from streaming_moments.storage.segments.segments import Segment, SegmentWriter
from streaming_moments.storage.store.store import MomentStore

COMPACT_AFTER = 8
# A task holds a row block this many times: its sum, the block of one segment, and the bytes that it
# writes.
_COPIES = 3


def compact(store: MomentStore, run: Run, by: Bucket = "day") -> MomentStore:
    """Replace the segments of the latest version by their sums.

    Segments of different days stay separate, so that a refit can choose among them. Segments of
    different vocabularies stay separate, too. Segments without dates are merged into one. Each sum
    is a commit of its own. Segments that other writers append meanwhile stay as they are. Older
    versions keep their segments.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    run : Run
        Cluster and options.
    by : {"day", "month", "year", "all"}
        Segments whose days are in the same period are added up.

    Returns
    -------
    MomentStore
        Store at the new version, or at the latest if there was nothing to do.

    Raises
    ------
    BoundExceeded
        A row block does not fit into the memory budget.
    StoreError
        The store cannot be read or written, or another writer compacted it or rolled it back
        meanwhile.
    """
    store = store.latest()
    for sources in compaction_groups(store.commit.segments, store.ledger(), by):
        store = replaced_by_sum(store, sources, run)
    return store


def compact_when_many(store: MomentStore, after: int, run: Run, by: Bucket = "day") -> MomentStore:
    """Merge segments of about the same size if there are many, so that a refit reads fewer files.

    The sum replaces segments of the same days. Segments of different days stay beside their sum.
    Each merge is a commit. Segments that another writer has merged or subtracted meanwhile are left
    out. Raises BoundExceeded, StoreError as `compact`.

    after : merge segments once this many have about the same size; 0: never; 1: merge all segments
        of the same days, as in `compact`
    """
    if after == 0:
        return store
    try:
        if after == 1:
            store = compact(store, run, by)
        after = max(after, FEWEST)
        while sources := segments_to_replace(store.commit.segments, store.ledger(), after, by):
            store = replaced_by_sum(store, sources, run)
        gone = sums_gone(store)
        while parts := parts_to_sum(store.commit, after, by, gone):
            store = _summed_beside(store, parts, run, gone)
        while parts := parts_of_whole(store.commit, after, by, gone):
            store = _summed_beside(store, parts, run, gone, whole=True)
    except SegmentsChanged:
        return store.latest()
    return store


def replaced_by_sum(
    store: MomentStore, sources: Sequence[SegmentReference], run: Run
) -> MomentStore:
    """Replace segments of one vocabulary by their sum, in one commit; errors as in `compact`."""
    # use the records of this version, because another writer may have added words meanwhile
    named = {(part.id, part.sign): part for part in store.commit.segments}
    sources = [named.get((part.id, part.sign), part) for part in sources]
    message = f"compact: {of_number(len(sources), 'segment')}"
    if not len(store.ledger().of_segments(sources)):
        return commit_compaction(store, sources, None, message)
    segment = summed(store, sources, store.ledger(), run)
    return commit_compaction(store, sources, segment, message)


def summed(
    store: MomentStore, sources: Sequence[SegmentReference], ledger: Ledger, run: Run
) -> Segment:
    """Write the sum of segments of one vocabulary, without a commit; errors as in `compact`.

    Each source has a sign, by which it is added or subtracted. `ledger` has the records of the
    shards of all sources, and possibly of others.
    """
    writer, files = _written(store, sources, run)
    return seal_sum(store, writer, files, sources, ledger)


def _summed_beside(
    store: MomentStore,
    parts: Sequence[Part],
    run: Run,
    gone: frozenset[str],
    whole: bool = False,
) -> MomentStore:
    """Store the sum of segments in one commit that also keeps them; errors as in `compact`."""
    writer, files = _written(store, read_for(store.commit, parts, gone), run)
    return commit_sum(store, writer, files, parts, gone, whole)


def _written(
    store: MomentStore, parts: Sequence[Part], run: Run
) -> tuple[SegmentWriter, list[FileRecord]]:
    """Write the row blocks of the sum of segments of one vocabulary; errors as in `compact`."""
    held = [reference_of(part) for part in parts]
    writer = store_of_era(store, held[0].words).new_segment()
    joining = joining_bytes(held, store.layout)
    each = blocks_in_flight(store.layout, run.cluster.threads, run.cluster.memory, _COPIES, joining)
    room = (run.cluster.memory - PROCESS_BYTES) // each - joining
    calls = [(writer, parts, own) for own in blocks_at_once(store.layout, _COPIES, room)]
    written = run.calls("compacting row blocks", write_sums, calls, each)
    return writer, list(chain.from_iterable(written))
