"""ViewsFoundation: the bases on which records of three views are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.records import (
    LEFT,
    RIGHT,
    PreparedRecords,
    ViewBatch,
    joined_records,
)
from streaming_moments.statistics.views.statistics import (
    EVEN,
    TRIPLES,
    ViewStatistics,
    ViewTotals,
    broken_identities,
    require_bounded,
    require_same_foundation,
)

VIEWS = ("rows", "left", "right")


@dataclass(frozen=True)
class ViewsFoundation:
    """What statistics of records in three views are gathered on, a `Foundation`.

    Parameters
    ----------
    bases : tuple of Basis
        Of the rows view, whose words have a slice each, and of the left and the right one, of which
        the slices hold sketches.
    vocabularies : tuple of Vocabulary
        Of the views.
    columns : tuple of str
        What the views are called.
    halves : bool
        Whether the sums of half of the records are kept apart, for error bars.

    Examples
    --------
    >>> words = Vocabulary(("law", "sea"), core=2)
    >>> basis = Basis(np.eye(2, dtype=np.int8), 2, words.fingerprint)
    >>> foundation = ViewsFoundation((basis,) * 3, (words,) * 3, halves=False)
    >>> foundation.shapes(RowBlock())["triple_sketch"]
    (2, 3, 3)
    """

    bases: tuple[Basis, Basis, Basis]
    vocabularies: tuple[Vocabulary, Vocabulary, Vocabulary]
    columns: tuple[str, str, str] = VIEWS
    halves: bool = True
    kind: ClassVar[str] = "views"

    def __post_init__(self) -> None:
        for basis, words in zip(self.bases, self.vocabularies, strict=True):
            require_sketch(basis, words)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the bases, which name their vocabularies, of the columns, and of halves."""
        parts = [*(basis.fingerprint for basis in self.bases), *self.columns, str(self.halves)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def rows(self) -> int:
        """Words of the largest view: all are cut into as many row blocks."""
        return max(basis.n_words for basis in self.bases)

    @property
    def words(self) -> dict[str, Vocabulary]:
        """The vocabularies, by what their views are called."""
        return dict(zip(self.columns, self.vocabularies, strict=True))

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Q of each view; the terms of all, and whether halves are kept."""
        arrays = {f"Q_{view}": basis.matrix for view, basis in zip(VIEWS, self.bases, strict=True)}
        described = [describe_words(words) for words in self.vocabularies]
        attributes = {"vocabularies": described, "columns": list(self.columns)}
        return arrays, {**attributes, "halves_kept": self.halves}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """The foundation of `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            They describe none.
        """
        words = [words_described(one) for one in attributes["vocabularies"]]
        bases = [
            Basis(arrays[f"Q_{view}"], own.n_words, own.fingerprint)
            for view, own in zip(VIEWS, words, strict=True)
        ]
        names, halves = map(str, attributes["columns"]), bool(attributes["halves_kept"])
        found: Any = (tuple(bases), tuple(words), tuple(names), halves)
        return cls(*found)

    def names(self) -> dict[str, str]:
        """The fingerprint."""
        return {"basis": self.fingerprint, "vocabulary": ""}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Shape of each row array of a block by name."""
        sizes = [block.size(basis.n_words) for basis in self.bases]
        own, left, right = (1 + basis.columns for basis in self.bases)
        whole: dict[str, tuple[int, ...]] = {
            TRIPLES: (sizes[0], left, right),
            LEFT: (sizes[1], own),
            RIGHT: (sizes[2], own),
        }
        return with_halves(whole, self.halves)

    def compresses(self, name: str) -> bool:
        """Rows of rare words are mostly zeros."""
        return True

    def totals(self, tables: Arrays, rows: int | None = None) -> ViewTotals:
        """Totals that `ViewTotals.tables` described."""
        return ViewTotals.of_tables(tables)

    def statistics(self, block: RowBlock, totals: ViewTotals, arrays: Arrays) -> ViewStatistics:
        """The statistics whose arrays were read back."""
        return ViewStatistics(self, block, totals, arrays)

    def require_own(self, statistics: ViewStatistics) -> None:
        """Refuse statistics of other bases; errors as `require_same_foundation`."""
        require_same_foundation(self, statistics)

    def prepared(self, batch: ViewBatch) -> PreparedRecords:
        """The batch with its sketches; errors as `PreparedRecords.of`."""
        return PreparedRecords.of(batch, self.bases, self.halves)

    def why_not_counted(self, totals: ViewTotals) -> str | None:
        """Records none of which has a known word in each view are nothing to count."""
        if totals.triples:
            return None
        return (
            f"none of its {totals.n_documents} records has a known word in each of the columns "
            f"{', '.join(self.columns)}; check these, or create a store from such shards"
        )

    def require_bounded(self, bound: float) -> None:
        """Refuse sums that could pass 2^62; errors as `require_bounded`."""
        require_bounded(bound)

    def joined(
        self, batches: Iterable[PreparedRecords], most_bytes: int
    ) -> Iterator[PreparedRecords]:
        """The same records in fewer batches."""
        return lumps(batches, most_bytes, joined_records)

    def sums(self, block: RowBlock) -> ViewSums:
        """Sums of a block of rows, of no records yet."""
        return ViewSums.zero(self, block)

    def of(
        self, batches: Iterable[PreparedRecords], block: RowBlock = RowBlock()
    ) -> ViewStatistics:
        """The statistics of prepared batches; zero without any."""
        return added_up(self, batches, block)

    def of_counts(self, batch: ViewBatch, block: RowBlock = RowBlock()) -> ViewStatistics:
        """The statistics of some records; errors as `prepared`."""
        return self.of([self.prepared(batch)], block)

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: ViewTotals
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Identities that stored statistics break."""
        return broken_identities(blocks, totals)


@dataclass(frozen=True, eq=False)
class ViewSums:
    """Row arrays of a block while records are added to them: the `Sums` of views and sequences.

    Parameters
    ----------
    block : RowBlock
        Which rows.
    arrays : mapping
        int64 row arrays of the block by name.
    """

    block: RowBlock
    arrays: Arrays

    @classmethod
    def zero(cls, foundation: Any, block: RowBlock) -> ViewSums:
        """Of no records."""
        shapes = foundation.shapes(block).items()
        return cls(block, {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes})

    def add(self, batches: Iterable[Any]) -> None:
        """Add prepared batches."""
        for batch in batches:
            batch.add(self.arrays, self.block)

    def take_away(self, batches: Iterable[Any]) -> None:
        """Take prepared batches away that were added."""
        # a - b is -(-a + b), which takes no memory beyond that of an addition
        for array in self.arrays.values():
            np.negative(array, out=array)
        self.add(batches)
        for array in self.arrays.values():
            np.negative(array, out=array)

    def rows(self, rows: slice) -> dict[str, NDArray[np.int64]]:
        """Some rows of all arrays, for reading."""
        return {name: array[rows] for name, array in self.arrays.items()}


def with_halves(shapes: Mapping[str, tuple[int, ...]], halves: bool) -> dict[str, tuple[int, ...]]:
    """Shapes of arrays, and where halves are kept those of the even half beside them."""
    return {**shapes, **({EVEN + name: shape for name, shape in shapes.items()} if halves else {})}


def added_up(foundation: Any, batches: Iterable[Any], block: RowBlock) -> ViewStatistics:
    """The statistics of prepared batches on a foundation; zero without any.

    Raises
    ------
    BoundExceeded
        A sum could pass 2^62.
    """
    sums, totals = ViewSums.zero(foundation, block), ViewTotals()
    for batch in batches:
        totals = totals + batch.totals
        require_bounded(totals.bound)
        sums.add([batch])
    return ViewStatistics(foundation, block, totals, sums.arrays)


def lumps(batches: Iterable[Any], most_bytes: int, join: Any) -> Iterator[Any]:
    """Batches joined while their bytes stay below a bound."""
    held: list[Any] = []
    size = 0
    for batch in batches:
        if held and size + batch.nbytes > most_bytes:
            yield join(held)
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield join(held)


def require_sketch(basis: Basis, words: Vocabulary) -> None:
    """Refuse a basis that is not of a vocabulary, weighs documents, or passes 127.

    Raises
    ------
    InvalidInput
        Says which.
    """
    if (basis.n_words, basis.vocabulary) != (words.n_words, words.fingerprint):
        raise InvalidInput("a basis is of another vocabulary than its view; make it of that one")
    if not basis.weights.is_pooled or basis.matrix.min() < -127:
        raise InvalidInput("a sketch of a view has entries of -127 to 127 and weighs no records")


def describe_words(words: Vocabulary) -> dict[str, Any]:
    """A vocabulary as JSON can hold it."""
    return {"terms": list(words.terms), "core": words.core, "policy": words.policy}


def words_described(content: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary that `describe_words` described."""
    terms = tuple(map(str, content["terms"]))
    return Vocabulary(terms, int(content["core"]), str(content["policy"]))
