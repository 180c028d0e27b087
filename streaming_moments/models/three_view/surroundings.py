"""Surroundings: fit states so that they preserve the share of each symbol.

The fit compares the symbols beside a symbol (its surroundings) with those of each state.
"""

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

# Each symbol is treated as if it had been in this many more windows, in which states have their
# usual weights.
_PRIOR = 1.0
# Weight of the equation by which shares of states sum to 1, relative to the largest coefficient.
_SUM = 1e3
_ROUNDING = 1e-12


def by_surroundings(
    rows: Rows,
    name: str,
    metrics: Sequence[NDArray[np.float64]],
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Change decomposed states and their weights so that the share of each symbol is preserved.

    Decomposed states have negative entries for some rare symbols, and clipping these would change
    the shares of the symbols. Instead, each symbol x is fitted by what stands beside it: its
    surroundings are the symbols beside it in its windows, as sketches. They are fitted by least
    squares as a mixture of the surroundings of the states, in the covariance metric of the
    sketches. The shares of this mixture are the probabilities `P(h | x)` of the states h. In the
    fit, each symbol gets one more window, in which the states have `weights`. All this also holds
    if records mix several states, because their surroundings are mixed in the same way.

    Returns the (n, k) distributions of the states, and their (k,) weights.

    rows : rows of `ViewStatistics`
    name : name of those sums of the statistics whose rows are symbols: of triples, or of an outer
        view
    metrics : `sketch_metric` of each sketch in these sums: two for triples, otherwise one
    columns : (n, k) float64, distributions of the states from the decomposition
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
    """Return an (s, r) matrix that turns sketches of symbols into coordinates of unit covariance.

    The covariance is over the symbols that the sums called `name` count.
    """
    nbytes = 8 * sketch.columns * (1 + sketch.columns)
    sums = rows.value(rows.summed("metric", _metric, sketch, name, nbytes=nbytes))
    turned = frame(sketch.matrix)
    return turned @ _inverse_root(turned.T @ (sums[1:] / sums[0, 0]) @ turned)


def _around(
    statistics: ViewStatistics, name: str, metrics: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of windows of each symbol of a block, and its surroundings.

    The surroundings are (r, c) sums of the sketches of symbols beside it, each multiplied by its
    metric.
    """
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
    """Return (r, k) numbers of windows: how many of those of each symbol are in each state."""
    counts, sums = _around(statistics, name, metrics)
    root = np.asarray(np.linalg.qr(around.T, mode="r"))
    k = weights.size
    # solve this problem with fewer equations: parts of the surroundings outside the span of
    # `around` do not change the solution
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
    """Count how often each symbol of a block occurs, in triples or in an outer view: (r,)."""
    sums = statistics.sums[name]
    return np.asarray(sums[:, 0, 0] if name == TRIPLES else sums[:, 0])


def _metric(statistics: ViewStatistics, sketch: Basis, name: str) -> NDArray[np.float64]:
    """Return (1 + s, s) sums over the symbols of a block, from which to compute a metric.

    The first row has the number of occurrences; below is `Q' diag(counts) Q` of the sketch Q.
    """
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
