"""ViewStatistics: rows of one view times the sketches of two others, exact and additive."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, SumExceeded, short
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.row_block import RowBlock

TRIPLES = "triple_sketch"
EVEN = "even_"
# Of int8: no product of two sketches is larger than this times its triples.
PEAK = 127 * 127
LARGEST_SUM = 2**62
# Whole numbers up to here are exact in float64; a batch below it is added four times as fast.
LARGEST_FLOAT_SUM = 2.0**53
_TABLE = "view_totals"


@dataclass(frozen=True)
class ViewTotals:
    """What all row blocks of the same records have in common.

    n_documents : records, or sequences
    n_tokens : what was counted in them, in words of any view, or in symbols
    triples : ways to take a word of each view of a record, or windows of three symbols
    without : records that hold none
    even_documents, even_triples : of the even half; 0 where halves are not kept apart

    Examples
    --------
    >>> both = ViewTotals(2, 7, 4) + ViewTotals(1, 3, 1)
    >>> both.triples, both - ViewTotals(1, 3, 1) == ViewTotals(2, 7, 4)
    (5, True)
    """

    n_documents: int = 0
    n_tokens: int = 0
    triples: int = 0
    without: int = 0
    even_documents: int = 0
    even_triples: int = 0

    @property
    def bound(self) -> int:
        """No entry of a sum is larger."""
        return PEAK * self.triples

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """All numbers, in the order of the fields."""
        return {_TABLE: np.array(self._numbers, dtype=np.int64)}

    @classmethod
    def of_tables(cls, tables: Arrays) -> Self:
        """What `tables` described; nothing, of none."""
        return cls(*tables[_TABLE].tolist()) if tables else cls()

    @property
    def below_zero(self) -> list[str]:
        """What was taken away without having been added."""
        numbers = zip(fields(self), self._numbers, strict=False)
        return [one.name for one, number in numbers if number < 0]

    def half(self, odd: bool) -> ViewTotals:
        """Of one half of the records."""
        even = ViewTotals(self.even_documents, 0, self.even_triples)
        if not odd:
            return even
        documents = self.n_documents - self.even_documents
        return ViewTotals(documents, 0, self.triples - self.even_triples)

    def __add__(self, other: Self) -> Self:
        return self._with(operator.add, other)

    def __sub__(self, other: Self) -> Self:
        return self._with(operator.sub, other)

    @property
    def _numbers(self) -> list[int]:
        return [getattr(self, one.name) for one in fields(self)]

    def _with(self, combine: Callable[[int, int], int], other: Self) -> Self:
        return type(self)(*map(combine, self._numbers, other._numbers))


@dataclass(frozen=True, eq=False)
class AdditiveStatistics:
    """A block of rows of int64 sums by name: a commutative group under `+`.

    The foundation says which arrays there are. Names of those of the even half of the records begin
    with `even_`.
    """

    foundation: Any
    block: RowBlock
    totals: Any
    sums: Mapping[str, NDArray[np.int64]]

    __repr__ = short_repr

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
        """The row arrays by name."""
        return self.sums

    def half(self, odd: bool) -> Self:
        """The statistics of one half of the records; raises InvalidInput without halves."""
        if not self.foundation.halves:
            raise InvalidInput(
                "the statistics keep no halves of the records; gather them with halves=True"
            )
        sums = {}
        for name in self.sums:
            if not name.startswith(EVEN):
                even = self.sums[EVEN + name]
                sums[name] = self.sums[name] - even if odd else even
        alone = replace(self.foundation, halves=False)
        return type(self)(alone, self.block, self.totals.half(odd), sums)

    def impossible(self) -> Iterator[str]:
        """Arrays that no records can have made, and what is wrong with them."""
        raise NotImplementedError

    def require_non_negative(self) -> None:
        """Raise InvalidInput for a state in which something was counted less than zero times.

        This means that the records subtracted were never added.
        """
        problems = [*self.impossible(), *self.totals.below_zero]
        if problems:
            raise InvalidInput(
                f"records were taken away that were never added: {', '.join(problems)}; "
                "subtract only what was added"
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

    `triple_sketch` is `T_i = sum_d x_i [1; y_left] [1; y_right]'` of every word i of the rows view,
    (r, 1 + s_l, 1 + s_r): the constants make it hold its own first and second moments, over the
    same triples. Which arrays lie beside it, the foundation says.
    """

    __repr__ = short_repr

    def impossible(self) -> Iterator[str]:
        """Arrays in which something was counted less than zero times."""
        return broken(self.sums)


def require_same_foundation(foundation: Any, statistics: AdditiveStatistics) -> None:
    """Raise ForeignStatistics for statistics of another foundation, or with other arrays."""
    other = statistics.foundation
    if foundation.fingerprint != other.fingerprint:
        raise ForeignStatistics(
            f"the statistics are gathered on {short(other.fingerprint)}, not on "
            f"{short(foundation.fingerprint)}; count the records on one foundation, with halves or "
            "without"
        )


def require_bounded(bound: float) -> None:
    """Raise SumExceeded for sums that may have an entry of 2^62 or more."""
    if bound >= LARGEST_SUM:
        raise SumExceeded(
            f"an entry of the sums could reach {bound:.3g}, and 2^62 is the most that int64 adds "
            "up safely; begin another store for the later records"
        )


def broken(sums: Arrays) -> Iterator[str]:
    """Arrays, and what is wrong with them, in which something was counted less than zero times.

    The constants of both sketches count triples, and bound all that lies beside them.
    """
    for name, array in sums.items():
        if not array.size:
            continue
        if array.ndim == 1:
            if array.min() < 0:
                yield f"{name} ({int((array < 0).sum())} counts below zero)"
            continue
        counts = array.reshape(len(array), -1)
        # for each row; the peak of one sketch, or of two
        peak = PEAK if array.ndim == 3 else 127
        if counts[:, 0].min() < 0:
            yield f"{name} ({int((counts[:, 0] < 0).sum())} counts below zero)"
        elif (np.abs(counts) > peak * counts[:, :1]).any():
            yield f"{name} (sums beyond what was counted)"
        even = sums.get(EVEN + name)
        if even is not None and (even.reshape(counts.shape)[:, 0] > counts[:, 0]).any():
            yield f"{name} (of the odd half below zero)"


def broken_identities(
    blocks: Iterable[tuple[RowBlock, Arrays]], totals: ViewTotals
) -> Iterator[tuple[RowBlock | None, str]]:
    """Identities that stored statistics break, each with its row block or None for all."""
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
            yield None, f"{name} counts {triples[name]} triples, the totals {expected[name]}"
