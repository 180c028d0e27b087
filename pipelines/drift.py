"""Drift of a store, from its row blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from streaming_moments.drift import Drift, PairRows, outside_share, pair_difference
from streaming_moments.errors import NotIdentifiable
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import StateSize, blocks_in_flight
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.refit import core_rows, whiten_rows
from streaming_moments.pipelines.row_blocks import BlockAddress
from streaming_moments.pipelines.tasks import result_of, run_bounded
from streaming_moments.storage.ledger import ShardRecord
from streaming_moments.storage.models import model_called
from streaming_moments.storage.store import MomentStore
from streaming_moments.whitening import Whitening

_COPIES = 4  # the block, the segment that is read, and core rows of two states


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
        The earlier one: pair distributions are compared where it is of the same core, and the
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
    sweep = _Sweep(cluster, cluster.workers * each, progress)
    cores = sweep.cores(store)
    distance = None
    if before is not None and _same_core(before, store):
        distance = _pair_distance(sweep, sweep.cores(before), cores)
    return Drift(
        _captured(sweep, cores, store, n_topics, alpha0),
        _outside(store, before),
        store.length_histogram().effective_documents,
        distance,
    )


def pair_total(core: tuple[int, NDArray[np.int64]]) -> int:
    """Pairs of core words in the core rows of one row block."""
    return _pair_rows(core).total


def pair_part(
    one: tuple[int, NDArray[np.int64]],
    other: tuple[int, NDArray[np.int64]],
    before: int,
    after: int,
) -> float:
    """What one row block of two versions adds to their distance."""
    return pair_difference(_pair_rows(one), _pair_rows(other), before, after)


@dataclass(frozen=True)
class DriftSince:
    """How far a version has moved since a model was fitted.

    Parameters
    ----------
    model : str
        Its name.
    version : int
        The version it was fitted on.
    drift : Drift
        From that version.
    """

    model: str
    version: int
    drift: Drift


def drift_since(
    store: MomentStore, name: str, cluster: Cluster, progress: StepProgress | None = None
) -> DriftSince:
    """Drift of a version since the one that a model, called by name or tag, was fitted on.

    Raises
    ------
    BoundExceeded, StoreError
        As `measure_drift`; there is no such model.
    """
    chosen = model_called(store.commit, name)
    fitted, model = store.models[chosen].version, store.load_model(chosen)
    before = store.at(fitted)
    drift = measure_drift(store, before, model.n_topics, model.alpha0, cluster, progress)
    return DriftSince(chosen, fitted, drift)


@dataclass(frozen=True)
class _Sweep:
    """How row blocks are gone through."""

    cluster: Cluster
    in_flight: int
    progress: StepProgress

    def cores(self, store: MomentStore) -> list[Future[Any]]:
        """Core rows of each row block, left on the workers: each block is read once."""
        calls = [(BlockAddress(store, index),) for index in range(store.row_blocks)]
        return self.run(core_rows, calls, "reading row blocks for drift", keep=True)

    def run(
        self, function: Callable[..., Any], calls: list[tuple[Any, ...]], step: str, keep: bool
    ) -> list[Any]:
        return run_bounded(self.cluster, function, calls, self.in_flight, self.progress, step, keep)


def _same_core(before: MomentStore, store: MomentStore) -> bool:
    """Whether words were at most added outside the core since."""
    lineage = store.commit.lineage
    return before.basis.fingerprint in {lineage.basis, *(era.basis for era in lineage.eras)}


def _pair_rows(core: tuple[int, NDArray[np.int64]]) -> PairRows:
    # states of one core alone come here, so that its name need not be told
    index, rows = core
    return PairRows("", index, 0, rows[:, :-1])


def _captured(
    sweep: _Sweep, cores: list[Future[Any]], store: MomentStore, n_topics: int, alpha0: float
) -> float | None:
    histogram = store.length_histogram()
    if not histogram.C3:
        return None
    asked = sweep.cluster.client.submit(
        whiten_rows, cores, histogram, store.basis, n_topics, alpha0, pure=False
    )
    try:
        whitening: Whitening = result_of(sweep.cluster, asked, "whitening")
    except NotIdentifiable:
        return None  # fewer topics than there were: the refit will say so
    return whitening.captured


def _outside(store: MomentStore, before: MomentStore | None) -> float | None:
    old = set() if before is None else {record.url for record in before.ledger()}
    records = list(store.ledger())
    new = [record for record in records if record.url not in old] or records
    return outside_of(new)


def outside_of(records: Sequence[ShardRecord]) -> float | None:
    """Share of the tokens of some shards that is outside the vocabulary; None without tokens."""
    return outside_share(sum(one.tokens for one in records), sum(one.outside for one in records))


def _pair_distance(
    sweep: _Sweep, before: list[Future[Any]], after: list[Future[Any]]
) -> float | None:
    totals = [
        sum(sweep.run(pair_total, [(core,) for core in cores], "counting pairs", keep=False))
        for cores in (before, after)
    ]
    if not all(totals):
        return None
    calls = [(*pair, *totals) for pair in zip(before, after, strict=True)]
    parts: list[float] = sweep.run(pair_part, calls, "comparing pairs", keep=False)
    return sum(parts)
