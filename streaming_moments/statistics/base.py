"""Foundation, Statistics, Totals, Prepared: what a store and a job ask of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.row_block import RowBlock

Arrays = Mapping[str, NDArray[np.int64]]


def subtract_by_adding(
    arrays: Arrays, add: Callable[[Iterable[Any]], None], batches: Iterable[Any]
) -> None:
    """Take batches away from arrays that `add` adds them to, in no more memory than adding takes.

    `a - b` is `-(-a + b)`.
    """
    for array in arrays.values():
        np.negative(array, out=array)
    add(batches)
    for array in arrays.values():
        np.negative(array, out=array)


class Totals(Protocol):
    """What all row blocks of the same records have in common; `+` and `-` are exact."""

    @property
    def n_documents(self) -> int:
        """Records counted."""

    @property
    def n_tokens(self) -> int:
        """What was counted in them."""

    @property
    def bound(self) -> int:
        """No entry of a sum is larger, but for entries that are checked one by one."""

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """The arrays that say all of it, small and the same for every row block, by name."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


class Prepared(Protocol):
    """Records of one batch made ready to be added to any block of rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""

    @property
    def totals(self) -> Any:
        """The `Totals` of its records."""

    @property
    def bound(self) -> float:
        """No entry of a sum gains more from it."""


class Sums(Protocol):
    """Sums of a block of rows to which records are added, by one thread at a time.

    The caller keeps what they hold and the bounds of the batches together below 2^62, also of
    batches that are taken away.
    """

    def add(self, batches: Iterable[Any]) -> None:
        """Add prepared batches."""

    def subtract(self, batches: Iterable[Any]) -> None:
        """Take prepared batches away, exactly, in no more memory than adding takes."""

    def rows(self, rows: slice) -> dict[str, NDArray[np.int64]]:
        """Some of the rows of all arrays by name, for reading until more is added."""


class Statistics(Protocol):
    """A block of rows of additive integers: a commutative group under `+` (see the laws)."""

    @property
    def block(self) -> RowBlock:
        """Which rows."""

    @property
    def totals(self) -> Any:
        """The `Totals` of their records."""

    def arrays(self) -> Mapping[str, NDArray[np.int64]]:
        """The int64 row arrays by name, of the shapes that the foundation says."""

    def require_non_negative(self) -> None:
        """Refuse a state in which something was counted less than zero times."""

    def __add__(self, other: Self, /) -> Self: ...
    def __sub__(self, other: Self, /) -> Self: ...


class Foundation(Protocol):
    """What statistics of one kind are gathered on; immutable, named by its fingerprint.

    A kind is a class of this shape and a line in `registry.KINDS`: layout, blocks, verification and
    memory plans of a store ask nothing else.

    `drawn` says in words what of it is chosen from records, `can_rebase` whether a store of the
    kind can be given another, and count anew. `one_place` says whether models are fitted on the
    sums of all rows in one place, and not block by block. `told_halves` says whether segments and
    lineages must note that halves are kept apart, as the fingerprint does not say it, and
    `halves_by_content` whether they must note that halves follow from what records hold.
    `since_first` names the features that the first format of stores lacks. `by_length` says whether
    records count by their lengths, which totals then tell, and may by their age, and whether models
    are fitted by sweeps over a basis. `adds_words` says whether words can be added to what was
    counted.
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
        """64 hexadecimal digits, the same for the same content."""

    @property
    def rows(self) -> int:
        """Rows that are cut into row blocks."""

    @property
    def joins(self) -> bool:
        """Whether records go on in other shards.

        Then `with_seams` and `totals_with_seams` give what models are fitted on, of whole records,
        from what was counted of their pieces; of which the totals tell the `pieces`.
        """

    @property
    def joined_bytes(self) -> int:
        """Bytes that `joined` holds at most beside what grows with the batches."""

    def parts(self) -> tuple[Mapping[str, NDArray[Any]], Mapping[str, Any]]:
        """Arrays and attributes, such as JSON can hold, of which `from_parts` makes it again."""

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """The foundation that `parts` described."""

    def names(self) -> dict[str, str]:
        """The fingerprint, and those of what it is made of, as a segment's manifest says them."""

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Shape of each row array of a block by name; maybe of the first so many rows only."""

    def compresses(self, name: str) -> bool:
        """Whether an array's bytes are worth compressing."""

    def totals(self, tables: Arrays, rows: int | None = None) -> Totals:
        """Totals that `Totals.tables` described, of records that have only the first rows."""

    def statistics(self, block: RowBlock, totals: Any, arrays: Arrays) -> Any:
        """The `Statistics` whose arrays were read back."""

    def require_own(self, statistics: Any) -> None:
        """Refuse statistics of another foundation, or with other arrays.

        Raises
        ------
        ForeignStatistics
            Names what differs.
        """

    def prepared(self, batch: Any) -> Prepared:
        """A batch of records, as the kind's reader gives it, made ready to be added.

        Raises
        ------
        BoundExceeded
            One record alone could pass 2^62: names it.
        """

    def rejection_reason(self, totals: Any) -> str | None:
        """Why records with such totals are nothing to count, and what to do; None where they are.

        A shard of nothing else is a bad one.
        """

    def tokens_below(self, bound: float, most: int) -> int:
        """Tokens, `most` at most, up to which no record adds as much as a bound to a sum.

        Batches are bounded one by one; of the shorter records there is then no need to.
        """

    def require_bounded(self, bound: float) -> None:
        """Refuse sums of which an entry may be as large as that.

        Raises
        ------
        SumExceeded
            It is 2^62 or more: says what to do.
        """

    def joined(self, batches: Iterable[Any], most_bytes: int) -> Iterator[Any]:
        """The same records in fewer batches, where those are faster to add.

        Batches become one while their bytes stay below `most_bytes`, of which it then has no more.
        """

    def sums(self, block: RowBlock) -> Sums:
        """Sums of a block of rows, of no records yet."""

    def of(self, batches: Iterable[Any], block: RowBlock = RowBlock()) -> Any:
        """The `Statistics` of prepared batches; zero without any."""

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: Any
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Identities that stored statistics break, each with its row block or None for all.

        Arrays come padded: all blocks with as many rows as the longest one.
        """
