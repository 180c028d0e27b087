"""VectorStatistics: sums of dense rows on the grid, exact and additive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.packing import packed_size
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays, IntegerTotals
from streaming_moments.statistics.row_block import RowBlock, interleaved
from streaming_moments.statistics.views.statistics import EVEN, AdditiveStatistics

FIRST, SECOND = "first", "second"
SKETCHED_FIRST, SKETCHED_SECOND = "sketched_first", "sketched_second"
NORMS, THIRD = "norms", "third"
SQUARES, FOURTH = "squares", "fourth"
_SLACK = 1e-9  # relative tolerance for rounding errors when float64 products of sums are compared


@dataclass(frozen=True)
class VectorTotals(IntegerTotals):
    """Totals over all records; all row blocks of the same records have the same totals.

    n_documents : number of records read, including those that are not numeric
    n_tokens : number N of vectors counted
    clipped : number of vectors beyond the radius, which were clipped to it
    even_documents : number of vectors in the even half; 0 without halves
    largest : upper bound of the entries of the sums: the largest value that a vector adds to any
        entry, summed over all vectors

    Examples
    --------
    >>> both = VectorTotals(3, 2, 0, 1, 70) + VectorTotals(1, 1, 1, 0, 30)
    >>> both.n_tokens, both.bound, both - VectorTotals(1, 1, 1, 0, 30)
    (3, 100, VectorTotals(n_documents=3, n_tokens=2, clipped=0, even_documents=1, largest=70))
    """

    table: ClassVar[str] = "vector_totals"
    n_documents: int = 0
    n_tokens: int = 0
    clipped: int = 0
    even_documents: int = 0
    largest: int = 0

    @property
    def bound(self) -> int:
        """Upper bound of the entries of the row arrays."""
        return self.largest

    @property
    def without(self) -> int:
        """Number of records that were skipped because they are not numeric."""
        return self.n_documents - self.n_tokens

    def half(self, odd: bool) -> VectorTotals:
        """Return the totals of one half; `clipped` is 0, as it is not counted for each half."""
        held = self.n_tokens - self.even_documents if odd else self.even_documents
        return VectorTotals(held, held, 0, 0, self.largest)


@dataclass(frozen=True, eq=False)
class VectorStatistics(AdditiveStatistics):
    """Sums over N rows x (d,) of the grid and their sketches y (s,).

    A sum is one flat array, which is divided into the rows of the foundation (usually one row):

    =================  ====================================  ===========================
    name               entries                               content
    =================  ====================================  ===========================
    `first`            d                                     sum x
    `second`           d (d + 1) / 2                         sum x x'
    `sketched_first`   s                                     sum y
    `sketched_second`  s (s + 1) / 2                         sum y y'
    `norms`            s                                     sum y (x.x)
    `third`            s (s + 1) (s + 2) / 6                 sum y (x) y (x) y
    `squares`          d d, optional                         sum x_i x_h^2, at i d + h
    `fourth`           s (s + 1) (s + 2) (s + 3) / 24, opt.  sum y (x) y (x) y (x) y
    =================  ====================================  ===========================

    Symmetric sums store only the entries `a <= b <= c ...`, in order of their indices.
    `VectorMoments.of` converts them to central moments.
    """

    __repr__ = short_repr

    def flat(self, name: str) -> NDArray[np.int64]:
        """Return the sum of this name as one (entries,) array, from statistics of all rows.

        Raises
        ------
        InvalidInput
            The statistics cover only some rows.
        """
        if self.block != RowBlock():
            raise InvalidInput(
                f"the statistics cover only {self.block}; join all row blocks by joined_blocks"
            )
        size = self.foundation.sizes[name.removeprefix(EVEN)]
        return self.sums[name].ravel()[:size]

    def impossible(self) -> Iterator[str]:
        """Yield the names of arrays with negative sums of squares, and how many each has."""
        for name, array in self.sums.items():
            places = _squares_of(name.removeprefix(EVEN), self.foundation)
            rows, columns = np.divmod(places, array.shape[1])
            held = rows % self.block.step == self.block.index
            found = array[rows[held] // self.block.step, columns[held]]
            if (found < 0).any():
                yield f"{name} ({int((found < 0).sum())} sums of squares below zero)"


def joined_blocks(blocks: Sequence[VectorStatistics]) -> VectorStatistics:
    """Join the statistics of all row blocks, given in order, to statistics of all rows."""
    head = blocks[0]
    sums = {name: interleaved([one.sums[name] for one in blocks]) for name in head.sums}
    return VectorStatistics(head.foundation, RowBlock(), head.totals, sums)


def sizes_of(dimension: int, columns: int, squares: bool, fourth: bool) -> dict[str, int]:
    """Return the number of entries of each sum, by name.

    Examples
    --------
    >>> sizes_of(3, 2, squares=False, fourth=True)["third"]
    4
    """
    sizes = {
        FIRST: dimension,
        SECOND: packed_size(dimension),
        SKETCHED_FIRST: columns,
        SKETCHED_SECOND: packed_size(columns),
        NORMS: columns,
        THIRD: comb(columns + 2, 3),
    }
    more = {SQUARES: (squares, dimension**2), FOURTH: (fourth, comb(columns + 3, 4))}
    return sizes | {name: size for name, (kept, size) in more.items() if kept}


def broken_identities(
    foundation: Any, blocks: Iterable[tuple[RowBlock, Arrays]], totals: VectorTotals
) -> Iterator[tuple[RowBlock | None, str]]:
    """Yield each identity that is violated, with its row block, or with None for all blocks.

    There are four identities. A whole number equals its square modulo 2, and its cube modulo 6. A
    sum of squares of N numbers is at least the square of their sum, divided by N. No entry exceeds
    the bound in `totals`. The sum of the sketches is the sketch of the sum, up to rounding.
    """
    parts: dict[str, list[NDArray[np.int64]]] = {}
    for block, sums in blocks:
        for name, shape in foundation.shapes(block).items():
            if sums[name][shape[0] :].any():
                yield block, f"the padding of {name} is not zero"
            parts.setdefault(name, []).append(sums[name][: shape[0]])
    whole = {name: interleaved(held).ravel() for name, held in parts.items()}
    for name, array in whole.items():
        if array[foundation.sizes[name.removeprefix(EVEN)] :].any():
            yield None, f"the padding of {name} is not zero"
        if np.abs(array).max(initial=0) > totals.bound:
            yield None, f"{name} has sums beyond the bound of {totals.bound} in the totals"
    for half in ("", EVEN) if foundation.halves else ("",):
        number = totals.even_documents if half else totals.n_tokens
        sums = {name: whole[half + name] for name in foundation.sizes}
        for problem in _broken(foundation, sums, number):
            yield None, half + problem


def _broken(foundation: Any, sums: Arrays, number: int) -> Iterator[str]:
    for first, second in ((FIRST, SECOND), (SKETCHED_FIRST, SKETCHED_SECOND)):
        total = sums[first][: foundation.sizes[first]]
        squares = sums[second][_squares_of(second, foundation)]
        if ((total - squares) % 2).any():
            yield f"{second} does not fit {first}: a number and its square are even or odd both"
        least = total.astype(np.float64) ** 2 * (1 - _SLACK)
        if (squares.astype(np.float64) * number < least).any():
            yield f"{second} is too small for {number} vectors with the sum {first}"
    cubes = sums[THIRD][_equal_places(foundation.columns, 3)]
    if ((cubes - sums[SKETCHED_FIRST][: foundation.columns]) % 6).any():
        yield f"{THIRD} does not fit {SKETCHED_FIRST}: a number and its cube are equal modulo 6"
    if SQUARES in sums:
        own = np.arange(foundation.dimension) * (foundation.dimension + 1)
        if ((sums[SQUARES][own] - sums[FIRST][: foundation.dimension]) % 6).any():
            yield f"{SQUARES} does not fit {FIRST}: a number and its cube are equal modulo 6"
    if FOURTH in sums:
        powers = sums[FOURTH][_squares_of(FOURTH, foundation)]
        squares = sums[SKETCHED_SECOND][_squares_of(SKETCHED_SECOND, foundation)]
        if (powers < squares).any() or ((powers - squares) % 12).any():
            yield f"{FOURTH} does not fit {SKETCHED_SECOND}: squares of different numbers"
    # for each vector, 2^shift y differs from Q'x by at most 2^shift / 2, because y is rounded
    exact = sums[FIRST][: foundation.dimension].astype(np.float64) @ foundation.matrix
    scale = np.ldexp(1.0, foundation.shift.astype(np.int64))
    off = np.abs(scale * sums[SKETCHED_FIRST][: foundation.columns] - exact)
    if (off > scale / 2 * number + _SLACK * _most_sketched(sums[FIRST], foundation)).any():
        yield f"{SKETCHED_FIRST} is not the sketch of {FIRST}"


def _most_sketched(first: NDArray[np.int64], foundation: Any) -> NDArray[np.float64]:
    """Return upper bounds of `Q' first`, (s,), to which tolerances of rounding are proportional."""
    magnitudes = np.abs(first[: foundation.dimension]).astype(np.float64)
    found: NDArray[np.float64] = magnitudes @ np.abs(foundation.matrix.astype(np.float64))
    return found


def _squares_of(name: str, foundation: Any) -> NDArray[np.intp]:
    """Return the indices of entries of an array that are sums of squares or of fourth powers."""
    if name == SECOND:
        return _equal_places(foundation.dimension, 2)
    if name == SKETCHED_SECOND:
        return _equal_places(foundation.columns, 2)
    if name == FOURTH:
        return _equal_places(foundation.columns, 4)
    return np.empty(0, dtype=np.intp)


def _equal_places(size: int, order: int) -> NDArray[np.intp]:
    """Return (size,) indices of the entries `a = b = c ...` among the packed entries.

    The entries are packed in the order of a, then b, then c.
    """
    before = [comb(size - a + order - 1, order) for a in range(size)]
    return np.array([comb(size + order - 1, order) - rest for rest in before], dtype=np.intp)
