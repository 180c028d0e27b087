"""Estimates the transition matrix and observable operators of a chain from sums over windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.views import frame
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.sequences.windows import FIRST
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

_ROUNDING = 1e-12
# Observable operators are stored only if the matrices of all symbols have at most this many numbers
# in total.
MOST_OPERATORS = 1 << 23


@dataclass(frozen=True, eq=False)
class Operators:
    """Observable operators (Hsu, Kakade, Zhang, "A spectral algorithm for learning HMMs", 2009).

    They give probabilities of sequences without the parameters of a model:
    `P(x1, ..., xt) = last' B_xt ... B_x1 first`.

    symbols : (n, k, k) float64, the matrix B_x of each symbol x
    first, last : (k,) float64, the vectors b_1 and b_infinity of the paper
    """

    symbols: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]

    __sizeof__ = held_bytes


def transitions(
    rows: Rows, sketch: Basis, metric: NDArray[np.float64], emission: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Estimate the (k, k) transition matrix and the (k,) shares of states.

    Also returns the number of states without a known successor.

    Column j of the matrix is the distribution of the state that follows state j. The column of a
    state without a known successor is uniform.

    Solves `RL = O J (O' Qo)` for J by non-negative least squares. RL has the counts of pairs of a
    middle symbol (rows) and a sketched first symbol (columns) of a window. O is `emission`, Qo the
    matrix of the sketch, and J has the shares of pairs of states. Rows are scaled by `p^-1/2`,
    where p is the frequency of the symbol, and columns by `metric`.
    """
    k = emission.shape[1]
    nbytes = 8 * k * (k + sketch.columns)
    sums = rows.value(rows.summed("transitions", _moved, emission, nbytes=nbytes))
    triangle = np.linalg.cholesky(sums[:, :k] + _ROUNDING * np.trace(sums[:, :k]) * np.eye(k))
    seen = np.linalg.solve(triangle, sums[:, k:] @ metric)
    sides = (sketch.matrix.T @ emission[: sketch.core]).T @ metric
    design = np.kron(triangle.T, sides.T)
    scale = max(float(np.abs(seen).max()), 1e-300)
    joint = optimize.nnls(design, seen.ravel() / scale)[0].reshape(k, k)
    told = joint.sum(axis=0) > 0
    if not told.all():
        # if a state then has no successors, solve for it without the bound at 0, and clip the
        # result
        free = np.clip(np.linalg.pinv(triangle.T) @ seen @ np.linalg.pinv(sides), 0, None)
        joint = np.where(told, joint, free)
    sums = joint.sum(axis=0)
    unknown = int((sums <= 0).sum())
    transition = np.where(sums > 0, joint / np.where(sums > 0, sums, 1), 1 / k)
    shares = sums / sums.sum() if sums.any() else np.full(k, 1 / k)
    return transition, shares, unknown


def first_states(rows: Rows, emission: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return the (k,) distribution of first states, and the number of first symbols.

    These are the states and symbols at the beginning of the sequences.
    """
    counts = interleaved(rows.gathered("first symbols", _firsts)).astype(np.float64)
    total = int(counts.sum())
    found = optimize.nnls(emission, counts / max(total, 1))[0]
    return found / found.sum() if found.sum() > 0 else found, total


def operators(rows: Rows, sketch: Basis, k: int) -> Operators | None:
    """Compute the observable operators of all symbols.

    Returns None if the operators would be too large, or if the pairs of consecutive symbols
    identify fewer than k states.
    """
    if sketch.n_words * k**2 > MOST_OPERATORS:
        return None
    turned = frame(sketch.matrix)
    width = sketch.columns
    sums = rows.value(rows.summed("bigrams", _bigrams, sketch, nbytes=8 * width * (width + 2)))
    triples = sums[-1, 0]
    pairs = turned.T @ sums[:width, :width] @ turned / triples
    left, first = sums[:width, -2] @ turned / triples, sums[:width, -1] @ turned
    U, S, V = np.linalg.svd(pairs)
    if S[k - 1] <= _ROUNDING * S[0]:
        return None
    after, before = turned @ U[:, :k], turned @ (V[:k].T / S[:k])
    parts = rows.gathered("operators", _operated, after, before / triples)
    begun = first / sums[-1, 1] if sums[-1, 1] else turned.T @ sums[:width, -2] / triples
    return Operators(interleaved(parts), U[:, :k].T @ begun, (V[:k] @ left) / S[:k])


def symbol_shares(rows: Rows) -> NDArray[np.float64]:
    """Return the (n,) share of each symbol in the middle of windows."""
    counts = interleaved(rows.gathered("symbols", _middles)).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _moved(statistics: ViewStatistics, emission: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (k, k + s) `O' P^-1 O` and `O' P^-1 RL`, side by side, for a block of symbols.

    O is `emission`, and RL as in `transitions`.

    P is the diagonal matrix of the counts of middle symbols. Symbols with count 0 are left out.
    """
    slices, own = statistics.sums[TRIPLES], emission[statistics.block.rows]
    seen = slices[:, 0, 0] > 0
    own, counts = own[seen], slices[seen, 0, 0].astype(np.float64)
    scaled = own / counts[:, None]
    return np.hstack([scaled.T @ own, scaled.T @ slices[seen, 1:, 0]])


def _bigrams(statistics: ViewStatistics, sketch: Basis) -> NDArray[np.float64]:
    """Return (s + 1, s + 2) sums of sketched symbols over a block of rows (middle symbols).

    The first s rows have, side by side, `Q' RL` (Q is the sketch, and RL as in `transitions`), the
    sum of the first symbols of windows, and the sum of the first symbols of sequences. The last row
    begins with the number of windows and the number of first symbols of sequences.
    """
    slices, first = statistics.sums[TRIPLES], statistics.sums[FIRST]
    own = sketch.matrix[statistics.block.rows].astype(np.float64)
    found = np.zeros((sketch.columns + 1, sketch.columns + 2))
    found[:-1, :-2] = own.T @ slices[: len(own), 1:, 0]
    found[:-1, -2] = slices[:, 1:, 0].sum(axis=0)
    found[:-1, -1] = own.T @ first[: len(own)]
    found[-1, :2] = slices[:, 0, 0].sum(), first.sum()
    return found


def _operated(
    statistics: ViewStatistics, after: NDArray[np.float64], before: NDArray[np.float64]
) -> NDArray[np.float64]:
    slices = statistics.sums[TRIPLES][:, 1:, 1:]
    # the slice of a middle symbol has the first symbol of a window in its rows, and the last one in
    # its columns
    return np.asarray(np.einsum("xlr,ra,lb->xab", slices, after, before, optimize=True))


def _firsts(statistics: ViewStatistics) -> NDArray[np.int64]:
    return statistics.sums[FIRST]


def _middles(statistics: ViewStatistics) -> NDArray[np.int64]:
    return statistics.sums[TRIPLES][:, 0, 0]
