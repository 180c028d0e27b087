"""Held-out triples: score a model of each half of the records by triples of the other half."""

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

# Spread this share of the probability over all triples, so that none has probability 0.
_SPREAD = 1e-3


def trial_of_halves(rows: Rows, model: Any, options: Any) -> Trial:
    """Fit a model to each half of the records, and score it by triples of the other half.

    For chains, windows of three symbols take the place of triples. Raises NotIdentifiable if a half
    identifies fewer states than the options ask for. Raises InvalidInput if a half of the records
    has no triple, and as `require_comparable` does.

    rows : `ViewStatistics` with identity sketches, which hold the table of triples
    model : class of models to fit, of mixtures of views or of hidden Markov models
    """
    require_comparable(rows.foundation)
    scores, tables = [], []
    for odd in (False, True):
        half = model.fit_half(rows, options, not odd)
        tables.append(np.vstack([*half.tables.values()]) / len(half.tables))
        fitted = rows.shared(half)
        parts = half_rows(rows, odd).gathered("halves", _scored, fitted)
        total = sum(count for _, count in parts)
        if not total:
            raise InvalidInput(
                "one of the two halves of the records has no triple to hold out; count more records"
            )
        scores.append(sum(score for score, _ in parts) / total)
    own, other = tables[0], like(tables[1], tables[0])
    bars = np.abs(own - other).sum(axis=0) / 2
    return Trial(HeldOut(*scores), furthest_apart(bars, (own + other).T / 2))


def require_comparable(foundation: Any) -> None:
    """Refuse statistics by which numbers of states cannot be compared.

    Raises InvalidInput, with a remedy, if the statistics have no halves, or only sketches of the
    triples.
    """
    if not foundation.halves:
        raise InvalidInput(
            "the statistics have no halves of the records to compare; count with halves, or "
            "compare log-likelihoods of records that were not counted"
        )
    if not foundation.whole:
        raise InvalidInput(
            "the statistics have only sketches of words, without triples",
            "count with a {create.vocabulary_size} of 128 or less and without "
            "{create.sketch_columns}, or compare log-likelihoods of records that were not counted",
        )


def dirichlet_triples(weights: NDArray[np.float64], alpha0: float) -> NDArray[np.float64]:
    """Return the (k, k, k) probabilities that three tokens of a record come from given states.

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
    """Return the (m, l, r) probabilities of all triples of words, one word of each view.

    `views` are the distributions of words in each state, of shapes (m, k), (l, k) and (r, k).
    """
    if not alpha0:
        found = np.einsum("mj,lj,rj->mlr", views[0] * weights, *views[1:], optimize=True)
    else:
        together = dirichlet_triples(weights, alpha0)
        found = np.einsum("ma,lb,rc,abc->mlr", *views, together, optimize=True)
    return np.asarray(found, dtype=np.float64)


def _scored(statistics: ViewStatistics, model: Any) -> tuple[float, int]:
    """Return the log-likelihood of all triples of a block, and the number of these triples."""
    counts = statistics.sums[TRIPLES][:, 1:, 1:]
    views, weights, alpha0 = model.triple_views
    own = views[0][statistics.block.rows]
    chances = triple_chances((own, *views[1:]), weights, alpha0)
    seen = counts > 0
    cells = np.prod([len(columns) for columns in views])
    logs = np.log((1 - _SPREAD) * chances[seen] + _SPREAD / cells)
    return float(counts[seen] @ logs), int(counts.sum())
