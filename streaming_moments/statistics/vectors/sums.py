"""Sums of products of rows of the grid, by exact matrix products in floating point.

All numbers are whole. A float32 holds whole numbers up to 2^24 exactly, and a float64 up to 2^53. A
partial sum of products of two columns is at most the larger one of the sums of their squares. So a
matrix product whose diagonal stays below this limit is exact, in whatever order BLAS adds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.packing import packed_size
from streaming_moments.statistics.vectors.statistics import (
    FIRST,
    FOURTH,
    NORMS,
    SECOND,
    SKETCHED_FIRST,
    SKETCHED_SECOND,
    SQUARES,
    THIRD,
)

LARGEST_FLOAT_SUM = 2**53
_LARGEST_SINGLE = 2.0**24
# Number of columns that are multiplied by themselves and all later columns at a time, so that only
# half of a symmetric product is computed. Fewer columns are slower.
_PANEL = 256
# Number of rows that one matrix product handles. With fewer rows, additions take most of the time.
# More rows do not fit in the cache.
_CHUNK = 2048
# _FEW: a chunk has at most this many rows if the products of pairs of columns are in memory.
# _PAIRED: number of columns whose products with earlier columns are in memory at a time.
_FEW, _PAIRED = 512, 8


def sums_of(
    rows: NDArray[np.int16],
    sketches: NDArray[np.int32],
    norms: NDArray[np.int64],
    largest: int,
    squares: bool = False,
    fourth: bool = False,
) -> dict[str, NDArray[np.int64]]:
    """Return the sums over rows, each a flat int64 array, as in `VectorStatistics`.

    rows : (N, d) int16, rows x of the grid
    sketches : (N, s) int32, their sketches y
    norms : (N,) int64, their squared norms x.x
    largest : largest value that a row adds to an entry of a sum, below 2^53
    squares, fourth : whether to compute these sums as well

    Examples
    --------
    >>> rows = np.array([[1, 2], [0, -1]], dtype=np.int16)
    >>> found = sums_of(rows, rows.astype(np.int32), np.array([5, 1]), largest=8)
    >>> found["second"], found["third"]
    (array([1, 2, 5]), array([1, 2, 4, 7]))
    """
    chunk = max(1, min(_CHUNK, LARGEST_FLOAT_SUM // max(1, largest) - 1))
    found = {FIRST: rows.sum(axis=0, dtype=np.int64), SECOND: _second(rows, chunk)}
    found |= _sketched(sketches, norms, chunk)
    if squares:
        found[SQUARES] = _squares(rows, chunk)
    if fourth:
        found[FOURTH] = _fourth(sketches, chunk)
    return found


def bytes_beside(width: int, columns: int, squares: bool = False, fourth: bool = False) -> int:
    """Return the bytes that `sums_of` needs besides the sums, for rows of `width` numbers.

    Examples
    --------
    >>> bytes_beside(4096, 50) >> 20
    196
    """
    pairs = packed_size(columns)
    held = [8 * packed_size(width) + 4 * _PANEL * width, 12 * columns**3]
    # for squares and fourth moments, the sum of a chunk is in memory twice: as floats and integers
    held += [16 * width**2] * squares + [(25 * pairs + 24 * _FEW) * pairs] * fourth
    # besides a chunk, the previous chunk or the squares of the chunk are in memory
    return max(held) + 16 * _CHUNK * width


def _second(rows: NDArray[np.int16], chunk: int) -> NDArray[np.int64]:
    width = rows.shape[1]
    panels = [(start, min(start + _PANEL, width)) for start in range(0, width, _PANEL)]
    totals = [np.zeros((stop - start, width - start), dtype=np.int64) for start, stop in panels]
    single = True
    for part in _chunks(rows, chunk):
        if single:
            wide: NDArray[Any] = part.astype(np.float32)
            # Partial sums of squares never decrease. So if the last one is below the limit of
            # float32, all of them were exact.
            squares = np.einsum("ni,ni->i", wide, wide)
            single = bool(squares.max(initial=0) < _LARGEST_SINGLE)
        if not single:
            wide = part.astype(np.float64)
        for total, (start, stop) in zip(totals, panels, strict=True):
            product = wide[:, start:stop].T @ wide[:, start:]
            total += product.astype(np.int64)
    rising = [panel[place, place:] for panel in totals for place in range(len(panel))]
    return np.concatenate(rising)


def _sketched(
    sketches: NDArray[np.int32], norms: NDArray[np.int64], chunk: int
) -> dict[str, NDArray[np.int64]]:
    width = sketches.shape[1]
    pairs = np.zeros((width, width), dtype=np.int64)
    with_norms = np.zeros(width, dtype=np.int64)
    for part, sizes in zip(_chunks(sketches, chunk), _chunks(norms, chunk), strict=True):
        wide = part.astype(np.float64)
        pairs += (wide.T @ wide).astype(np.int64)
        with_norms += (sizes.astype(np.float64) @ wide).astype(np.int64)
    return {
        SKETCHED_FIRST: sketches.sum(axis=0, dtype=np.int64),
        SKETCHED_SECOND: pairs[np.triu_indices(width)],
        NORMS: with_norms,
        THIRD: _third(sketches, min(chunk, _FEW)),
    }


def _third(sketches: NDArray[np.int32], chunk: int) -> NDArray[np.int64]:
    """Return the sums of products of three columns a, b and c.

    The function handles a few columns b at a time. It multiplies all pairs `a <= b` by every column
    c from the first of these b on.
    """
    width = sketches.shape[1]
    panels = [(start, min(start + _PAIRED, width)) for start in range(0, width, _PAIRED)]
    number = [sum(range(start + 1, stop + 1)) for start, stop in panels]
    totals = [
        np.zeros((size, width - start), dtype=np.int64)
        for size, (start, _) in zip(number, panels, strict=True)
    ]
    for part in _chunks(sketches, chunk):
        wide: NDArray[Any] = np.ascontiguousarray(part.T, dtype=np.float64)
        # Use float32 if it is exact: a partial sum of products of three columns is at most the
        # largest sum of cubes.
        if (np.abs(wide) ** 3).sum(axis=1).max(initial=0) < _LARGEST_SINGLE:
            wide = wide.astype(np.float32)
        held = np.empty((max(number, default=0), len(part)), dtype=wide.dtype)
        for total, (start, stop) in zip(totals, panels, strict=True):
            place = 0
            for b in range(start, stop):
                np.multiply(wide[: b + 1], wide[b], out=held[place : place + b + 1])
                place += b + 1
            total += (held[:place] @ wide[start:].T).astype(np.int64)
    full = np.zeros((width,) * 3, dtype=np.int64)
    for total, (start, stop) in zip(totals, panels, strict=True):
        place = 0
        for b in range(start, stop):
            full[: b + 1, b, start:] = total[place : place + b + 1]
            place += b + 1
    rising = [full[a, a:, a:][np.triu_indices(width - a)] for a in range(width)]
    return np.concatenate(rising)


def _squares(rows: NDArray[np.int16], chunk: int) -> NDArray[np.int64]:
    total = np.zeros((rows.shape[1],) * 2, dtype=np.int64)
    for part in _chunks(rows, chunk):
        wide = part.astype(np.float64)
        total += (wide.T @ wide**2).astype(np.int64)
    return total.ravel()


def _fourth(sketches: NDArray[np.int32], chunk: int) -> NDArray[np.int64]:
    width = sketches.shape[1]
    first, second = np.triu_indices(width)
    total = np.zeros((first.size, first.size), dtype=np.int64)
    for part in _chunks(sketches, min(chunk, _FEW)):
        wide = part.astype(np.float64)
        pairs = wide[:, first] * wide[:, second]
        total += (pairs.T @ pairs).astype(np.int64)
    # keep the entries a <= b <= c <= d: pairs are ordered, so these are the pairs from (b, b) on
    equal = np.flatnonzero(first == second)
    found: NDArray[np.int64] = total[np.arange(first.size) >= equal[second][:, None]]
    return found


def _chunks(rows: NDArray[Any], chunk: int) -> Iterator[NDArray[Any]]:
    return (rows[start : start + chunk] for start in range(0, len(rows), chunk))
