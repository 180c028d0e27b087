"""Foundation, Statistics, Totals, Prepared: what stores and jobs need from a kind of statistics."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.row_block import RowBlock

Arrays = Mapping[str, NDArray[np.int64]]
C = TypeVar("C")


def adds_own(kind: type[C]) -> type[C]:
    """Make `+` and `-` of a class return NotImplemented for values of other classes.

    Python then raises TypeError.
    """
    for name in ("__add__", "__sub__"):
        if name in vars(kind):
            setattr(kind, name, _for_own(kind, vars(kind)[name]))
    return kind


def _for_own(kind: type, operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @wraps(operate)
    def checked(self: Any, other: Any) -> Any:
        return operate(self, other) if isinstance(other, kind) else NotImplemented

    return checked


def subtract_by_adding(
    arrays: Arrays, add: Callable[[Iterable[Any]], None], batches: Iterable[Any]
) -> None:
    """Subtract batches from the arrays to which `add` adds, without more memory than `add` needs.

    `a - b` is computed as `-(-a + b)`.
    """
    for array in arrays.values():
        np.negative(array, out=array)
    add(batches)
    for array in arrays.values():
        np.negative(array, out=array)


class Totals(Protocol):
    """Totals over all records, such as their number; `+` and `-` are exact.

    All row blocks of the same records have the same totals.
    """

    @property
    def n_documents(self) -> int:
        """Number of records."""

    @property
    def n_tokens(self) -> int:
        """Number of tokens in the records, or of similar units, such as symbols."""

    @property
    def bound(self) -> int:
        """Upper bound of the entries of the row arrays.

        It need not hold for arrays whose entries are checked one by one.
        """

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """Return the small arrays, by name, from which the totals can be restored."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


@adds_own
@dataclass(frozen=True)
class IntegerTotals:
    """Base class for `Totals` whose fields are whole numbers, which are stored as one array.

    table : name of the array
    """

    table: ClassVar[str]

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """Return one array with all numbers, in the order of the fields."""
        return {self.table: np.array(self._numbers, dtype=np.int64)}

    @classmethod
    def of_tables(cls, tables: Arrays) -> Self:
        """Restore totals from `tables`; without tables all numbers are 0."""
        return cls(*tables[cls.table].tolist()) if tables else cls()

    @property
    def below_zero(self) -> list[str]:
        """Names of totals that are negative, because more was subtracted than added."""
        numbers = zip(fields(self), self._numbers, strict=False)
        return [one.name for one, number in numbers if number < 0]

    def __add__(self, other: Self) -> Self:
        return type(self)(*map(operator.add, self._numbers, other._numbers))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(operator.sub, self._numbers, other._numbers))

    @property
    def _numbers(self) -> list[int]:
        return [getattr(self, one.name) for one in fields(self)]


class Prepared(Protocol):
    """Records of one batch, prepared for addition to any block of rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""

    @property
    def totals(self) -> Any:
        """`Totals` of its records."""

    @property
    def bound(self) -> float:
        """Largest amount that the batch adds to any entry of the row arrays."""


class Sums(Protocol):
    """Sums of a block of rows to which one thread at a time adds records.

    The caller ensures that the entries stay below 2^62: it adds up the bounds of all batches, also
    of those that are subtracted.
    """

    def add(self, batches: Iterable[Any]) -> None:
        """Add prepared batches."""

    def subtract(self, batches: Iterable[Any]) -> None:
        """Subtract prepared batches exactly, with no more memory than adding needs."""

    def rows(self, rows: slice) -> dict[str, NDArray[np.int64]]:
        """Return some rows of all arrays by name; they are valid until more records are added."""


class Statistics(Protocol):
    """A block of rows of additive integers: a commutative group under `+`."""

    @property
    def block(self) -> RowBlock:
        """The row block."""

    @property
    def totals(self) -> Any:
        """`Totals` of its records."""

    def arrays(self) -> Mapping[str, NDArray[np.int64]]:
        """Return int64 row arrays by name, with the shapes that the foundation defines."""

    def require_non_negative(self) -> None:
        """Raise an error if a count is negative."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


class Foundation(Protocol):
    """Definition of the statistics of one kind; immutable, identified by its fingerprint.

    A kind is a class with this interface and a line in `registry.KINDS`. The layout, the blocks,
    the verification and the memory plans of a store use nothing else of a kind.

    Attributes
    ----------
    drawn : str
        Names of the parts that are chosen from a pilot.
    can_rebase : bool
        Whether a store of the kind can get another foundation and count its shards again.
    one_place : bool
        Whether one process fits models to the sums of all rows, instead of block by block.
    told_halves : bool
        Whether segments and lineages must note that sums of half of the records are stored,
        because the fingerprint does not say so.
    halves_by_content : bool
        Whether segments and lineages must note that the content of a record decides to which half
        it belongs.
    since_first : frozenset of str
        Features of this foundation that the first format of stores lacks.
    by_length : bool
        Whether records are weighted by length and maybe by age, and models are fitted by sweeps
        over a basis.
    adds_words : bool
        Whether words can be added to counted statistics.
    """

    kind: ClassVar[str]
    drawn: ClassVar[str]
    can_rebase: ClassVar[bool]
    one_place: ClassVar[bool]
    by_length: ClassVar[bool]
    adds_words: ClassVar[bool]

    @property
    def told_halves(self) -> bool: ...
    @property
    def halves_by_content(self) -> bool: ...
    @property
    def since_first(self) -> frozenset[str]: ...

    @property
    def fingerprint(self) -> str:
        """Hash of all content of the foundation, as 64 hexadecimal digits."""

    @property
    def rows(self) -> int:
        """Number of rows of the statistics, which are divided into row blocks."""

    @property
    def joins(self) -> bool:
        """Whether a record can continue in another shard.

        A shard then counts pieces of records, which its totals list as `pieces`. Before a fit,
        `with_seams` and `totals_with_seams` combine the pieces into statistics of whole records.
        """

    @property
    def joined_bytes(self) -> int:
        """Upper bound of the bytes that `joined` needs besides the batches that it joins."""

    def parts(self) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, Any]]:
        """Return arrays and JSON attributes from which `from_parts` restores the foundation."""

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`."""

    def names(self) -> dict[str, str]:
        """Return fingerprints of the foundation and its parts, for the manifest of a segment."""

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name.

        With `rows`, the shapes are those of a foundation with only that many first rows.
        """

    def compresses(self, name: str) -> bool:
        """Whether an array's bytes are worth compressing."""

    def totals(self, tables: Arrays, rows: int | None = None) -> Totals:
        """Restore totals from `Totals.tables`.

        With `rows`, the records were counted when only that many of the first rows existed.
        """

    def statistics(self, block: RowBlock, totals: Any, arrays: Arrays) -> Any:
        """Return `Statistics` from stored arrays."""

    def require_own(self, statistics: Any) -> None:
        """Refuse statistics of another foundation, or with other arrays.

        Raises
        ------
        ForeignStatistics
            The foundation or the arrays differ; the message says how.
        """

    def prepared(self, batch: Any) -> Prepared:
        """Prepare a batch of records, as the reader of the kind returns it, for addition.

        Raises
        ------
        BoundExceeded
            A single record could exceed 2^62; the message names it.
        """

    def rejection_reason(self, totals: Any) -> str | None:
        """Return reason and remedy if records with these totals contain nothing to count.

        Else return None. A shard with only such records is rejected.
        """

    def tokens_below(self, bound: float, most: int) -> int:
        """Return the largest number of tokens with which a record adds less than `bound` to a sum.

        The result is at most `most`. A caller has to compute the bound of a batch only if a record
        of the batch has more tokens.
        """

    def require_bounded(self, bound: float) -> None:
        """Raise an error if `bound`, the upper bound of the entries of sums, is too large.

        Raises
        ------
        SumExceeded
            The bound is 2^62 or more; the message has a remedy.
        """

    def joined(self, batches: Iterable[Any], most_bytes: int) -> Iterator[Any]:
        """Yield the same records in fewer batches, if that makes adding faster.

        Batches are joined while their bytes stay below `most_bytes`.
        """

    def sums(self, block: RowBlock) -> Sums:
        """Return empty sums of a block of rows."""

    def of(self, batches: Iterable[Any], block: RowBlock = RowBlock()) -> Any:
        """Return `Statistics` of prepared batches; without batches, all sums are 0."""

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: Any
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield each identity that stored statistics violate, with its row block.

        None instead of a row block means all blocks. The arrays of all blocks are padded to the
        number of rows of the longest block.
        """
