"""Filling: what the moments of lists of neighbours lack where two indices are equal.

A node is a neighbour once or not at all, so a list has no pair of equal neighbours: `P_ii` is 0
where the model has more. Of many nodes that is one entry in many; of few it is a bias.
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
_SETTLED = 1e-8  # of what is filled in; 60 rounds left up to a hundredth of a percent of 900 nodes
_MORE_DIRECTIONS = 5
_ROWS = 64
_ROUNDING = 1e-9


@dataclass(frozen=True)
class FilledLengths:
    """Totals of lists in which neighbours may be equal, as far as moments are divided by them."""

    C1: float
    C2: float
    C3: float
    weight: float
    n_documents: int
    is_pooled: bool


@dataclass(frozen=True, eq=False)
class EqualIndices:
    """Sums over lists at equal indices.

    pairs : (n,) float64, of `P_ii`
    triples : (n, n) float64, of the triples (i, i, l)
    """

    pairs: NDArray[np.float64]
    triples: NDArray[np.float64]

    @property
    def all_triples(self) -> float:
        """Sum over all triples with two equal indices or three."""
        return float(3 * self.triples.sum() - 2 * np.trace(self.triples))


def pairs_by_rank(
    pairs: NDArray[np.float64],
    first: NDArray[np.float64],
    states: int,
    form: Form,
    seed: int,
) -> NDArray[np.float64]:
    """(n,) sums of equal pairs that the rank of all others gives (HeteroPCA: Zhang, Cai, Wu 2022).

    In turn the k leading eigenpairs of `A = M2 - a M1 M1'`, and the diagonal that they have, until
    it settles or for 1,000 rounds. `pairs` are (n, n) float64 pair counts, 0 on the diagonal;
    `first` is (n,) float64 M1; the seed is of the directions it begins with.

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
    """(n, n) sums of the triples (i, i, l) in a model, beside `triples` (C3) of different indices.

    `columns` is (n, k) float64 M, of sum 1; `weights` is (k,) float64 omega. What `forms.Dirichlet`
    corrects by alpha0 is put back. Raises NotIdentifiable if by the model no triple has different
    indices.
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
            "what nodes lack as they are no neighbours of themselves outweighs the edges that are "
            "there; ask for fewer communities, or count more edges"
        )
    return np.asarray(third * triples / (1 - share))


def filled(statistics: Statistics, equal: EqualIndices) -> WeightedStatistics:
    """Statistics of all rows as if equal indices had been counted.

    The statistics are of lists of neighbours, all n of them core words.
    """
    Q = statistics.basis.matrix.astype(np.float64)
    n, lengths = len(Q), statistics.length_histogram
    d, D = equal.pairs, equal.triples
    pairs = statistics.pair_counts.astype(np.float64)
    pairs[np.arange(n), np.arange(n)] += d
    sketch = statistics.triple_sketch.astype(np.float64)
    own = pack(Q[:, :, None] * Q[:, None, :])
    # the slice of row i has D_ji at (j, j), D_il at (i, l) and (l, i), and (i, i) once; the sketch
    # holds what shares a position, too: the pairs three times
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
