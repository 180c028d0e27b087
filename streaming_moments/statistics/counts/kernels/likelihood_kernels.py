"""Numba kernels of the likelihood of word pairs: what each row of pair counts asks of the topics.

As those of `kernels`: serial, without the interpreter lock. Each row is worked out alone, so its
bits depend on no other row. Numbers are of the type of the counts, sums over a row float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Real = NDArray[Any]

# What is summed in the type of the counts: in float32 an error of some 1e-6, and it stays in cache.
_TILE = 512
# Below it a likelihood is rounded to nothing, and nothing may be divided by it.
_LEAST = 1e-30
# Sums may be taken in any order, which lets them be taken eight or sixteen at a time.
_MATH = {"contract", "reassoc", "nsz"}


@njit(cache=True, nogil=True, fastmath=_MATH)
def add_dense_ratios(
    counts: Real, left: Real, right: Real, places: NDArray[np.int64], sums: NDArray[np.float64]
) -> None:
    """`sums[i] += (P_i / (left_i right)) right'` of the rows at `places`, with every column.

    counts : (rows, core) P
    left : (r, k), rows of all words of the block
    right : (k, core); four topics at a time pass through the registers while a tile of the row
        stays in cache
    places : (rows,) int64, of the rows in `left` and `sums`
    sums : (r, k) float64, added to
    """
    k, core = right.shape
    ratios = np.empty(_TILE, dtype=counts.dtype)
    least = counts.dtype.type(_LEAST)
    for row in range(places.size):
        place = places[row]
        for start in range(0, core, _TILE):
            stop = min(start + _TILE, core)
            size = stop - start
            ratios[:] = 0
            for j in range(0, k - k % 4, 4):
                a, b = left[place, j], left[place, j + 1]
                c, d = left[place, j + 2], left[place, j + 3]
                one, two = right[j, start:stop], right[j + 1, start:stop]
                three, four = right[j + 2, start:stop], right[j + 3, start:stop]
                for h in range(size):
                    ratios[h] += a * one[h] + b * two[h] + c * three[h] + d * four[h]
            for j in range(k - k % 4, k):
                a, one = left[place, j], right[j, start:stop]
                for h in range(size):
                    ratios[h] += a * one[h]
            own = counts[row, start:stop]
            for h in range(size):
                ratios[h] = own[h] / max(ratios[h], least)
            for j in range(0, k - k % 4, 4):
                one, two = right[j, start:stop], right[j + 1, start:stop]
                three, four = right[j + 2, start:stop], right[j + 3, start:stop]
                a = b = c = d = counts.dtype.type(0)
                for h in range(size):
                    ratio = ratios[h]
                    a += ratio * one[h]
                    b += ratio * two[h]
                    c += ratio * three[h]
                    d += ratio * four[h]
                sums[place, j] += a
                sums[place, j + 1] += b
                sums[place, j + 2] += c
                sums[place, j + 3] += d
            for j in range(k - k % 4, k):
                one, a = right[j, start:stop], counts.dtype.type(0)
                for h in range(size):
                    a += ratios[h] * one[h]
                sums[place, j] += a


@njit(cache=True, nogil=True, fastmath=_MATH)
def add_sparse_ratios(
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
    left: Real,
    right: Real,
    places: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """As `add_dense_ratios`, for rows of which only the counts above 0 are held.

    starts : (rows + 1,) int64, of the entries of each row
    words, counts : (entries,), core word and P of each
    left : (r, wide), as of dense rows, filled up with zeros
    right : (core, wide), a row for each word, filled up to whole registers
    """
    wide, k = right.shape[1], sums.shape[1]
    gathered = np.empty(wide, dtype=counts.dtype)
    least = counts.dtype.type(_LEAST)
    for row in range(places.size):
        place = places[row]
        own = left[place]
        for start in range(starts[row], starts[row + 1], _TILE):
            gathered[:] = 0
            for entry in range(start, min(start + _TILE, starts[row + 1])):
                other = right[words[entry]]
                likelihood = counts.dtype.type(0)
                for j in range(wide):
                    likelihood += own[j] * other[j]
                ratio = counts[entry] / max(likelihood, least)
                for j in range(wide):
                    gathered[j] += ratio * other[j]
            for j in range(k):
                sums[place, j] += gathered[j]


@njit(cache=True, nogil=True, fastmath=_MATH)
def add_dense_logarithms(
    counts: Real,
    left: Real,
    right: Real,
    offsets: NDArray[np.float64],
    places: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """`sums[i] += (P_i . log(left_i right), P_i . 1)` of the rows at `places`.

    Arguments are as of `add_dense_ratios`, but `sums` is (r, 2) float64. `offsets`, (core,)
    float64, are added to the logarithm of each column.
    """
    k, core = right.shape
    likelihoods = np.empty(_TILE, dtype=counts.dtype)
    least = counts.dtype.type(_LEAST)
    for row in range(places.size):
        place = places[row]
        for start in range(0, core, _TILE):
            stop = min(start + _TILE, core)
            likelihoods[:] = 0
            for j in range(k):
                a, one = left[place, j], right[j, start:stop]
                for h in range(stop - start):
                    likelihoods[h] += a * one[h]
            for h in range(stop - start):
                count = counts[row, start + h]
                if count > 0:
                    told = np.log(max(likelihoods[h], least)) + offsets[start + h]
                    sums[place, 0] += count * told
                    sums[place, 1] += count


@njit(cache=True, nogil=True, fastmath=_MATH)
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
    """As `add_dense_logarithms`, of rows as `add_sparse_ratios` has them."""
    wide = right.shape[1]
    least = counts.dtype.type(_LEAST)
    for row in range(places.size):
        place = places[row]
        own = left[place]
        for entry in range(starts[row], starts[row + 1]):
            other = right[words[entry]]
            likelihood = counts.dtype.type(0)
            for j in range(wide):
                likelihood += own[j] * other[j]
            told = np.log(max(likelihood, least)) + offsets[words[entry]]
            sums[place, 0] += counts[entry] * told
            sums[place, 1] += counts[entry]


@njit(cache=True, nogil=True)
def copy_rows(
    pairs: Real,
    places: NDArray[np.int64],
    starts: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: Real,
) -> None:
    """The entries above 0 of the rows at `places`, one row after another."""
    for row in range(places.size):
        entry = starts[row]
        source = pairs[places[row]]
        for other in range(source.size):
            if source[other] > 0:
                words[entry] = other
                counts[entry] = source[other]
                entry += 1
