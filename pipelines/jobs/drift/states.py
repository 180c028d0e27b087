"""States of a store between which drift is measured, read from its row blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.sweeps import whiten_rows
from streaming_moments.pipelines.cluster.memory import blocks_in_flight
from streaming_moments.pipelines.cluster.rows_on_cluster import (
    BlockAddress,
    OnBlocks,
    OnCluster,
    rows_for,
)
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.pair_distance import PairRows, pair_difference
from streaming_moments.statistics.counts.whitening import Whitening, core_rows
from streaming_moments.storage.log.ledger import outside_of
from streaming_moments.storage.store.store import MomentStore

_READING = "reading row blocks for drift"
# A task holds a row block this many times: the block, a segment while it is read, and the core rows
# of two states.
_COPIES = 4


@dataclass(frozen=True, eq=False)
class DriftStates:
    """Two versions of a store between which drift is measured; fields as in `measure_drift`."""

    store: MomentStore
    before: MomentStore | None
    n_topics: int
    alpha0: float
    run: Run

    @cached_property
    def rows(self) -> OnCluster:
        """Rows of the later version."""
        cluster = self.run.cluster
        each = blocks_in_flight(self.store.layout, cluster.threads, cluster.memory, _COPIES)
        kind = rows_for(self.store.layout.state_bytes)
        return kind.of(self.store, self.store.row_lengths(), self.run, each)

    @property
    def lengths(self) -> Lengths:
        """Totals of the documents of the later version."""
        return self.rows.lengths.whole

    @cached_property
    def cores(self) -> list[Future[Any]]:
        """Core rows of the later version, on the workers; each block is read once."""
        return self.rows.each(_READING, core_rows)

    def captured(self) -> float | None:
        """Return the smallest share of a leading eigenvalue that the basis captures."""
        rows, form = self.rows, form_of(self.alpha0)
        if not self.lengths.C3:
            return None
        try:
            asked = rows.once(
                "whitening", whiten_rows, self.cores, self.lengths, rows.basis, self.n_topics, form
            )
        except NotIdentifiable:
            return None  # the store supports fewer topics now; the refit reports this as an error
        whitening: Whitening = rows.value(asked)
        return whitening.captured

    def outside_share(self) -> float | None:
        """Return the share of tokens outside the vocabulary, in shards counted since `before`.

        If no shard was counted since, return the share in all shards.
        """
        old = set() if self.before is None else {record.url for record in self.before.ledger()}
        records = list(self.store.ledger())
        return outside_of([record for record in records if record.url not in old] or records)

    def pair_distance(self) -> float | None:
        """Return the total variation between the pair distributions of the two versions.

        None if they have different core words, or if there is no earlier version.
        """
        before, rows = self.before, self.rows
        if before is None or not _same_core(before, self.store):
            return None
        blocks = [([BlockAddress(before, index)],) for index in range(before.row_blocks)]
        earlier = rows.calls(_READING, OnBlocks(core_rows), blocks, keep=True)
        totals = [
            sum(rows.calls("counting pairs", pair_total, [(core,) for core in cores]))
            for cores in (earlier, self.cores)
        ]
        if not all(totals):
            return None
        calls = [(*pair, *totals) for pair in zip(earlier, self.cores, strict=True)]
        parts: list[float] = rows.calls("comparing pairs", pair_part, calls)
        return sum(parts)


def pair_total(core: NDArray[np.int64]) -> int:
    """Return the number of pairs of core words in the core rows of one row block."""
    return _pair_rows(core).total


def pair_part(one: NDArray[np.int64], other: NDArray[np.int64], before: int, after: int) -> float:
    """Return the contribution of one row block of two versions to their distance."""
    return pair_difference(_pair_rows(one), _pair_rows(other), before, after)


def _same_core(before: MomentStore, store: MomentStore) -> bool:
    """Whether the vocabulary has only gained words outside the core since the version `before`."""
    lineage = store.commit.lineage
    return before.basis.fingerprint in {lineage.basis, *(era.basis for era in lineage.eras)}


def _pair_rows(core: NDArray[np.int64]) -> PairRows:
    # both states have the same core and the same blocks, so words need no matching
    return PairRows("", 0, 1, core[:, :-1])
