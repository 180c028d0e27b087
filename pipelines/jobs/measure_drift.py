"""Drift of a store, from its row blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, form_of
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.sweeps import whiten_rows
from streaming_moments.pipelines.cluster.memory import blocks_in_flight
from streaming_moments.pipelines.cluster.rows_here import rows_for
from streaming_moments.pipelines.cluster.rows_on_cluster import BlockAddress, OnBlocks, OnCluster
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.quality.drift import Drift, outside_share
from streaming_moments.statistics.counts.pair_distance import PairRows, pair_difference
from streaming_moments.statistics.counts.whitening import Whitening, core_rows
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore

_READING = "reading row blocks for drift"
_COPIES = 4  # the block, the segment that is read, and core rows of two states


def measure_drift(
    store: MomentStore, before: MomentStore | None, n_topics: int, alpha0: float, run: Run
) -> Drift:
    """Measure how far a version has moved from an earlier one, and from its own basis.

    Pair distributions are compared where `before` has the same core. The share outside the
    vocabulary is of the shards counted since `before`, or of all shards without it. `n_topics` is
    the number of leading eigenvalues that the basis should capture. Other kinds than documents have
    only the share outside their words. A budget that cannot hold two row blocks raises
    BoundExceeded.
    """
    if not store.foundation.by_length:
        return Drift(None, _outside(store, before), nan, None)
    each = blocks_in_flight(store.layout, run.cluster.threads, run.cluster.memory, _COPIES)
    rows = rows_for(store.layout.state_bytes).of(store, store.row_lengths(), run, each)
    # left on the workers: each block is read once
    cores = rows.each(_READING, core_rows)
    distance = None
    if before is not None and _same_core(before, store):
        blocks = [([BlockAddress(before, index)],) for index in range(before.row_blocks)]
        earlier = rows.calls(_READING, OnBlocks(core_rows), blocks, keep=True)
        distance = _pair_distance(rows, earlier, cores)
    return Drift(
        _captured(rows, cores, n_topics, form_of(alpha0)),
        _outside(store, before),
        rows.lengths.whole.effective_documents,
        distance,
    )


def pair_total(core: NDArray[np.int64]) -> int:
    """Pairs of core words in the core rows of one row block."""
    return _pair_rows(core).total


def pair_part(one: NDArray[np.int64], other: NDArray[np.int64], before: int, after: int) -> float:
    """What one row block of two versions adds to their distance."""
    return pair_difference(_pair_rows(one), _pair_rows(other), before, after)


@dataclass(frozen=True)
class DriftSince:
    """The drift of a store since `version`, on which `model` was fitted."""

    model: str
    version: int
    drift: Drift


def drift_since(store: MomentStore, name: str, run: Run) -> DriftSince:
    """Drift of a version since the one that a model, called by name or tag, was fitted on.

    Raises
    ------
    BoundExceeded, StoreError
        As `measure_drift`; there is no such model.
    """
    chosen = model_called(store.commit, name)
    fitted, model = store.models[chosen].version, store.load_model(chosen)
    before = store.at(fitted)
    drift = measure_drift(store, before, model.n_topics, model.alpha0, run)
    return DriftSince(chosen, fitted, drift)


def _same_core(before: MomentStore, store: MomentStore) -> bool:
    """Whether words were at most added outside the core since."""
    lineage = store.commit.lineage
    return before.basis.fingerprint in {lineage.basis, *(era.basis for era in lineage.eras)}


def _pair_rows(core: NDArray[np.int64]) -> PairRows:
    # states of one core, block by block, alone come here, so that no names need be told
    return PairRows("", 0, 1, core[:, :-1])


def _captured(rows: OnCluster, cores: list[Future[Any]], n_topics: int, form: Form) -> float | None:
    lengths = rows.lengths.whole
    if not lengths.C3:
        return None
    try:
        asked = rows.once("whitening", whiten_rows, cores, lengths, rows.basis, n_topics, form)
    except NotIdentifiable:
        return None  # fewer topics than there were: the refit will say so
    whitening: Whitening = rows.value(asked)
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
    rows: OnCluster, before: list[Future[Any]], after: list[Future[Any]]
) -> float | None:
    totals = [
        sum(rows.calls("counting pairs", pair_total, [(core,) for core in cores]))
        for cores in (before, after)
    ]
    if not all(totals):
        return None
    calls = [(*pair, *totals) for pair in zip(before, after, strict=True)]
    parts: list[float] = rows.calls("comparing pairs", pair_part, calls)
    return sum(parts)
