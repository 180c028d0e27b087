"""Numba kernels of the likelihood of word pairs under topics, for each row of pair counts.

They are serial and run without the interpreter lock. The result for a row has the same bits
whatever the other rows are. Numbers have the type of the counts, and sums over a row are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

Real = NDArray[Any]

# At most this many numbers are summed in the type of the counts. Then the error in float32 is about
# 1e-6, and the numbers stay in cache.
TILE = 512
GROUP = 4  # number of rows that dense kernels compute together
STRETCH = 16  # number of counts of a row that are tested together, to skip groups of zeros
# Likelihoods below this bound are rounding errors; the bound replaces them before a division.
LEAST = 1e-30
# Allows sums in any order, so that the compiler can add eight or sixteen numbers at a time.
_MATH = {"contract", "reassoc", "nsz"}
_NONE, _ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in range(5))
# Constants for logarithms of float32: bits of 2/3, bits of the mantissa, and the series of log((1 +
# s) / (1 - s)).
_TWO_THIRDS, _MANTISSA_BITS, _MANTISSA = np.int32(0x3F2AAAAB), np.int32(0x7FFFFF), np.int32(23)
_SINGLE = np.float32
_THIRD, _FIFTH, _SEVENTH = np.float32(2 / 3), np.float32(2 / 5), np.float32(2 / 7)
_LOG_2 = np.float32(np.log(2))


@kernel(fastmath=_MATH)
def _likelihoods(
    left: Real, right: Real, row: np.uint64, start: np.uint64, size: np.uint64, found: Real
) -> None:
    """Compute a part of the matrix product `left right`, and write it to `found`.

    The part has `GROUP` rows from `row` on and `size` columns from `start` on. The kernel handles
    four rows and four topics at a time, so that each value of `right` is read once for all four
    rows. This is 2.4 times as fast as one row at a time. Each row is computed by the same
    operations at any position, so it has the same bits. Indices are unsigned, so that Numba does
    not check for negative ones.
    """
    first, second, third, fourth = found[0], found[1], found[2], found[3]
    r0, r1, r2, r3 = row, row + _ONE, row + _TWO, row + _THREE
    for h in range(size):
        first[h] = second[h] = third[h] = fourth[h] = left.dtype.type(0)
    for j in range(_NONE, np.uint64(left.shape[1]), _FOUR):
        j1, j2, j3 = j + _ONE, j + _TWO, j + _THREE
        a0, b0, c0, d0 = left[r0, j], left[r0, j1], left[r0, j2], left[r0, j3]
        a1, b1, c1, d1 = left[r1, j], left[r1, j1], left[r1, j2], left[r1, j3]
        a2, b2, c2, d2 = left[r2, j], left[r2, j1], left[r2, j2], left[r2, j3]
        a3, b3, c3, d3 = left[r3, j], left[r3, j1], left[r3, j2], left[r3, j3]
        for h in range(size):
            column = start + h
            a, b = right[j, column], right[j1, column]
            c, d = right[j2, column], right[j3, column]
            first[h] += a0 * a + b0 * b + c0 * c + d0 * d
            second[h] += a1 * a + b1 * b + c1 * c + d1 * d
            third[h] += a2 * a + b2 * b + c2 * c + d2 * d
            fourth[h] += a3 * a + b3 * b + c3 * c + d3 * d


@kernel(fastmath=_MATH, error_model="numpy")
def add_dense_ratios(
    counts: Real, left: Real, right: Real, least: float, ratios: Real, sums: NDArray[np.float64]
) -> None:
    """`sums_i += (P_i / (left_i right)) right'` for dense rows, `GROUP` at a time.

    counts : (rows, core), pair counts P
    left : (whole groups, k), topics padded with zeros to a multiple of four, as in `right`; rows
        beyond those of P can have any values, and trailing columns of zeros can be missing
    right : (wide, core); a tile of it stays in cache
    least : lower bound of likelihoods; if `left` has no columns, all pairs have this likelihood
    ratios : (GROUP, TILE), work space
    sums : (whole groups, wide) float64 to add to; rows beyond those of P get meaningless numbers
    """
    core, last = right.shape[1], counts.shape[0] - 1
    floor, nothing = counts.dtype.type(least), counts.dtype.type(0)
    first, second, third, fourth = ratios[0], ratios[1], ratios[2], ratios[3]
    for group in range(0, left.shape[0], GROUP):
        row = np.uint64(group)
        for begin in range(0, core, TILE):
            start, size = np.uint64(begin), np.uint64(min(TILE, core - begin))
            _likelihoods(left, right, row, start, size, ratios)
            for place in range(GROUP):
                own, of = ratios[place], counts[min(group + place, last)]
                for h in range(size):
                    own[h] = of[start + h] / max(own[h], floor)
            for j in range(_NONE, np.uint64(right.shape[0]), _TWO):
                a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = nothing
                for h in range(size):
                    a, b = right[j, start + h], right[j + _ONE, start + h]
                    p, q, r, s = first[h], second[h], third[h], fourth[h]
                    a0 += p * a
                    a1 += q * a
                    a2 += r * a
                    a3 += s * a
                    b0 += p * b
                    b1 += q * b
                    b2 += r * b
                    b3 += s * b
                sums[row, j] += a0
                sums[row + _ONE, j] += a1
                sums[row + _TWO, j] += a2
                sums[row + _THREE, j] += a3
                sums[row, j + _ONE] += b0
                sums[row + _ONE, j + _ONE] += b1
                sums[row + _TWO, j + _ONE] += b2
                sums[row + _THREE, j + _ONE] += b3


@kernel(fastmath=_MATH, error_model="numpy")
def add_sparse_ratios(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    left: Real,
    right: Real,
    least: float,
    places: NDArray[np.int64],
    gathered: Real,
    sums: NDArray[np.float64],
) -> None:
    """Do the same as `add_dense_ratios` for sparse rows, which store only counts above 0.

    starts : (rows + 1,) int64, start of the entries of each row
    words, counts : (entries,), core word and pair count of each entry
    left : (r, wide), as for dense rows, padded with zeros
    right : (core, wide), a row for each word, padded to whole registers
    gathered : (wide,), work space
    """
    wide, k = np.uint64(right.shape[1]), np.uint64(sums.shape[1])
    floor, nothing = counts.dtype.type(least), counts.dtype.type(0)
    for row in range(np.uint64(places.size)):
        place, end = np.uint64(places[row]), starts[row + _ONE]
        for start in range(starts[row], end, TILE):
            for j in range(wide):
                gathered[j] = nothing
            for entry in range(np.uint64(start), np.uint64(min(start + TILE, end))):
                word, likelihood = np.uint64(words[entry]), nothing
                for j in range(np.uint64(left.shape[1])):
                    likelihood += left[place, j] * right[word, j]
                ratio = counts[entry] / max(likelihood, floor)
                for j in range(wide):
                    gathered[j] += ratio * right[word, j]
            for j in range(k):
                sums[place, j] += gathered[j]


@kernel(fastmath=_MATH, error_model="numpy")
def _logarithms(numbers: NDArray[np.float32], size: np.uint64) -> None:
    """Replace the first `size` numbers by their logarithms, with errors of about 1e-7.

    The loop computes eight or sixteen logarithms at a time, in a tenth of the time of a scalar
    function.
    """
    one, two = _SINGLE(1), _SINGLE(2)
    for h in range(size):
        bits = np.float32(max(numbers[h], _SINGLE(LEAST))).view(np.int32)
        # scale the mantissa to between 2/3 and 4/3, near 1, where the series converges fast
        moved = np.int32(bits - _TWO_THIRDS)
        exponent = _SINGLE(np.int32(moved >> _MANTISSA))
        mantissa = np.int32((moved & _MANTISSA_BITS) + _TWO_THIRDS).view(np.float32)
        s = (mantissa - one) / (mantissa + one)
        q = s * s
        numbers[h] = exponent * _LOG_2 + s * (two + q * (_THIRD + q * (_FIFTH + q * _SEVENTH)))


@kernel(fastmath=_MATH)
def add_dense_logarithms(
    counts: Real,
    left: Real,
    right: Real,
    shares: NDArray[np.float32],
    means: NDArray[np.float32],
    core_means: NDArray[np.float32],
    offsets: NDArray[np.float32],
    likelihoods: NDArray[np.float32],
    sums: NDArray[np.float64],
) -> None:
    """`sums_i += (P_i . log((1 - s) left_i right + s means_i core_means), ..., P_i . 1)`.

    P_i are the pair counts of row i. The kernel handles dense rows, for each s of the `shares`. The
    last column of `sums` is P_i . 1, the sum of the row. `offsets`, (core,) float32, are added to
    the logarithm of each column. `likelihoods` is work space with `GROUP + 1` rows. Other arguments
    are those of `add_dense_ratios`.
    """
    core, mixed, number = right.shape[1], likelihoods[GROUP], shares.size
    for group in range(0, left.shape[0], GROUP):
        for begin in range(0, core, TILE):
            start, size = np.uint64(begin), np.uint64(min(TILE, core - begin))
            _likelihoods(left, right, np.uint64(group), start, size, likelihoods)
            for place in range(min(GROUP, counts.shape[0] - group)):
                own, of = likelihoods[place], counts[group + place]
                pairs = counts.dtype.type(0)
                for h in range(size):
                    pairs += of[start + h]
                sums[group + place, number] += pairs
                for t in range(number):
                    a, b = _SINGLE(1) - shares[t], shares[t] * means[group + place]
                    for h in range(size):
                        mixed[h] = a * own[h] + b * core_means[start + h]
                    _logarithms(mixed, size)
                    told = counts.dtype.type(0)
                    for h in range(size):
                        told += of[start + h] * (mixed[h] + offsets[start + h])
                    sums[group + place, t] += told


@kernel(fastmath=_MATH)
def add_sparse_logarithms(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    left: Real,
    right: Real,
    shares: NDArray[np.float32],
    means: NDArray[np.float32],
    core_means: NDArray[np.float32],
    offsets: NDArray[np.float32],
    places: NDArray[np.int64],
    likelihoods: NDArray[np.float32],
    sums: NDArray[np.float64],
) -> None:
    """Do the same as `add_dense_logarithms` for sparse rows, given as for `add_sparse_ratios`.

    `means` has an entry for each row of `left`.
    """
    wide, nothing = np.uint64(right.shape[1]), counts.dtype.type(0)
    own, mixed, number = likelihoods[0], likelihoods[GROUP], np.uint64(shares.size)
    for row in range(np.uint64(places.size)):
        place, end = np.uint64(places[row]), starts[row + _ONE]
        for begin in range(starts[row], end, TILE):
            start, size = np.uint64(begin), np.uint64(min(TILE, end - begin))
            pairs = nothing
            for h in range(size):
                word, likelihood = np.uint64(words[start + h]), nothing
                for j in range(wide):
                    likelihood += left[place, j] * right[word, j]
                own[h] = likelihood
                pairs += counts[start + h]
            sums[place, number] += pairs
            for t in range(number):
                a, b, told = _SINGLE(1) - shares[t], shares[t] * means[place], nothing
                for h in range(size):
                    mixed[h] = a * own[h] + b * core_means[np.uint64(words[start + h])]
                _logarithms(mixed, size)
                for h in range(size):
                    told += counts[start + h] * (mixed[h] + offsets[np.uint64(words[start + h])])
                sums[place, t] += told


@kernel()
def copy_rows(
    whole: Real,
    pairs: Real,
    taken: Real,
    least: int,
    entries: NDArray[np.int64],
    dense: Real,
    words: NDArray[np.int32],
    counts: Real,
) -> None:
    """Copy rows of pair counts, `pairs - taken`, as dense or sparse rows.

    Only the first columns are copied, as many as `dense` has. A row with `least` positive entries
    or more in `whole`, the pair counts of all documents, is copied into `dense`. Entries above 0 of
    other rows are copied into `words` and `counts`, one row after another. The kernel fills
    `entries`, (rows,), with the number of entries of each sparse row, or -1 for a row in `dense`.

    taken : a row for each row of pairs, or one for all of them
    dense, words, counts : space for all rows, and for one more entry

    Most of a sparse row is zeros. `STRETCH` zeros one after another are skipped at once.
    """
    several, core, stretch = taken.shape[0] > 1, np.uint64(dense.shape[1]), np.uint64(STRETCH)
    free, entry = 0, 0
    for row in range(entries.size):
        own, less, known, number = pairs[row], taken[row if several else 0], whole[row], 0
        for h in range(core):
            number += known[h] > 0
        if number >= least:
            for h in range(core):
                dense[free, h] = own[h] - less[h]
            free += 1
            entries[row] = -1
            continue
        before = entry
        end = core if number else _NONE
        for begin in range(_NONE, end, stretch):
            size = min(stretch, core - begin)
            if size == stretch:
                some = 0
                for h in range(stretch):
                    some += own[begin + h] > less[begin + h]
                if some == 0:
                    continue
            for h in range(begin, begin + size):
                # write each entry, but advance only past entries above 0, because the processor
                # would often mispredict a branch
                more = own[h] - less[h]
                words[entry] = h
                counts[entry] = more
                entry += more > 0
        entries[row] = entry - before


@kernel()
def split_rows(
    dense_places: NDArray[np.int64],
    dense: Real,
    sparse_places: NDArray[np.int64],
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    even: Real,
    even_dense: Real,
    odd_dense: Real,
    even_entries: NDArray[np.int64],
    odd_entries: NDArray[np.int64],
    even_words: NDArray[np.int32],
    odd_words: NDArray[np.int32],
    even_counts: Real,
    odd_counts: Real,
) -> None:
    """Copy the pair counts of each half like `copy_rows`, given copies of those of both together.

    even : (rows, core) pair counts of the even half, read where the sum of both halves is above 0
    even_dense, odd_dense : like `dense` of `copy_rows`, for each half
    even_entries, odd_entries : (sparse rows,), number of entries of each row in each half, which
        are in `even_words`, `even_counts`, `odd_words` and `odd_counts`
    """
    kind = dense.dtype.type
    for row in range(dense_places.size):
        own = even[dense_places[row]]
        for h in range(np.uint64(dense.shape[1])):
            part = kind(own[h])
            even_dense[row, h] = part
            odd_dense[row, h] = dense[row, h] - part
    e = o = 0
    for row in range(sparse_places.size):
        own, evens, odds = even[sparse_places[row]], e, o
        for entry in range(starts[row], starts[row + 1]):
            word = words[entry]
            part = kind(own[word])
            rest = counts[entry] - part
            # write both entries, but advance only past entries above 0, because the processor would
            # often mispredict a branch
            even_words[e] = odd_words[o] = word
            even_counts[e], odd_counts[o] = part, rest
            e += part > 0
            o += rest > 0
        even_entries[row], odd_entries[row] = e - evens, o - odds
