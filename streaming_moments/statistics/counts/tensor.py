"""Whitened third moment of counted documents, and the map from whitened vectors to words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.packing import pack, packed_size, unpack
from streaming_moments.numerics.symmetric import three_orders
from streaming_moments.statistics.counts.lengths.row_lengths import quotients
from streaming_moments.statistics.counts.weighted import Statistics, row_constants
from streaming_moments.statistics.counts.whitening import Whitening

# Number of rows of pair counts that are converted to float64 at a time. With 4,096 core words they
# take 8 MB.
_ROWS = 256
# Number of whitened directions whose sketches are unpacked at a time. With 64 columns they take
# half a megabyte.
_DIRECTIONS = 16


@dataclass(frozen=True, eq=False)
class TensorSums:
    """Sums over rows for the whitened third moment; the sums of several blocks can be added.

    W is the whitening, w_i its row i and v_i row i of `v = G W`; see `tensor_sums`.

    totals : C1, C2, C3 for the form of the model; they are equal for all blocks
    first : (k,) float64 `sum moment_counts_i w_i`
    second : (k, k) float64 `W' P W`
    sketched : (k, s (s + 1) / 2) float64 `sum w_i (x) T_i`, packed
    crossed : (k, k (k + 1) / 2) float64 `sum (v_i - 2/3 moment_counts_i w_i) (x) w_i w_i'`, packed
    """

    totals: tuple[float, float, float]
    first: NDArray[np.float64]
    second: NDArray[np.float64]
    sketched: NDArray[np.float64]
    crossed: NDArray[np.float64]

    __sizeof__ = held_bytes

    def __add__(self, other: TensorSums) -> TensorSums:
        return TensorSums(
            self.totals,
            self.first + other.first,
            self.second + other.second,
            self.sketched + other.sketched,
            self.crossed + other.crossed,
        )

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        return int(self.first.size)

    def leading(self, n_topics: int) -> TensorSums:
        """Return the sums for fewer topics, which use the leading columns of the same whitening."""
        k = n_topics
        _, columns = np.triu_indices(self.n_topics)
        crossed = self.crossed[:k, columns < k][:, : packed_size(k)]
        return TensorSums(
            self.totals, self.first[:k], self.second[:k, :k], self.sketched[:k], crossed
        )

    def tensor(self, whitening: Whitening) -> NDArray[np.float64]:
        """Return `T = M3(W, W, W)`, (k, k, k) float64, from the sums and their whitening.

        If the sums are over all rows, T is symmetric up to rounding.
        """
        k, B, form, u = self.n_topics, whitening.coefficients, whitening.form, whitening.first
        C1, C2, C3 = self.totals
        tensor = -three_orders(unpack(self.crossed, k))
        for start in range(0, k, _DIRECTIONS):
            part = slice(start, start + _DIRECTIONS)
            tensor[part] += np.matmul(B.T, unpack(self.sketched[part], B.shape[0]) @ B)
        tensor /= C3

        def mixed() -> NDArray[np.float64]:
            total = np.multiply.outer(self.first / C1, whitening.second)
            total += np.multiply.outer(self.second / C2, u)
            total += (self.second / C2)[:, None, :] * u[:, None]
            return total

        return form.third(
            tensor, mixed, lambda times: times * np.multiply.outer(self.first / C1, np.outer(u, u))
        )


def tensor_sums_bytes(columns: int, n_topics: int) -> int:
    """Return the bytes of the large arrays of the `TensorSums` for k topics and s columns.

    Examples
    --------
    >>> tensor_sums_bytes(columns=6, n_topics=4)
    992
    """
    return 8 * n_topics * (packed_size(columns) + packed_size(n_topics))


def tensor_sums(statistics: Statistics, whitening: Whitening) -> TensorSums:
    """Sum the core rows of a block for the whitened third moment.

    W has no rows outside the core, so the slices of core words would suffice. But to compute them
    would take k times the work. Instead the function reads the sketch once, for these sums over the
    rows i, with `v = G W`:

        C3 T = B' (sum w_i (x) T_i) B - sum (v_i (x) w_i w_i' in its three orders)
               + 2 sum moment_counts_i w_i (x) w_i w_i'

    The last sum is the same in all three orders, so a third of it is added to each. B is applied
    once, to the sums of all rows: to apply it to each small block would be most of the work.

    `statistics` are one block of rows, and `whitening` is from the core moments of the same
    statistics.
    """
    W, core = whitening.vectors, statistics.basis.core
    words = np.arange(core)[statistics.block.rows]
    totals = whitening.form.totals(statistics.length_histogram)

    def sums_of(rows: slice) -> TensorSums:
        w = W[words[rows]]
        weighted = statistics.moment_counts[rows, None] * w
        products = totals[1] * whitening.images[words[rows]]
        return TensorSums(
            totals,
            weighted.sum(axis=0),
            w.T @ products,
            w.T @ statistics.triple_sketch[rows].astype(np.float64),
            # v is `products + weighted`, and `crossed` subtracts two thirds of `weighted`
            (products + weighted / 3).T @ pack(w[:, :, None] * w[:, None, :]),
        )

    total = sums_of(slice(0, min(_ROWS, words.size)))
    for start in range(_ROWS, words.size, _ROWS):
        total = total + sums_of(slice(start, min(start + _ROWS, words.size)))
    return total


def whitened_tensor(statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
    """Return `T = M3(W, W, W) = sum_i w_i (x) H_i` over the core rows of a block.

    The result is (k, k, k) float64. The sum over all blocks is symmetric up to rounding. Arguments
    are those of `tensor_sums`.
    """
    return tensor_sums(statistics, whitening).tensor(whitening)


def unwhitened_rows(
    statistics: Statistics, whitening: Whitening, leading: int | None = None
) -> NDArray[np.float64]:
    """Return (r, k) rows of `A W = sum_j w_j^1/2 m_j o_j'` for all words of a block.

    W is the whitening, and A the second moment of the model. Topic j is m_j, its weight is w_j, and
    o_j is its direction after whitening. For exact moments, the rows of core words are the
    pseudo-inverse of W', which maps whitened vectors back to words. `A = M2 - a M1 M1'` also has a
    row for every other word, from the documents in which it is counted. With `leading`, return only
    that many first rows.
    """
    form, core = whitening.form, len(whitening.images)
    rows = statistics.word_counts.size if leading is None else leading
    inside = min(statistics.block.size(core), rows)
    products = np.empty((rows, whitening.n_topics))
    products[:inside] = whitening.images[np.arange(core)[statistics.block.rows][:inside]]
    C1, C2, _ = (constant[:rows] for constant in row_constants(statistics, form))
    for start in range(inside, rows, _ROWS):
        part = slice(start, min(start + _ROWS, rows))
        own = statistics.pair_counts[part].astype(np.float64) @ whitening.vectors
        products[part] = quotients(own, C2[part])
    mean = quotients(statistics.moment_counts[:rows, None].astype(np.float64), C1)
    return products - form.mean_share * mean * whitening.first
