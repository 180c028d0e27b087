"""ViewStatistics: exact additive sums of the words of one view times sketches of the others."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, SumExceeded, short
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays, IntegerTotals, adds_own
from streaming_moments.statistics.row_block import RowBlock

TRIPLES = "triple_sketch"
EVEN = "even_"
# Square of the largest entry of a sketch. A sum of products of two sketches is at most this number
# times the number of triples.
PEAK = 127 * 127
LARGEST_SUM = 2**62
# Whole numbers up to this limit are exact in float64. Batches whose sums stay below it are added
# four times as fast.
LARGEST_FLOAT_SUM = 2.0**53


@dataclass(frozen=True)
class ViewTotals(IntegerTotals):
    """Totals over all records; all row blocks of the same records have the same totals.

    n_documents : number of records or sequences
    n_tokens : number of words of all views, or of symbols
    triples : for views, number of ways to choose one word from each view of a record; for
        sequences, number of windows of three symbols
    without : number of records without triples
    even_documents, even_triples : numbers of records and triples of the even half; 0 without halves

    Examples
    --------
    >>> both = ViewTotals(2, 7, 4) + ViewTotals(1, 3, 1)
    >>> both.triples, both - ViewTotals(1, 3, 1) == ViewTotals(2, 7, 4)
    (5, True)
    """

    table: ClassVar[str] = "view_totals"
    n_documents: int = 0
    n_tokens: int = 0
    triples: int = 0
    without: int = 0
    even_documents: int = 0
    even_triples: int = 0

    @property
    def bound(self) -> int:
        """Upper bound of the entries of the row arrays."""
        return PEAK * self.triples

    def half(self, odd: bool) -> ViewTotals:
        """Return the totals of one half of the records."""
        even = ViewTotals(self.even_documents, 0, self.even_triples)
        if not odd:
            return even
        documents = self.n_documents - self.even_documents
        return ViewTotals(documents, 0, self.triples - self.even_triples)


@adds_own
@dataclass(frozen=True, eq=False)
class AdditiveStatistics:
    """A block of rows of int64 sums by name: a commutative group under `+`.

    The foundation defines the arrays. Names of arrays of the even half begin with `even_`.
    """

    foundation: Any
    block: RowBlock
    totals: Any
    sums: Mapping[str, NDArray[np.int64]]

    __repr__ = short_repr

    @property
    def shown_facts(self) -> list[str]:
        """Texts for `repr`: the number of records, and how many sums are stored."""
        sums = sum(array.size for array in self.sums.values())
        return [of_number(self.totals.n_documents, "record"), of_number(sums, "sum")]

    def __post_init__(self) -> None:
        shapes = self.foundation.shapes(self.block)
        found = {name: array.shape for name, array in self.sums.items()}
        if found != shapes or any(array.dtype != np.int64 for array in self.sums.values()):
            raise InvalidInput(f"the arrays must be {shapes}, all of int64; got {found}")
        for array in self.sums.values():
            array.setflags(write=False)

    def __sizeof__(self) -> int:
        return sys.getsizeof(self.sums) + sum(array.nbytes for array in self.sums.values())

    def arrays(self) -> Mapping[str, NDArray[np.int64]]:
        """Return the row arrays by name."""
        return self.sums

    def half(self, odd: bool) -> Self:
        """Return the statistics of one half of the records; raises InvalidInput without halves."""
        if not self.foundation.halves:
            raise InvalidInput(
                "the statistics have no halves of the records; gather them with halves=True"
            )
        sums = {}
        for name in self.sums:
            if not name.startswith(EVEN):
                even = self.sums[EVEN + name]
                sums[name] = self.sums[name] - even if odd else even
        alone = replace(self.foundation, halves=False)
        return type(self)(alone, self.block, self.totals.half(odd), sums)

    def impossible(self) -> Iterator[str]:
        """Yield the names of arrays with impossible values, each with the problem."""
        raise NotImplementedError

    def require_non_negative(self) -> None:
        """Raise InvalidInput if a count is negative.

        This happens if records were subtracted that were never added.
        """
        problems = [*self.impossible(), *self.totals.below_zero]
        if problems:
            raise InvalidInput(
                f"records were subtracted that were never added: {', '.join(problems)}; subtract "
                "only added records"
            )

    def __add__(self, other: Self) -> Self:
        return self._with(other, np.add, self.totals + other.totals)

    def __sub__(self, other: Self) -> Self:
        left = self._with(other, np.subtract, self.totals - other.totals)
        left.require_non_negative()
        return left

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AdditiveStatistics):
            return NotImplemented
        mine = (self.foundation.fingerprint, self.block, self.totals, self.sums.keys())
        if mine != (other.foundation.fingerprint, other.block, other.totals, other.sums.keys()):
            return False
        return all(np.array_equal(self.sums[name], other.sums[name]) for name in self.sums)

    __hash__ = None  # type: ignore[assignment]

    def _with(self, other: Self, combine: np.ufunc, totals: Any) -> Self:
        require_same_foundation(self.foundation, other)
        if self.block != other.block:
            raise ForeignStatistics(
                f"rows {self.block} and rows {other.block} cannot be combined; add statistics of "
                "the same rows"
            )
        require_bounded(max(totals.bound, self.totals.bound, other.totals.bound))
        sums = {name: combine(array, other.sums[name]) for name, array in self.sums.items()}
        return replace(self, totals=totals, sums=sums)


@dataclass(frozen=True, eq=False)
class ViewStatistics(AdditiveStatistics):
    """A block of rows of the sums of three views.

    `triple_sketch`, (r, 1 + s_l, 1 + s_r), has `T_i = sum_d x_i [1; y_left] [1; y_right]'` for
    every word i of the rows view. Because of the constants 1, it includes first and second moments
    over the same triples. The foundation defines the other arrays.
    """

    def impossible(self) -> Iterator[str]:
        """Yield the names of arrays with negative counts, each with the problem."""
        return broken(self.sums)


def require_same_foundation(foundation: Any, statistics: AdditiveStatistics) -> None:
    """Raise ForeignStatistics for statistics of another foundation, or with other arrays."""
    other = statistics.foundation
    if foundation.fingerprint != other.fingerprint:
        raise ForeignStatistics(
            f"the statistics have foundation {short(other.fingerprint)}, not "
            f"{short(foundation.fingerprint)}; count all records on one foundation, with one "
            "value of halves"
        )


def require_bounded(bound: float) -> None:
    """Raise SumExceeded if entries of the sums could reach 2^62."""
    if bound >= LARGEST_SUM:
        raise SumExceeded(
            f"an entry of the sums could reach {bound:.3g}, above the safe limit 2^62; create "
            "another store for later records"
        )


def broken(sums: Arrays) -> Iterator[str]:
    """Yield the names of arrays with negative counts or too large entries, each with the problem.

    Every sketch begins with the constant 1, so the first entry of a row is a number of triples. The
    other entries of the row are at most this number times the largest product of sketch entries.
    """
    for name, array in sums.items():
        if not array.size:
            continue
        if array.ndim == 1:
            if array.min() < 0:
                yield f"{name} ({int((array < 0).sum())} counts below zero)"
            continue
        counts = array.reshape(len(array), -1)
        # most that a triple adds to an entry: a product of entries of two sketches, or an entry
        peak = PEAK if array.ndim == 3 else 127
        if counts[:, 0].min() < 0:
            yield f"{name} ({int((counts[:, 0] < 0).sum())} counts below zero)"
        elif (np.abs(counts) > peak * counts[:, :1]).any():
            yield f"{name} (sums beyond the bound from the counts)"
        even = sums.get(EVEN + name)
        if even is not None and (even.reshape(counts.shape)[:, 0] > counts[:, 0]).any():
            yield f"{name} (of the odd half below zero)"


def broken_identities(
    blocks: Iterable[tuple[RowBlock, Arrays]], totals: ViewTotals
) -> Iterator[tuple[RowBlock | None, str]]:
    """Yield each identity that is violated, with its row block, or with None for all blocks."""
    triples = {TRIPLES: 0, EVEN + TRIPLES: 0}
    expected = {TRIPLES: totals.triples, EVEN + TRIPLES: totals.even_triples}
    seen: set[str] = set()
    for block, sums in blocks:
        for problem in broken(sums):
            yield block, problem
        for name in triples.keys() & sums.keys():
            triples[name] += int(sums[name][:, 0, 0].sum())
            seen.add(name)
    for name in sorted(seen):
        if triples[name] != expected[name]:
            yield None, f"{name} counts {triples[name]} triples, but the totals {expected[name]}"
