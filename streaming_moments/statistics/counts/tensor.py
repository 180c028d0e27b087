"""The whitened third moment of counted documents, and the way back to words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.packing import pack, packed_size, unpack
from streaming_moments.statistics.counts.row_lengths import quotients
from streaming_moments.statistics.counts.weighted import Statistics, row_constants
from streaming_moments.statistics.counts.whitening import Whitening

# Rows of pair counts made float64 at a time: 4,096 core words are 8 MB.
_ROWS = 256


def whitened_tensor(statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
    """`T = M3(W, W, W) = sum_i w_i (x) H_i` from the core rows of a block; adds up over blocks.

    W has no rows outside the core, so the core words' slices hold all of T, and none of them is
    computed: with `v = G W` and the sums over the rows i of

        C3 T = B' (sum w_i (x) T_i) B - sum (v_i (x) w_i w_i' in its three orders)
               + 2 sum word_counts_i w_i (x) w_i w_i'

    the sketch is read once, where the slices would take k times the work.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        One block of rows.
    whitening : Whitening
        From the core moments of the same statistics.

    Returns
    -------
    (k, k, k) float64
        Summed over all blocks it is symmetric up to rounding.
    """
    k, s = whitening.n_topics, statistics.basis.columns
    W, B, core = whitening.vectors, whitening.coefficients, statistics.basis.core
    words = np.arange(core)[statistics.block.rows]
    first, second = np.zeros(k), np.zeros((k, k))
    sketched = np.zeros((k, packed_size(s)))
    crossed, cubes = np.zeros((2, k, packed_size(k)))
    for start in range(0, words.size, _ROWS):
        rows = slice(start, min(start + _ROWS, words.size))
        w = W[words[rows]]
        weighted = statistics.word_counts[rows, None] * w
        products = statistics.pair_counts[rows].astype(np.float64) @ W
        squares = pack(w[:, :, None] * w[:, None, :])
        sketched += w.T @ statistics.triple_sketch[rows].astype(np.float64)
        crossed += (products + weighted).T @ squares
        cubes += weighted.T @ squares
        first += weighted.sum(axis=0)
        second += w.T @ products
    form, u = whitening.form, whitening.first
    C1, C2, C3 = form.totals(statistics.length_histogram)
    raw: NDArray[np.float64] = np.matmul(B.T, unpack(sketched, s) @ B)
    tensor = raw - _three_orders(unpack(crossed, k))
    tensor = (tensor + 2 * unpack(cubes, k)) / C3

    def mixed() -> NDArray[np.float64]:
        total = np.multiply.outer(first / C1, whitening.second)
        total += np.multiply.outer(second / C2, u)
        total += (second / C2)[:, None, :] * u[:, None]
        return total

    return form.third(
        tensor, mixed, lambda times: times * np.multiply.outer(first / C1, np.outer(u, u))
    )


def _three_orders(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the places the first index may take; symmetric in the other two."""
    return tensor + tensor.transpose(1, 0, 2) + tensor.transpose(1, 2, 0)


def unwhitened_rows(statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
    """Rows of `A W = sum_j w_j^1/2 m_j o_j'` for all words of a block.

    Of exact moments it is, inside the core, the pseudo-inverse of W', by which the sources go back
    from whitened vectors to words. `A = M2 - a M1 M1'` of the form has a row for every other
    word too, from the documents that count it.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        One block of r rows.
    whitening : Whitening
        Of the same statistics.

    Returns
    -------
    (r, k) float64
    """
    form, rows = whitening.form, statistics.word_counts.size
    products = np.empty((rows, whitening.n_topics))
    for start in range(0, rows, _ROWS):
        part = slice(start, start + _ROWS)
        products[part] = statistics.pair_counts[part].astype(np.float64) @ whitening.vectors
    C1, C2, _ = row_constants(statistics, form)
    mean = quotients(statistics.word_counts[:, None].astype(np.float64), C1)
    return quotients(products, C2) - form.mean_share * mean * whitening.first
