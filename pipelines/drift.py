"""Drift of a store, from its row blocks."""

from __future__ import annotations

from streaming_moments.drift import Drift, PairRows, outside_share, pair_difference
from streaming_moments.errors import NotIdentifiable
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import StateSize, blocks_in_flight
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.refit import BlockAddress, core_rows, load_block, whiten_rows
from streaming_moments.pipelines.tasks import result_of, run_bounded
from streaming_moments.statistics import MomentStatistics
from streaming_moments.storage.store import MomentStore
from streaming_moments.whitening import Whitening

_COPIES = 4  # two states, each with the segment that is read


def measure_drift(
    store: MomentStore,
    before: MomentStore | None,
    n_topics: int,
    alpha0: float,
    cluster: Cluster,
    progress: StepProgress | None = None,
) -> Drift:
    """How far a version has moved from an earlier one, and from its own basis.

    Parameters
    ----------
    store : MomentStore
        The version.
    before : MomentStore, optional
        The earlier one: pair distributions are compared where it is of the same lineage, and the
        share outside the vocabulary is that of the shards counted since. Without one it is that
        of all shards.
    n_topics : int
        Leading eigenvalues that the basis is to see, k.
    alpha0 : float
        As in `refit`.
    cluster : Cluster
        Where to run.
    progress : StepProgress, optional
        Told of each row block.

    Raises
    ------
    BoundExceeded
        The memory budget cannot hold two row blocks.
    StoreError
        The store cannot be read.
    """
    progress = progress or Silent()
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    each = blocks_in_flight(size, cluster.threads, cluster.memory, _COPIES)
    in_flight = cluster.workers * each
    return Drift(
        _captured(store, n_topics, alpha0, cluster, in_flight, progress),
        _outside(store, before),
        store.length_histogram().effective_documents,
        None if before is None else _pair_distance(store, before, cluster, in_flight, progress),
    )


def pair_total(address: BlockAddress) -> int:
    """Pairs of core words in one row block."""
    return _pair_rows(address).total


def pair_part(one: BlockAddress, other: BlockAddress, before: int, after: int) -> float:
    """What one row block of two versions adds to their distance."""
    return pair_difference(_pair_rows(one), _pair_rows(other), before, after)


def _pair_rows(address: BlockAddress) -> PairRows:
    statistics = load_block(address)
    if not isinstance(statistics, MomentStatistics):
        raise NotIdentifiable("weighted states have no exact pair counts; compare whole versions")
    return PairRows.of(statistics)


def _captured(
    store: MomentStore,
    n_topics: int,
    alpha0: float,
    cluster: Cluster,
    in_flight: int,
    progress: StepProgress,
) -> float | None:
    addresses = [(BlockAddress(store, index),) for index in range(store.row_blocks)]
    histogram = store.length_histogram()
    if not histogram.C3:
        return None
    step = "reading row blocks for drift"
    cores = run_bounded(cluster, core_rows, addresses, in_flight, progress, step, True)
    asked = cluster.client.submit(
        whiten_rows, cores, histogram, store.basis, n_topics, alpha0, pure=False
    )
    del cores
    try:
        whitening: Whitening = result_of(cluster, asked, "whitening")
    except NotIdentifiable:
        return None  # fewer topics than there were: the refit will say so
    return whitening.captured


def _outside(store: MomentStore, before: MomentStore | None) -> float | None:
    old = set() if before is None else {record.url for record in before.ledger()}
    records = list(store.ledger())
    new = [record for record in records if record.url not in old] or records
    return outside_share(sum(part.tokens for part in new), sum(part.outside for part in new))


def _pair_distance(
    store: MomentStore,
    before: MomentStore,
    cluster: Cluster,
    in_flight: int,
    progress: StepProgress,
) -> float | None:
    if store.basis != before.basis:
        return None
    blocks = range(store.row_blocks)
    pairs = [(BlockAddress(before, index), BlockAddress(store, index)) for index in blocks]
    singles = [(address,) for pair in pairs for address in pair]
    counted = run_bounded(cluster, pair_total, singles, in_flight, progress, "counting pairs")
    totals = sum(counted[0::2]), sum(counted[1::2])
    if not all(totals):
        return None
    calls = [(*pair, *totals) for pair in pairs]
    parts: list[float] = run_bounded(
        cluster, pair_part, calls, in_flight, progress, "comparing pairs"
    )
    return sum(parts)
