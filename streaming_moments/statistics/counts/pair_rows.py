"""PairRows: the pair counts of a block of rows, as the likelihood of word pairs reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
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

# A row is stored dense if at least this share of its entries is positive, because a sparse entry
# takes six times as long and twice the bytes. Thresholds from a tenth to a third are equally fast.
_DENSE = 1 / 3
# Whole numbers up to this bound are exact in float32.
_LARGEST_EXACT = 2**24
# Number of float32 in a register of 256 bits.
_LANES = 8
# Number of topics that are computed together for dense rows.
_TOPICS = 4


@dataclass(frozen=True, eq=False)
class PairRows:
    """Rounded pair counts P of a block, in a quarter to a half of the bytes of the exact counts.

    block : the row block, of r words
    scales : (r,) float64, pairs of all documents divided by pairs of the documents in which the
        word is counted: above 1 for a word that was added later, 0 if there is no such document
    dense : (rows, core) float32 or float64, dense rows: those in which a third or more of the
        counts over all documents is above 0
    dense_places, sparse_places : (rows,) int64, positions of the dense and of the other rows in the
        block
    starts, words, counts : (rows + 1,) int64, (entries,) int32, (entries,) float32 or float64,
        core words with counts above 0 in the other rows
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

        Fits use float32; float64 is a reference for tests. Half 0 is the even half, 1 the odd half;
        the scales are always those of all documents. With `leading`, only pairs of the first
        `leading` core words are included. Raises InvalidInput if a half is requested and the
        statistics have no halves.

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
        pairs, taken = _pairs(statistics, half)
        whole, least = read_only(statistics.pair_counts), max(math.ceil(_DENSE * core), 1)
        entries, size = np.empty(rows, dtype=np.int64), rows * (least - 1) + 1
        # The arrays have the largest size that could be needed. The operating system gives no
        # memory to the parts that are never written.
        dense = np.empty((rows, core), dtype=dtype)
        words, counts = np.empty(size, dtype=np.int32), np.empty(size, dtype=dtype)
        likelihood_kernels.copy_rows(whole, pairs, taken, least, entries, dense, words, counts)
        full = entries < 0
        dense_places, sparse_places = np.flatnonzero(full), np.flatnonzero(~full)
        dense.resize((dense_places.size, core), refcheck=False)
        _, C2, _ = row_constants(statistics, Mixture())
        every = np.full(rows, statistics.row_lengths.whole.C2, dtype=np.float64)
        scales, kept = quotients(every, C2[:rows]), _kept(entries[~full], words, counts)
        return cls(statistics.block, scales, dense, dense_places, sparse_places, *kept)

    @classmethod
    def with_halves(
        cls, statistics: Statistics, leading: int | None = None
    ) -> tuple[PairRows, PairRows, PairRows]:
        """Return the pair counts of all documents, the even half and the odd half, as `of` does.

        One pass over the counts builds all three, in half of the time of three passes.

        Examples
        --------
        >>> from streaming_moments import Basis, CountBatch, MomentStatistics
        >>> batch = CountBatch.from_csr([[2, 0], [1, 1], [1, 2]])
        >>> statistics = MomentStatistics.of(batch, Basis(np.eye(2, 1, dtype=np.int8), 2))
        >>> [part.dense.tolist() for part in PairRows.with_halves(statistics)]
        [[[2.0, 3.0], [3.0, 2.0]], [[2.0, 0.0], [0.0, 0.0]], [[0.0, 3.0], [3.0, 2.0]]]
        """
        even, whole = _even(statistics), cls.of(statistics, leading=leading)
        largest = max(held.max(initial=0) for held in (whole.dense, whole.counts))
        if even.dtype.kind == "f" or largest > _LARGEST_EXACT:
            # Counts in `whole` were rounded, so `whole` minus the even half would not be exactly
            # the odd half. Build both halves from the exact counts.
            even_rows = cls.of(statistics, half=0, leading=leading)
            return whole, even_rows, cls.of(statistics, half=1, leading=leading)
        size, rows = whole.words.size + 1, whole.sparse_places.size
        dense = [np.empty_like(whole.dense) for _ in range(2)]
        entries = [np.empty(rows, dtype=np.int64) for _ in range(2)]
        words = [np.empty(size, dtype=np.int32) for _ in range(2)]
        counts = [np.empty(size, dtype=np.float32) for _ in range(2)]
        likelihood_kernels.split_rows(
            whole.dense_places,
            whole.dense,
            whole.sparse_places,
            whole.starts,
            whole.words,
            whole.counts,
            read_only(even),
            *dense,
            *entries,
            *words,
            *counts,
        )
        halves = [
            cls(whole.block, whole.scales, one, whole.dense_places, whole.sparse_places, *kept)
            for one, kept in zip(dense, map(_kept, entries, words, counts), strict=True)
        ]
        return whole, halves[0], halves[1]

    def ratios(
        self,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        expected: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the (r, k) product `R right`, where `R = P / (left right')`.

        P are the pair counts. R is 0 where P is 0, and is not stored. `left` and `right` are
        divided by the expected frequencies of the words before they are rounded, so that all
        likelihoods are near 1.

        left : (r, k) float64, rows of the words of the block; trailing columns of zeros can be
            missing
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
        own, core = expected[self.block.rows], expected[: len(right)]
        lefts, least = self._filled(quotients(left, own)), likelihood_kernels.LEAST
        sums = self._summed(lefts, left.shape[1], quotients(right, core), least)
        return quotients(sums, own)

    def products(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (r, k) product of the pair counts and `right`, which is as for `ratios`."""
        lefts = np.zeros((self.scales.size, 0), dtype=self.counts.dtype)
        return self._summed(lefts, 0, right, 1.0)

    def _summed(
        self, lefts: NDArray[Any], topics: int, right: NDArray[np.float64], least: float
    ) -> NDArray[np.float64]:
        """Return (r, k) `ratios`, where the caller has already divided and padded both factors."""
        rights, columns, wide = *self._both_ways(right), right.shape[1]
        sums = np.zeros((len(lefts), wide))
        room = np.empty((likelihood_kernels.GROUP, likelihood_kernels.TILE), self.counts.dtype)
        dense, found = self._dense_rows(lefts, topics, len(columns))
        likelihood_kernels.add_dense_ratios(self.dense, dense, columns, least, room, found)
        sums[self.dense_places] = found[: self.dense_places.size, :wide]
        gathered = np.empty(rights.shape[1], dtype=self.counts.dtype)
        likelihood_kernels.add_sparse_ratios(
            self.starts,
            self.words,
            self.counts,
            lefts,
            rights,
            least,
            self.sparse_places,
            gathered,
            sums,
        )
        return np.asarray(sums * self.scales[:, None])

    def logarithms(
        self,
        left: NDArray[np.float64],
        right: NDArray[np.float64],
        expected: NDArray[np.float64],
        means: NDArray[np.float64] | None = None,
        shares: Sequence[float] = (0.0,),
    ) -> NDArray[np.float64]:
        """Return sums of `P log((1 - s) left right' + s means means')` over each row.

        P are the pair counts, and the logarithm is of their likelihood under a topic model.
        The result, (r, shares + 1), has a column for each share s; the last column is the sum of P.
        Other arguments are as for `ratios`.

        means : (n,) float64, for shares above 0
        """
        own = expected[self.block.rows]
        lefts = self._filled(quotients(left, own))
        rights, columns = self._both_ways(quotients(right, expected[: len(right)]))
        lifts = quotients(expected if means is None else means, expected).astype(np.float32)
        mixed, core_lifts = np.array(shares, dtype=np.float32), lifts[: len(right)]
        own_lifts = np.ascontiguousarray(lifts[self.block.rows])
        offsets, known = np.log(np.where(expected > 0, expected, 1.0)), own > 0
        sums = np.zeros((len(left), len(shares) + 1))
        core = offsets[: len(right)].astype(np.float32)
        room = np.empty((likelihood_kernels.GROUP + 1, likelihood_kernels.TILE), np.float32)
        dense, found = self._dense_rows(lefts, left.shape[1], len(shares) + 1)
        likelihood_kernels.add_dense_logarithms(
            self.dense,
            dense,
            columns,
            mixed,
            own_lifts[self.dense_places],
            core_lifts,
            core,
            room,
            found,
        )
        sums[self.dense_places] = found[: self.dense_places.size]
        likelihood_kernels.add_sparse_logarithms(
            self.starts,
            self.words,
            self.counts,
            lefts,
            rights,
            mixed,
            own_lifts,
            core_lifts,
            core,
            self.sparse_places,
            room,
            sums,
        )
        sums[:, :-1] += sums[:, -1:] * offsets[self.block.rows, None]
        return np.asarray(sums * (known * self.scales)[:, None])

    def _dense_rows(
        self, lefts: NDArray[Any], topics: int, columns: int
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return those rows of `lefts` that are dense, and zeros to which sums can be added.

        Both are padded to whole groups of rows.
        """
        number, k = self.dense_places.size, _filled_up(topics, _TOPICS)
        dense = np.zeros((_filled_up(number, likelihood_kernels.GROUP), k), dtype=lefts.dtype)
        dense[:number] = lefts[self.dense_places, :k]
        return dense, np.zeros((len(dense), columns))

    def _both_ways(self, right: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return `right` with columns padded to whole registers, and its padded transpose."""
        rights = self._filled(right)
        columns = rights[:, : _filled_up(right.shape[1], _TOPICS)]
        return rights, np.ascontiguousarray(columns.T)

    def _filled(self, side: NDArray[np.float64]) -> NDArray[Any]:
        """Convert a matrix to the type of the counts, with columns padded to whole registers."""
        filled = np.zeros((len(side), _filled_up(side.shape[1], _LANES)), self.counts.dtype)
        filled[:, : side.shape[1]] = side
        return filled


def _kept(
    entries: NDArray[np.int64], words: NDArray[np.int32], counts: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Return the starts of rows, and their entries without the unused space."""
    starts = np.concatenate([[0], np.cumsum(entries)])
    for array in (words, counts):
        # shrink in place, which copies nothing
        array.resize(int(starts[-1]), refcheck=False)
    return starts, words, counts


def _filled_up(number: int, size: int) -> int:
    """Round a number up to a multiple of a size."""
    return -(-number // size) * size


def half_pairs(statistics: Statistics, half: int) -> NDArray[Any]:
    """Return the (r, core) pair counts of one half of the documents: 0 is even, 1 is odd.

    The statistics are those of one block of rows. Raises InvalidInput if they have no halves.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch, MomentStatistics
    >>> batch = CountBatch.from_csr([[2, 0], [1, 1], [1, 2]])
    >>> statistics = MomentStatistics.of(batch, Basis(np.eye(2, 1, dtype=np.int8), 2))
    >>> half_pairs(statistics, 0).tolist(), half_pairs(statistics, 1).tolist()
    ([[2, 0], [0, 0]], [[0, 3], [3, 2]])
    """
    even = _even(statistics)
    return statistics.pair_counts - even if half else even


def _even(statistics: Statistics) -> NDArray[Any]:
    """Return the (r, core) pair counts of the even half."""
    if statistics.even_pair_counts is None:
        raise InvalidInput(
            "the statistics have no halves of the documents, which are needed here",
            "count them with {rebase.halves}",
        )
    return statistics.even_pair_counts


def _pairs(statistics: Statistics, half: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two arrays whose difference is the pair counts of the half, or of all documents."""
    pairs = statistics.pair_counts if half != 0 else _even(statistics)
    taken = _even(statistics) if half else np.zeros((1, pairs.shape[1]), dtype=pairs.dtype)
    return read_only(pairs), read_only(taken)
