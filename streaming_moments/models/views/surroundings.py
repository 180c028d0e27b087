"""Symbols read by what lies around them: shares of the states of each, on the simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.faces import LateModule
from streaming_moments.models.rows import Rows
from streaming_moments.models.views.transitions import sketch_metric
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

if TYPE_CHECKING:
    import scipy.optimize as optimize
else:
    optimize = LateModule("scipy.optimize")

# Windows of a symbol that the shares of the states stand for beside its own.
_PRIOR = 1.0
# Weight of the sum, which is 1, beside the largest of the squares.
_SUM = 1e3


def by_surroundings(
    rows: Rows, sketch: Basis, emission: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns and weights in which each symbol keeps the share that it has.

    As decomposed, rare symbols have entries of either sign, and clipped they lose their share.
    Here the shares of the states of a symbol, `P(h | x)`, are least squares on the simplex of the
    sketched symbols before and after it by those of the states, in the covariance metric of the
    sketch, with the weights as one window more of each symbol.

    Parameters
    ----------
    rows : Rows
        Of `ViewStatistics` of sequences.
    sketch : Basis
        Of the outer symbols.
    emission : (n, k) float64
        Columns on the simplex, as decomposed.
    weights : (k,) float64
        Shares of the states.

    Returns
    -------
    emission : (n, k) float64
        Columns on the simplex; `emission @ weights` is what each symbol was seen.
    weights : (k,) float64
        Shares of the states.
    """
    k, width = weights.size, 2 * sketch.columns
    turned = sketch_metric(rows, sketch)
    joint = emission * weights
    seen = joint.sum(axis=1, keepdims=True)
    shares = np.where(seen > 0, joint / np.where(seen > 0, seen, 1), weights)
    sums = rows.value(
        rows.summed("surroundings", _by_state, shares, turned, nbytes=8 * k * (k + width))
    )
    around = np.linalg.pinv(sums[:, :k], hermitian=True) @ sums[:, k:]
    # of one window the sketched symbols have covariance 1
    scale = np.sqrt(sums[:, :k].sum())
    told = around * scale, turned * scale, weights
    found = interleaved(rows.gathered("shares of states", _on_simplex, *told))
    total = found.sum(axis=0)
    columns = np.where(total > 0, found / np.where(total > 0, total, 1), emission)
    return columns, total / total.sum()


def _around(
    statistics: ViewStatistics, turned: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(r,) windows around each symbol, and (r, 2 c) sums of the sketched symbols before, after."""
    slices = statistics.sums[TRIPLES]
    counts = slices[:, 0, 0].astype(np.float64)
    return counts, np.hstack([slices[:, 1:, 0] @ turned, slices[:, 0, 1:] @ turned])


def _by_state(
    statistics: ViewStatistics, shares: NDArray[np.float64], turned: NDArray[np.float64]
) -> NDArray[np.float64]:
    own = shares[statistics.block.rows]
    counts, sums = (one[: len(own)] for one in _around(statistics, turned))
    return np.hstack([(own.T * counts) @ own, own.T @ sums])


def _on_simplex(
    statistics: ViewStatistics,
    around: NDArray[np.float64],
    turned: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(r, k) windows of each symbol in each state."""
    counts, sums = _around(statistics, turned)
    root = np.asarray(np.linalg.qr(around.T, mode="r"))
    k = weights.size
    sides = np.linalg.pinv(root.T) @ around  # |root p - sides y| is |around' p - y| in their span
    one = _SUM * max(1.0, float(np.abs(root).max()))
    design = np.vstack([root, np.eye(k), np.full((1, k), one)])
    told = np.empty(len(design))
    told[-1] = one
    found = np.zeros((len(counts), k))
    for place in np.nonzero(counts)[0]:
        pull = np.sqrt(_PRIOR / counts[place])
        design[len(root) : -1] = pull * np.eye(k)
        told[: len(root)] = sides @ sums[place] / counts[place]
        told[len(root) : -1] = pull * weights
        shares = optimize.nnls(design, told)[0]
        found[place] = shares * (counts[place] / shares.sum())
    return found
