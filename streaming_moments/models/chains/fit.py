"""Fits a hidden Markov model to windows of three symbols: by moments, then by refinement."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.chains.transitions import (
    first_states,
    operators,
    symbol_shares,
    transitions,
)
from streaming_moments.models.chains.windows_em import Chain
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.three_view.columns import (
    ViewColumns,
    half_bars,
    half_rows,
    view_columns,
)
from streaming_moments.models.three_view.em_starts import likelier
from streaming_moments.models.three_view.surroundings import by_surroundings, sketch_metric
from streaming_moments.models.three_view.triples import triple_table, triples_of
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.sequences.windows import FIRST
from streaming_moments.statistics.views.sketches import sketch_of
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics, ViewTotals

BEGINNINGS = 10
"""The distribution of first states is estimated from at least this many sequences per state."""


def fitted_fields(rows: Rows, options: Any, halves: bool) -> dict[str, Any]:
    """Fit a `HiddenMarkovModel`; return its fields. The states are not ordered yet.

    The fields include error bars if `halves` is True and each half identifies the states. Raises
    the errors of `chain_of`.
    """
    foundation: SequencesFoundation = rows.foundation
    sketch, k = foundation.sketch, options.topics
    fitted, metric, columns, weights = _columns(rows, sketch, k)
    chain, score, untold, refined = chain_of(rows, foundation, metric, columns, options)
    found = None
    if halves:
        found = half_bars(columns, lambda odd: _columns(half_rows(rows, odd), sketch, k)[2])
    bars, word_bars = found or (None, None)
    # the weights of a refined chain are the distribution of states at the first place of a window:
    # compute that at the middle place
    weights = chain.transition @ chain.weights if refined else weights
    start, beginnings = first_states(rows, chain.emission)
    if beginnings < BEGINNINGS * k or not start.sum():
        start = weights
    return {
        "emission": chain.emission,
        "transition": chain.transition,
        "start": start,
        "weights": weights,
        "spectrum": fitted.spectrum,
        "symbol_shares": symbol_shares(rows),
        "observable": operators(rows, sketch, k),
        "documents": fitted.documents,
        "windows": int(rows.gathered("records", _triples)[0]),
        "short": fitted.n_missing,
        "turned": fitted.turned,
        "beginnings": beginnings,
        "untold": untold,
        "refined": refined,
        "window_score": score,
        "bars": bars,
        "word_bars": word_bars,
    }


def _columns(
    rows: Rows, sketch: Basis, k: int
) -> tuple[ViewColumns, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Fit columns and weights of k states to the moments of three views.

    Returns the fit, the metric of `sketch_metric`, and the columns and weights that are estimated
    again in this metric.

    """
    fitted = view_columns(rows, (sketch, sketch), k)
    found, metric = fitted.found, sketch_metric(rows, sketch)
    read = by_surroundings(rows, TRIPLES, [metric] * 2, found.topics, found.weights)
    return fitted, metric, *read


def _triples(statistics: Any) -> int:
    return int(statistics.totals.triples)


def chain_of(
    rows: Rows,
    foundation: SequencesFoundation,
    metric: NDArray[np.float64],
    emission: NDArray[np.float64],
    options: Any,
) -> tuple[Chain, float, int, int]:
    """Compute a chain from moments, and refine it if `options.refine` is above 0.

    Returns the chain, the mean log-likelihood of a window after refinement (NaN without
    refinement), the number of states whose next state could not be estimated, and the number of
    rounds of refinement. Raises NotIdentifiable if the symbol distributions of the states are
    linearly dependent.
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
            f"the symbol distributions of the {k} states are linearly dependent, so the "
            "transition matrix cannot be estimated; ask for fewer states, or count more sequences"
        ) from error
    return Chain(emission, transition, shares), untold


def _of_sketch(
    foundation: SequencesFoundation, table: NDArray[np.int64], options: Any
) -> list[Chain]:
    """Fit a chain to a sketch of the table of windows, and return it in a list.

    A sketch (a projection to fewer columns) has less noise than the table. The list is empty if the
    sketch would not be smaller than the table, or if it identifies too few states.
    """
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
    """Return the statistics for a table of windows, as a store with this sketch would have them."""
    wide = np.hstack([np.ones((foundation.rows, 1), np.int64), sketch.matrix.astype(np.int64)])
    sums = {TRIPLES: wide.T @ (table @ wide), FIRST: np.zeros(foundation.rows, np.int64)}
    own = SequencesFoundation(foundation.alphabet, sketch, halves=False)
    return ViewStatistics(own, RowBlock(), ViewTotals(), sums)
