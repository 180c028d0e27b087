"""Numba kernels of the likelihood of word pairs: gradients and scores for each row of pair counts.

As those of `kernels`: serial, without the interpreter lock. Each row is computed alone, so its bits
depend on no other row. Numbers have the type of the counts, sums over a row are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

Real = NDArray[Any]

# Type of the sums in the type of the counts: in float32 an error of some 1e-6, and they stay in
# cache.
TILE = 512
# Likelihoods below this are rounded to it, to avoid divisions by zero.
_LEAST = 1e-30
# Allows any order of summation, so that the processor adds eight or sixteen numbers at a time.
_MATH = {"contract", "reassoc", "nsz"}
_NONE, _ONE, _TWO, _THREE, _FOUR = (np.uint64(number) for number in range(5))


@kernel(fastmath=_MATH)
def add_dense_ratios(
    counts: Real,
    left: Real,
    right: Real,
    places: NDArray[np.int64],
    ratios: Real,
    sums: NDArray[np.float64],
) -> None:
    """`sums[i] += (P_i / (left_i right)) right'` of the rows at `places`, with every column.

    counts : (rows, core) P
    left : (r, k), rows of all words of the block
    right : (k, core); four topics at a time pass through the registers while a tile of the row
        stays in cache
    places : (rows,) int64, of the rows in `left` and `sums`
    ratios : (TILE,), work space
    sums : (r, k) float64, added to

    Indices are unsigned, which spares Numba the check for negative ones.
    """
    core, k = right.shape[1], np.uint64(right.shape[0])
    whole = np.uint64(right.shape[0] - right.shape[0] % 4)
    least, nothing = counts.dtype.type(_LEAST), counts.dtype.type(0)
    for row in range(np.uint64(places.size)):
        place = np.uint64(places[row])
        for begin in range(0, core, TILE):
            start, size = np.uint64(begin), np.uint64(min(TILE, core - begin))
            for h in range(size):
                ratios[h] = nothing
            for j in range(_NONE, whole, _FOUR):
                a, b = left[place, j], left[place, j + _ONE]
                c, d = left[place, j + _TWO], left[place, j + _THREE]
                for h in range(size):
                    column = start + h
                    ratios[h] += (
                        a * right[j, column]
                        + b * right[j + _ONE, column]
                        + c * right[j + _TWO, column]
                        + d * right[j + _THREE, column]
                    )
            for j in range(whole, k):
                a = left[place, j]
                for h in range(size):
                    ratios[h] += a * right[j, start + h]
            for h in range(size):
                ratios[h] = counts[row, start + h] / max(ratios[h], least)
            for j in range(_NONE, whole, _FOUR):
                a = b = c = d = nothing
                for h in range(size):
                    column, ratio = start + h, ratios[h]
                    a += ratio * right[j, column]
                    b += ratio * right[j + _ONE, column]
                    c += ratio * right[j + _TWO, column]
                    d += ratio * right[j + _THREE, column]
                sums[place, j] += a
                sums[place, j + _ONE] += b
                sums[place, j + _TWO] += c
                sums[place, j + _THREE] += d
            for j in range(whole, k):
                a = nothing
                for h in range(size):
                    a += ratios[h] * right[j, start + h]
                sums[place, j] += a


@kernel(fastmath=_MATH)
def add_sparse_ratios(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    left: Real,
    right: Real,
    places: NDArray[np.int64],
    gathered: Real,
    sums: NDArray[np.float64],
) -> None:
    """Same as `add_dense_ratios`, for rows that store only the positive counts.

    starts : (rows + 1,) int64, start of the entries of each row
    words, counts : (entries,), core word and P of each entry
    left : (r, wide), as for dense rows, padded with zeros
    right : (core, wide), a row for each word, padded to whole registers
    gathered : (wide,), work space
    """
    wide, k = np.uint64(right.shape[1]), np.uint64(sums.shape[1])
    least, nothing = counts.dtype.type(_LEAST), counts.dtype.type(0)
    for row in range(np.uint64(places.size)):
        place, end = np.uint64(places[row]), starts[row + _ONE]
        for start in range(starts[row], end, TILE):
            for j in range(wide):
                gathered[j] = nothing
            for entry in range(np.uint64(start), np.uint64(min(start + TILE, end))):
                word, likelihood = np.uint64(words[entry]), nothing
                for j in range(wide):
                    likelihood += left[place, j] * right[word, j]
                ratio = counts[entry] / max(likelihood, least)
                for j in range(wide):
                    gathered[j] += ratio * right[word, j]
            for j in range(k):
                sums[place, j] += gathered[j]


@kernel(fastmath=_MATH)
def add_dense_logarithms(
    counts: Real,
    left: Real,
    right: Real,
    offsets: NDArray[np.float64],
    places: NDArray[np.int64],
    likelihoods: Real,
    sums: NDArray[np.float64],
) -> None:
    """`sums[i] += (P_i . log(left_i right), P_i . 1)` of the rows at `places`.

    Arguments are as of `add_dense_ratios`, but `sums` is (r, 2) float64. `offsets`, (core,)
    float64, are added to the logarithm of each column.
    """
    core, k = right.shape[1], np.uint64(right.shape[0])
    least, nothing = counts.dtype.type(_LEAST), counts.dtype.type(0)
    for row in range(np.uint64(places.size)):
        place = np.uint64(places[row])
        for begin in range(0, core, TILE):
            start, size = np.uint64(begin), np.uint64(min(TILE, core - begin))
            for h in range(size):
                likelihoods[h] = nothing
            for j in range(k):
                a = left[place, j]
                for h in range(size):
                    likelihoods[h] += a * right[j, start + h]
            for h in range(size):
                count = counts[row, start + h]
                if count > 0:
                    told = np.log(max(likelihoods[h], least)) + offsets[start + h]
                    sums[place, _NONE] += count * told
                    sums[place, _ONE] += count


@kernel(fastmath=_MATH)
def add_sparse_logarithms(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    left: Real,
    right: Real,
    offsets: NDArray[np.float64],
    places: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Same as `add_dense_logarithms`, for rows as in `add_sparse_ratios`."""
    wide = np.uint64(right.shape[1])
    least, nothing = counts.dtype.type(_LEAST), counts.dtype.type(0)
    for row in range(np.uint64(places.size)):
        place = np.uint64(places[row])
        for entry in range(np.uint64(starts[row]), np.uint64(starts[row + _ONE])):
            word, likelihood = np.uint64(words[entry]), nothing
            for j in range(wide):
                likelihood += left[place, j] * right[word, j]
            told = np.log(max(likelihood, least)) + offsets[word]
            sums[place, _NONE] += counts[entry] * told
            sums[place, _ONE] += counts[entry]


@kernel()
def copy_rows(
    pairs: Real,
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
) -> None:
    """Positive entries of the rows at `places`, one row after another."""
    for row in range(places.size):
        entry = starts[row]
        source = pairs[places[row]]
        for other in range(source.size):
            if source[other] > 0:
                words[entry] = other
                counts[entry] = source[other]
                entry += 1
