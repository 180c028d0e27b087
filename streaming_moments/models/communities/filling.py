"""Filling: estimates counts of pairs and triples in which a node occurs twice.

The data are lists of neighbours. A node is in a list once or not at all, so a list has no pair of
equal neighbours. The counted entry `P_ii` for the pair (i, i) is 0, but the entry that the model
expects is larger. This is a bias if there are few nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form
from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.packing import pack
from streaming_moments.statistics.counts.weighted import Statistics, WeightedStatistics

_MOST_ROUNDS = 1000
# rounds of `pairs_by_rank` end when the relative change of the estimates is smaller than this
_SETTLED = 1e-8
_MORE_DIRECTIONS = 5
_ROWS = 64
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FilledLengths:
    """Numbers of neighbours, pairs and triples in all lists, by which sums are divided.

    Pairs and triples include the estimates for equal indices.
    """

    C1: float
    C2: float
    C3: float
    weight: float
    n_documents: int
    is_pooled: bool


@dataclass(frozen=True, eq=False)
class EqualIndices:
    """Estimated sums over lists of neighbours for pairs and triples with equal indices.

    pairs : (n,) float64, sums for the pairs (i, i)
    triples : (n, n) float64, sums for the triples (i, i, l)
    """

    pairs: NDArray[np.float64]
    triples: NDArray[np.float64]

    @property
    def all_triples(self) -> float:
        """Sum over all triples in which two or three indices are equal."""
        return float(3 * self.triples.sum() - 2 * np.trace(self.triples))


def pairs_by_rank(
    pairs: NDArray[np.float64],
    first: NDArray[np.float64],
    states: int,
    form: Form,
    seed: int,
) -> NDArray[np.float64]:
    """Estimate the (n,) sums for pairs (i, i), so that the matrix of pairs has low rank.

    Uses HeteroPCA (Zhang, Cai, Wu 2022). A is the second moment `M2 - a M1 M1'`, which has rank k
    for k communities. A round computes the k leading eigenvectors of A, and replaces the diagonal
    of A by that of the matrix of rank k which they give. Rounds stop when the diagonal has
    converged, or after 1,000 rounds.

    pairs : (n, n) float64, pair counts with diagonal 0
    first : (n,) float64, first moment M1
    states : number of communities k
    seed : seed of the random start

    Examples
    --------
    >>> columns = np.random.default_rng(0).random((40, 2))
    >>> M2 = columns @ columns.T
    >>> known = M2 - np.diag(np.diag(M2))
    >>> found = pairs_by_rank(known, np.zeros(40), 2, Form(), seed=0)
    >>> bool(np.abs(found - np.diag(M2)).max() < 1e-3)
    True
    """
    n = len(first)
    size = min(n, states + _MORE_DIRECTIONS)
    V = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, size)))[0]
    mean, total, found = form.mean_share * np.outer(first, first), pairs.sum(), np.zeros(n)
    for _ in range(_MOST_ROUNDS):
        before = found
        whole = total + found.sum()
        A = pairs / whole - mean
        A[np.arange(n), np.arange(n)] = found / whole - np.diag(mean)
        V = np.linalg.qr(A @ V)[0]
        values, turned = np.linalg.eigh(V.T @ A @ V)
        leading = np.argsort(-values)[:states]
        columns = V @ turned[:, leading]
        found = whole * (columns**2 @ np.maximum(values[leading], 0.0) + np.diag(mean))
        if np.abs(found - before).sum() <= _SETTLED * found.sum():
            break
    return np.asarray(found)


def triples_by_model(
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    triples: float,
) -> NDArray[np.float64]:
    """Compute the (n, n) sums of the triples (i, i, l) that a model expects.

    These are raw sums, without the correction for alpha0 in `forms.Dirichlet`. Raises
    NotIdentifiable if the model expects no triples with different indices.

    columns : (n, k) float64, distribution over nodes of each community
    weights : (k,) float64, weights of the communities
    triples : number of counted triples, whose indices are different
    """
    first, own = columns @ weights, weights / (alpha0 + 1)
    second = (columns * own) @ columns.T + alpha0 / (alpha0 + 1) * np.outer(first, first)
    T = (columns**2 * own) @ columns.T
    crossed = np.diag(second)[:, None] * first + 2 * second * first[:, None]
    third = 2 / (alpha0 + 2) * T + alpha0 / (alpha0 + 2) * crossed
    third -= 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * np.outer(first**2, first)
    share = EqualIndices(np.diag(second), third).all_triples
    if share >= 1 - _ROUNDING:
        raise NotIdentifiable(
            "the data lack edges of nodes to themselves, and the correction for the missing edges "
            "exceeds the observed edges; ask for fewer communities, or count more edges"
        )
    return np.asarray(third * triples / (1 - share))


def filled(statistics: Statistics, equal: EqualIndices) -> WeightedStatistics:
    """Return the statistics of all rows, with estimates for pairs and triples of equal indices.

    `statistics` must be those of lists of neighbours. All n nodes must be in the core.
    """
    Q = statistics.basis.matrix.astype(np.float64)
    n, lengths = len(Q), statistics.length_histogram
    d, D = equal.pairs, equal.triples
    pairs = statistics.pair_counts.astype(np.float64)
    pairs[np.arange(n), np.arange(n)] += d
    sketch = statistics.triple_sketch.astype(np.float64)
    own = pack(Q[:, :, None] * Q[:, None, :])
    # D_il is the estimate for the triple (i, i, l). Add to the slice of row i: D_ji at (j, j), and
    # D_il at (i, l) and (l, i), but at (i, i) only once. The sketch also includes triples that have
    # a place of the list twice, so the estimates for pairs are added three times.
    sketch += D.T @ own + (3 * d - 2 * np.diag(D))[:, None] * own
    across = D @ Q
    for start in range(0, n, _ROWS):
        rows = slice(start, start + _ROWS)
        outer = Q[rows, :, None] * across[rows, None, :]
        sketch[rows] += pack(outer + outer.transpose(0, 2, 1))
    totals: Any = FilledLengths(
        lengths.C1,
        lengths.C2 + d.sum(),
        lengths.C3 + equal.all_triples,
        lengths.weight,
        lengths.n_documents,
        lengths.is_pooled,
    )
    counts = statistics.word_counts.astype(np.float64)
    frequencies = statistics.document_frequencies.astype(np.float64)
    weighted = statistics.weighted_counts
    return WeightedStatistics(
        statistics.basis,
        statistics.block,
        totals,
        counts,
        frequencies,
        pairs,
        sketch,
        weighted_counts=None if weighted is None else weighted.astype(np.float64),
    )
