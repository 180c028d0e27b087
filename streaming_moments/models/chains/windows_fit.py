"""The chain behind windows of three symbols: by moments, and refined from several starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.chains.transitions import transitions
from streaming_moments.models.chains.windows_em import Chain
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.three_view.columns import view_columns
from streaming_moments.models.three_view.em_starts import likelier
from streaming_moments.models.three_view.surroundings import sketch_metric
from streaming_moments.models.three_view.triples import triple_table, triples_of
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import FIRST
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics, ViewTotals

if TYPE_CHECKING:
    import scipy.sparse as sp
else:
    sp = LazyModule("scipy.sparse")


def chain_of(
    rows: Rows,
    foundation: SequencesFoundation,
    metric: NDArray[np.float64],
    emission: NDArray[np.float64],
    options: Any,
) -> tuple[Chain, float, int, int]:
    """Emission and transition, maybe refined: with the score, states without moves, and rounds.

    Raises
    ------
    NotIdentifiable
        Symbols of the states depend on one another.
    """
    chain, untold = _decomposed(rows, foundation.sketch, metric, emission)
    if not (foundation.whole and options.refine):
        return chain, float("nan"), untold, 0
    table = triple_table(rows)
    starts = [chain, *_of_sketch(foundation, table, options)]
    chain, score, rounds = rows.value(
        rows.once(
            "refining",
            likelier,
            triples_of(table),
            starts,
            options.refine,
            options.seed,
            True,
            type(options).refine,
        )
    )
    return chain, score, 0, rounds


def _decomposed(
    rows: Rows, sketch: Basis, metric: NDArray[np.float64], emission: NDArray[np.float64]
) -> tuple[Chain, int]:
    k = emission.shape[1]
    try:
        transition, shares, untold = transitions(rows, sketch, metric, emission)
    except np.linalg.LinAlgError as error:
        raise NotIdentifiable(
            f"the symbols of the {k} states depend on one another, so nothing tells "
            "how states follow; ask for fewer states, or count more sequences"
        ) from error
    return Chain(emission, transition, shares), untold


def _of_sketch(
    foundation: SequencesFoundation, table: NDArray[np.int64], options: Any
) -> list[Chain]:
    """The chain as a sketch of the table shows it, less noisily; none where it does not hold it."""
    before = table.sum(axis=2).T
    together = sp.csr_array(np.hstack([before, before.T]).astype(np.float64))
    k = options.topics
    sketch = sketch_of(together, foundation.alphabet, 2 * k + 2, options.seed)
    if sketch.columns == foundation.rows:
        return []
    sketched = InMemory((_sketched(foundation, table, sketch),))
    try:
        emission = view_columns(sketched, (sketch, sketch), k).found.topics
        metric = sketch_metric(sketched, sketch)
        return [_decomposed(sketched, sketch, metric, emission)[0]]
    except NotIdentifiable:
        return []


def _sketched(
    foundation: SequencesFoundation, table: NDArray[np.int64], sketch: Basis
) -> ViewStatistics:
    """What a sketch would have counted of the windows of a table."""
    wide = np.hstack([np.ones((foundation.rows, 1), np.int64), sketch.matrix.astype(np.int64)])
    sums = {TRIPLES: wide.T @ (table @ wide), FIRST: np.zeros(foundation.rows, np.int64)}
    own = SequencesFoundation(foundation.alphabet, sketch, halves=False)
    return ViewStatistics(own, RowBlock(), ViewTotals(), sums)
