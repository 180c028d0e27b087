"""Filling: estimates moments of neighbour lists at equal indices.

A node is in a list once or not at all, so a list has no pair of equal neighbours. The counted
`P_ii` is 0, but that of the model is larger. This is a bias if there are few nodes.
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
_SETTLED = 1e-8  # rounds end when the relative change is smaller than this
_MORE_DIRECTIONS = 5
_ROWS = 64
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FilledLengths:
    """Totals of lists, with estimates at equal indices. Moments are divided by them."""

    C1: float
    C2: float
    C3: float
    weight: float
    n_documents: int
    is_pooled: bool


@dataclass(frozen=True, eq=False)
class EqualIndices:
    """Estimated sums over lists at equal indices.

    pairs : (n,) float64, sums of `P_ii`
    triples : (n, n) float64, sums of the triples (i, i, l)
    """

    pairs: NDArray[np.float64]
    triples: NDArray[np.float64]

    @property
    def all_triples(self) -> float:
        """Sum over all triples with two or three equal indices."""
        return float(3 * self.triples.sum() - 2 * np.trace(self.triples))


def pairs_by_rank(
    pairs: NDArray[np.float64],
    first: NDArray[np.float64],
    states: int,
    form: Form,
    seed: int,
) -> NDArray[np.float64]:
    """Estimate the (n,) sums of pairs of equal indices, from the rank of the other pairs.

    Uses HeteroPCA (Zhang, Cai, Wu 2022). It alternates between the k leading eigenpairs of
    `A = M2 - a M1 M1'` and the diagonal of the matrix that they give. It stops when the diagonal
    has converged, or after 1,000 rounds.

    pairs : (n, n) float64, pair counts with diagonal 0
    first : (n,) float64, M1
    states : number of communities k
    seed : seed of the start directions

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

    These are raw moments, without the correction of `forms.Dirichlet` by alpha0. Raises
    NotIdentifiable if the model has no triples with different indices.

    columns : (n, k) float64, M with column sums 1
    weights : (k,) float64, omega
    triples : C3, the number of triples with different indices
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
    """Return statistics of all rows as if equal indices had been counted.

    `statistics` must be of lists of neighbours, with all n nodes in the core.
    """
    Q = statistics.basis.matrix.astype(np.float64)
    n, lengths = len(Q), statistics.length_histogram
    d, D = equal.pairs, equal.triples
    pairs = statistics.pair_counts.astype(np.float64)
    pairs[np.arange(n), np.arange(n)] += d
    sketch = statistics.triple_sketch.astype(np.float64)
    own = pack(Q[:, :, None] * Q[:, None, :])
    # Add to the slice of row i: D_ji at (j, j), and D_il at (i, l) and (l, i), but (i, i) only
    # once. The sketch also has triples at the same position, so pairs are added three times.
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
