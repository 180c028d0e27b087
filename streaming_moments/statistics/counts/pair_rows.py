"""PairRows: pair counts of a block of rows, for likelihoods of word pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Mixture
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics.counts.kernels import likelihood_kernels
from streaming_moments.statistics.counts.lengths.row_lengths import quotients
from streaming_moments.statistics.counts.weighted import Statistics, row_constants
from streaming_moments.statistics.row_block import RowBlock

# Share of positive entries above which a row is stored dense: a sparse entry takes three times as
# long.
_DENSE = 1 / 3
# Numbers in the widest register.
_LANES = 16
# Rows read at a time, which stay in cache; the odd half, a difference, needs twice the memory.
_ROWS = 16


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rounded pair counts P of a block, in a quarter to a half of the bytes of the statistics.

    block : row block of r words
    scales : (r,) float64, ratio of the pairs of all documents to those of documents that count the
        word: above 1 for a word added later, 0 if no document counts it
    dense : (rows, core) float32 or float64, rows with a third or more positive entries
    dense_places, sparse_places : (rows,) int64, indices of these rows in the block, and of the
        others
    starts, words, counts : (rows + 1,) int64, (entries,) int32, (entries,) float32 or float64, the
        other rows: core words with counts above 0
    """

    block: RowBlock
    scales: NDArray[np.float64]
    dense: NDArray[Any]
    dense_places: NDArray[np.int64]
    sparse_places: NDArray[np.int64]
    starts: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[Any]

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        dtype: type[np.floating[Any]] = np.float32,
        half: int | None = None,
        leading: int | None = None,
    ) -> PairRows:
        """Build the pair counts of one block of rows, of all documents or of one half.

        Fits use float32; float64 is a reference. Half 0 is even, 1 odd; the scales are those of all
        documents. Raises InvalidInput for a half of statistics without halves. With `leading` only
        pairs among that many first words, which are in the core.

        Examples
        --------
        >>> from streaming_moments import Basis, CountBatch, MomentStatistics
        >>> batch = CountBatch.from_csr([[2, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]])
        >>> basis = Basis(np.eye(4, 1, dtype=np.int8), 4)
        >>> rows = PairRows.of(MomentStatistics.of(batch, basis))
        >>> rows.dense_places, rows.dense[0], rows.words, rows.counts
        (array([0, 1, 3]), array([2., 2., 0., 0.], dtype=float32), \
array([3], dtype=int32), array([1.], dtype=float32))
        """
        rows, core = statistics.pair_counts.shape
        if leading is not None:
            rows, core = statistics.block.size(leading), leading
        strips = [slice(start, min(start + _ROWS, rows)) for start in range(0, rows, _ROWS)]
        entries = np.empty(rows, dtype=np.int64)
        for strip in strips:
            entries[strip] = np.count_nonzero(_pairs(statistics, half, strip, core), axis=1)
        full = entries >= max(_DENSE * core, 1)
        dense_places, sparse_places = np.flatnonzero(full), np.flatnonzero(~full)
        dense = np.empty((dense_places.size, core), dtype=dtype)
        starts = np.concatenate([[0], np.cumsum(entries[sparse_places])])
        words, counts = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1], dtype=dtype)
        for strip in strips:
            pairs, first = _pairs(statistics, half, strip, core), strip.start
            held, own = (_within(places, strip) for places in (dense_places, sparse_places))
            for row in range(held.start, held.stop):
                dense[row] = pairs[dense_places[row] - first]
            places = sparse_places[own] - first
            likelihood_kernels.copy_rows(read_only(pairs), places, starts[own], words, counts)
        _, C2, _ = row_constants(statistics, Mixture())
        whole = statistics.row_lengths.whole.C2
        scales = quotients(np.full(rows, whole, dtype=np.float64), C2[:rows])
        return cls(
            statistics.block, scales, dense, dense_places, sparse_places, starts, words, counts
        )

    def ratios(
        self,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        expected: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """(r, k) `R right` with `R = P / (left right')`, 0 where P is 0; R is never held.

        Both sides are divided by the expected frequencies of the words before rounding, so that all
        likelihoods are near 1.

        left : (r, k) float64, rows of the words of the block
        right : (core, k) float64, rows of the core words
        expected : (n,) float64, frequency of each word, 0 where it never occurs

        Examples
        --------
        >>> from streaming_moments import Basis, CountBatch, MomentStatistics
        >>> batch = CountBatch.from_csr([[3, 2], [1, 4]])
        >>> statistics = MomentStatistics.of(batch, Basis(np.eye(2, 1, dtype=np.int8), 2))
        >>> left, right = np.array([[0.25], [0.75]]), np.array([[0.5], [0.5]])
        >>> PairRows.of(statistics).ratios(left, right, np.array([0.4, 0.6])).ravel().round(4)
        array([64., 32.])
        >>> (statistics.pair_counts / (left @ right.T) @ right).ravel()
        array([64., 32.])
        """
        own = expected[self.block.rows]
        lefts, rights, columns = self._sides(left, right, expected)
        sums = np.zeros((len(left), right.shape[1]))
        room = np.empty(max(likelihood_kernels.TILE, rights.shape[1]), dtype=self.counts.dtype)
        likelihood_kernels.add_dense_ratios(
            self.dense, lefts, columns, self.dense_places, room, sums
        )
        likelihood_kernels.add_sparse_ratios(
            self.starts, self.words, self.counts, lefts, rights, self.sparse_places, room, sums
        )
        return quotients(sums * self.scales[:, None], own)

    def products(
        self, right: NDArray[np.float64], expected: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(r, k) `P right` over core words that are expected to occur; arguments as for `ratios`.

        For a model of independent words these are the sums of `ratios`.
        """
        own, core = expected[self.block.rows], len(right)
        left = np.zeros((own.size, right.shape[1] + 1))
        left[:, 0] = own
        rights = np.hstack([expected[:core, None], expected[:core, None] * right])
        return self.ratios(left, rights, expected)[:, 1:] * own[:, None]

    def logarithms(
        self,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        expected: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """(r, 2): sums of `P log(left right')` and of P over each row; arguments as `ratios`."""
        own = expected[self.block.rows]
        lefts, rights, columns = self._sides(left, right, expected)
        offsets, known = np.log(np.where(expected > 0, expected, 1.0)), own > 0
        sums = np.zeros((len(left), 2))
        core = offsets[: len(right)]
        room = np.empty(likelihood_kernels.TILE, dtype=self.counts.dtype)
        likelihood_kernels.add_dense_logarithms(
            self.dense, lefts, columns, core, self.dense_places, room, sums
        )
        likelihood_kernels.add_sparse_logarithms(
            self.starts, self.words, self.counts, lefts, rights, core, self.sparse_places, sums
        )
        sums[:, 0] += sums[:, 1] * offsets[self.block.rows]
        return np.asarray(sums * (known * self.scales)[:, None])

    def _sides(
        self,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        expected: NDArray[np.float64],
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Both sides by the frequencies, in whole registers, and the right one by topics."""
        k, core, dtype = right.shape[1], right.shape[0], self.counts.dtype
        wide = -(-k // _LANES) * _LANES
        lefts = np.zeros((len(left), wide), dtype=dtype)
        lefts[:, :k] = quotients(left, expected[self.block.rows])
        rights = np.zeros((core, wide), dtype=dtype)
        rights[:, :k] = quotients(right, expected[:core])
        return lefts, rights, np.ascontiguousarray(rights[:, :k].T)


def half_pairs(statistics: Statistics, half: int, rows: slice = slice(None)) -> NDArray[Any]:
    """(r, core) pair counts of one half of the documents, 0 the even and 1 the odd one.

    The statistics are one block of rows. Raises InvalidInput if they have no halves.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[2, 0], [1, 1], [1, 2]])
    >>> statistics = MomentStatistics.of(batch, Basis(np.eye(2, 1, dtype=np.int8), 2))
    >>> half_pairs(statistics, 0).tolist(), half_pairs(statistics, 1).tolist()
    ([[2, 0], [0, 0]], [[0, 3], [3, 2]])
    """
    even = statistics.even_pair_counts
    if even is None:
        raise InvalidInput(
            "the statistics have no halves of the documents to compare; gather them with "
            "halves=True, or rebase a store that was created without halves"
        )
    return statistics.pair_counts[rows] - even[rows] if half else even[rows]


def _pairs(statistics: Statistics, half: int | None, rows: slice, core: int) -> NDArray[Any]:
    """Some rows of some words; the odd half is a difference, so few rows are held at a time."""
    pairs = statistics.pair_counts[rows] if half is None else half_pairs(statistics, half, rows)
    return np.ascontiguousarray(pairs[:, :core])


def _within(places: NDArray[np.int64], rows: slice) -> slice:
    """Which increasing indices are in a slice of rows."""
    first, last = np.searchsorted(places, [rows.start, rows.stop]).tolist()
    return slice(first, last)
