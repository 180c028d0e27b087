"""Triples held out: how likely those of each half of the records are by a model of the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import Trial, furthest_apart
from streaming_moments.models.rows import Rows
from streaming_moments.models.three_view.columns import half_rows, like
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

# Of a triple, spread over all: one that a half has not seen is not ruled out.
_SPREAD = 1e-3


def held_out_triples(rows: Rows, model: Any, options: Any) -> HeldOut:
    """Mean log likelihood of the triples, or windows, of each half; as `trial_of_halves`."""
    return trial_of_halves(rows, model, options).held_out


def trial_of_halves(rows: Rows, model: Any, options: Any) -> Trial:
    """How likely the triples, or windows, of each half of the records are by a model of the other.

    Parameters
    ----------
    rows : Rows
        Of `ViewStatistics` whose sketches are whole, so that they hold the table of triples.
    model : type
        Of mixtures of views or of hidden Markov models.
    options : FitOptions
        Of its `Options`.

    Raises
    ------
    NotIdentifiable
        A half does not hold as many states.
    InvalidInput
        As `require_told_apart`, or a half of the records has no triple.
    """
    require_told_apart(rows.foundation)
    scores, tables = [], []
    for odd in (False, True):
        half = model.fit_half(rows, options, not odd)
        tables.append(np.vstack([*half.tables.values()]) / len(half.tables))
        fitted = rows.shared(half)
        parts = half_rows(rows, odd).gathered("halves", _scored, fitted)
        total = sum(count for _, count in parts)
        if not total:
            raise InvalidInput(
                "a half of the records has no triple to be held out; count more records"
            )
        scores.append(sum(score for score, _ in parts) / total)
    own, other = tables[0], like(tables[1], tables[0])
    bars = np.abs(own - other).sum(axis=0) / 2
    return Trial(HeldOut(*scores), furthest_apart(bars, (own + other).T / 2))


def require_told_apart(foundation: Any) -> None:
    """Refuse statistics by which no number of states can be told to be better than another.

    Raises
    ------
    InvalidInput
        They keep no halves, or sketches of the triples alone: says what to do instead.
    """
    if not foundation.halves:
        raise InvalidInput(
            "the store keeps no halves of the records, of which one is held against the other; "
            "create it without --no-halves, or compare what `streaming-moments transform` says of "
            "shards that are not counted"
        )
    if not foundation.whole:
        raise InvalidInput(
            "the store keeps sketches of its words, of which no triple is read; create it with a "
            "--vocabulary-size of 128 or less and without --sketch-columns, or compare what "
            "`streaming-moments transform` says of shards that are not counted"
        )


def dirichlet_triples(weights: NDArray[np.float64], alpha0: float) -> NDArray[np.float64]:
    """(k, k, k) chances that three tokens of a record are of these states.

    Examples
    --------
    >>> dirichlet_triples(np.array([0.5, 0.5]), 0.0)[0].round(2)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    k = weights.size
    one, places = np.eye(k), np.arange(k)
    pairs = np.einsum("a,ab->ab", weights, one)
    found = alpha0**2 * np.einsum("a,b,c->abc", weights, weights, weights)
    for spelled in ("ab,c->abc", "ac,b->abc", "bc,a->abc"):
        found += alpha0 * np.einsum(spelled, pairs, weights)
    found[places, places, places] += 2 * weights
    return np.asarray(found / ((alpha0 + 1) * (alpha0 + 2)))


def triple_chances(
    views: Sequence[NDArray[np.float64]], weights: NDArray[np.float64], alpha0: float = 0.0
) -> NDArray[np.float64]:
    """(m, l, r) probability of each triple, from (m, k), (l, k), (r, k) columns of three views."""
    if not alpha0:
        found = np.einsum("mj,lj,rj->mlr", views[0] * weights, *views[1:], optimize=True)
    else:
        together = dirichlet_triples(weights, alpha0)
        found = np.einsum("ma,lb,rc,abc->mlr", *views, together, optimize=True)
    return np.asarray(found, dtype=np.float64)


def _scored(statistics: ViewStatistics, model: Any) -> tuple[float, int]:
    """Log likelihood of the triples of a block, and how many they are."""
    counts = statistics.sums[TRIPLES][:, 1:, 1:]
    views, weights, alpha0 = model.triple_views
    own = views[0][statistics.block.rows]
    chances = triple_chances((own, *views[1:]), weights, alpha0)
    seen = counts > 0
    cells = np.prod([len(columns) for columns in views])
    logs = np.log((1 - _SPREAD) * chances[seen] + _SPREAD / cells)
    return float(counts[seen] @ logs), int(counts.sum())
