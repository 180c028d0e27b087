"""Surroundings: columns of the states that preserve the share of each symbol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.views import frame
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

# Number of windows that each symbol gets in addition; in these, states have their usual weights.
_PRIOR = 1.0
# Weight of the equation that shares sum to 1, relative to the largest coefficient.
_SUM = 1e3
_ROUNDING = 1e-12


def by_surroundings(
    rows: Rows,
    name: str,
    metrics: Sequence[NDArray[np.float64]],
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Change decomposed columns and weights so that they preserve the share of each symbol.

    Decomposed columns have entries of either sign for rare symbols, and clipping would change the
    shares of these symbols. The surroundings of a symbol are the symbols beside it in its windows,
    as sketches. They are fitted by least squares as a mixture of the surroundings of the states, in
    the covariance metric of the sketches. The shares of this mixture are `P(h | x)`, on the
    simplex. In the fit, each symbol gets one more window, in which the states have `weights`. All
    this also holds for mixed states, because their surroundings are mixed in the same way.

    Returns (n, k) columns on the simplex, and (k,) weights.

    rows : rows of `ViewStatistics`
    name : name of the sums whose rows are symbols: of triples, or of an outer view
    metrics : `sketch_metric` of each sketch beside the symbols: two for triples, else one
    columns : (n, k) float64, decomposed columns, on the simplex
    """
    k, width = weights.size, sum(one.shape[1] for one in metrics)
    joint = columns * weights
    seen = joint.sum(axis=1, keepdims=True)
    shares = np.where(seen > 0, joint / np.where(seen > 0, seen, 1), weights)
    nbytes = 8 * k * (k + width)
    sums = rows.value(rows.summed("surroundings", _by_state, name, metrics, shares, nbytes=nbytes))
    around = np.linalg.pinv(sums[:, :k], hermitian=True) @ sums[:, k:]
    found = interleaved(
        rows.gathered("shares of states", _on_simplex, name, metrics, around, weights)
    )
    total = found.sum(axis=0)
    read = np.where(total > 0, found / np.where(total > 0, total, 1), columns)
    return read, total / total.sum()


def sketch_metric(rows: Rows, sketch: Basis, name: str = TRIPLES) -> NDArray[np.float64]:
    """Return an (s, r) metric in which a sketch has unit covariance over the symbols of sums."""
    nbytes = 8 * sketch.columns * (1 + sketch.columns)
    sums = rows.value(rows.summed("metric", _metric, sketch, name, nbytes=nbytes))
    turned = frame(sketch.matrix)
    return turned @ _inverse_root(turned.T @ (sums[1:] / sums[0, 0]) @ turned)


def _around(
    statistics: ViewStatistics, name: str, metrics: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (r,) numbers of windows of symbols, and (r, c) sums of sketches beside a symbol."""
    sums = statistics.sums[name]
    beside = [sums[:, 1:, 0], sums[:, 0, 1:]] if name == TRIPLES else [sums[:, 1:]]
    turned = [one @ metric for one, metric in zip(beside, metrics, strict=True)]
    return _occurrences(statistics, name).astype(np.float64), np.hstack(turned)


def _by_state(
    statistics: ViewStatistics,
    name: str,
    metrics: Sequence[NDArray[np.float64]],
    shares: NDArray[np.float64],
) -> NDArray[np.float64]:
    own = shares[statistics.block.rows]
    counts, sums = (one[: len(own)] for one in _around(statistics, name, metrics))
    return np.hstack([(own.T * counts) @ own, own.T @ sums])


def _on_simplex(
    statistics: ViewStatistics,
    name: str,
    metrics: Sequence[NDArray[np.float64]],
    around: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the (r, k) numbers of windows of each symbol in each state."""
    counts, sums = _around(statistics, name, metrics)
    root = np.asarray(np.linalg.qr(around.T, mode="r"))
    k = weights.size
    # solve this smaller problem: least squares ignores what is outside the span of `around`
    sides = np.linalg.pinv(root.T) @ around
    one = _SUM * max(1.0, float(np.abs(root).max()))
    design = np.vstack([root, np.eye(k), np.full((1, k), one)])
    own = len(root) + np.arange(k), np.arange(k)
    told = np.empty(len(design))
    told[-1] = one
    found, seen = np.zeros((len(counts), k)), sums @ sides.T
    for place in np.nonzero(counts)[0]:
        pull = np.sqrt(_PRIOR / counts[place])
        design[own] = pull
        told[: len(root)] = seen[place] / counts[place]
        told[len(root) : -1] = pull * weights
        shares = optimize.nnls(design, told)[0]
        found[place] = shares * (counts[place] / shares.sum())
    return found


def _occurrences(statistics: ViewStatistics, name: str) -> NDArray[np.int64]:
    """Count how often the symbols of a block occur, in triples or in an outer view: (r,)."""
    sums = statistics.sums[name]
    return np.asarray(sums[:, 0, 0] if name == TRIPLES else sums[:, 0])


def _metric(statistics: ViewStatistics, sketch: Basis, name: str) -> NDArray[np.float64]:
    """Return (1 + s, s) sums over a block: the sum of counts first, `Q' diag(counts) Q` below."""
    own = sketch.matrix[statistics.block.rows].astype(np.float64)
    counts = _occurrences(statistics, name)
    found = np.zeros((1 + sketch.columns, sketch.columns))
    found[0, 0] = counts.sum()
    found[1:] = own.T @ (own * counts[: len(own), None])
    return found


def _inverse_root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _ROUNDING * values[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T)
