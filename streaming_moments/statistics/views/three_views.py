"""Three views: what all foundations of records with three views share, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.base import Arrays, subtract_by_adding
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.statistics import (
    EVEN,
    ViewStatistics,
    ViewTotals,
    broken_identities,
    require_bounded,
    require_same_foundation,
)


class ThreeViews:
    """Base class of every `Foundation` of three views; subclasses define what a record is."""

    halves: bool
    by_content: bool
    joined_bytes: ClassVar[int] = 0
    one_place: ClassVar[bool] = False
    by_length: ClassVar[bool] = False
    adds_words: ClassVar[bool] = False
    told_halves: ClassVar[bool] = False
    since_first: ClassVar[frozenset[str]] = frozenset()
    can_rebase: ClassVar[bool] = False

    @staticmethod
    def join(prepared: Sequence[Any]) -> Any:
        """Join several prepared batches."""
        raise NotImplementedError

    @property
    def halves_by_content(self) -> bool:
        """Whether sums of one half are stored, and the content of a record decides its half."""
        return self.halves and self.by_content

    @property
    def fingerprint(self) -> str:
        """Hash of all content of the foundation, as 64 hexadecimal digits."""
        raise NotImplementedError

    def whole_shapes(self, block: RowBlock) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, without the arrays of halves."""
        raise NotImplementedError

    def names(self) -> dict[str, str]:
        """Return the fingerprint, for the manifest of a segment."""
        return {"basis": self.fingerprint, "vocabulary": ""}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, also of those of the even half."""
        whole = self.whole_shapes(block)
        even = {EVEN + name: shape for name, shape in whole.items()} if self.halves else {}
        return {**whole, **even}

    def compresses(self, name: str) -> bool:
        """Return True, because rows of rare words are mostly zeros."""
        return True

    def totals(self, tables: Arrays, rows: int | None = None) -> ViewTotals:
        """Restore totals from `ViewTotals.tables`."""
        return ViewTotals.of_tables(tables)

    def statistics(self, block: RowBlock, totals: ViewTotals, arrays: Arrays) -> ViewStatistics:
        """Return statistics from stored arrays."""
        return ViewStatistics(self, block, totals, arrays)

    def require_own(self, statistics: ViewStatistics) -> None:
        """Refuse statistics of another foundation, with an error of `require_same_foundation`."""
        require_same_foundation(self, statistics)

    def tokens_below(self, bound: float, most: int) -> int:
        """Return `most`, because a token of these records adds only a bounded number to a sum."""
        return most

    def require_bounded(self, bound: float) -> None:
        """Refuse sums that could exceed 2^62; raises the error of `require_bounded`."""
        require_bounded(bound)

    def joined(self, batches: Iterable[Any], most_bytes: int) -> Iterator[Any]:
        """Yield the same records in fewer batches, each of at most about `most_bytes`."""
        held: list[Any] = []
        size = 0
        for batch in batches:
            if held and size + batch.nbytes > most_bytes:
                yield type(self).join(held)
                held, size = [], 0
            held.append(batch)
            size += batch.nbytes
        if held:
            yield type(self).join(held)

    def sums(self, block: RowBlock) -> ViewSums:
        """Return sums of zero for a block of rows, to which records can be added."""
        shapes = self.shapes(block).items()
        return ViewSums(block, {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes})

    def of(self, batches: Iterable[Any], block: RowBlock = RowBlock()) -> ViewStatistics:
        """Return the statistics of prepared batches; without batches, all sums are 0.

        Raises BoundExceeded if a sum could exceed 2^62.
        """
        sums, totals = self.sums(block), self.totals({})
        for batch in batches:
            totals = totals + batch.totals
            require_bounded(totals.bound)
            sums.add([batch])
        return ViewStatistics(self, block, totals, sums.arrays)

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: ViewTotals
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield the identities that stored statistics violate."""
        return broken_identities(blocks, totals)


@dataclass(frozen=True, eq=False)
class ViewSums:
    """The `Sums` of three views: row arrays of a block, to which records are added.

    `arrays` are the int64 row arrays of the block by name.
    """

    block: RowBlock
    arrays: Arrays

    def add(self, batches: Iterable[Any]) -> None:
        """Add prepared batches."""
        for batch in batches:
            batch.add(self.arrays, self.block)

    def subtract(self, batches: Iterable[Any]) -> None:
        """Subtract prepared batches that were added earlier."""
        subtract_by_adding(self.arrays, self.add, batches)

    def rows(self, rows: slice) -> dict[str, NDArray[np.int64]]:
        """Return some rows of all arrays, for reading."""
        return {name: array[rows] for name, array in self.arrays.items()}


def require_sketch(basis: Basis, words: Vocabulary) -> None:
    """Raise InvalidInput if a basis has another vocabulary, length weights, or an entry of -128."""
    if (basis.n_words, basis.vocabulary) != (words.n_words, words.fingerprint):
        raise InvalidInput(
            "a basis and its view have different vocabularies; make the basis with the vocabulary "
            "of the view"
        )
    if not basis.weights.is_pooled or basis.matrix.min() < -127:
        raise InvalidInput(
            "a sketch of a view must have entries of -127 to 127 and no length weights"
        )


def describe_words(words: Vocabulary) -> dict[str, Any]:
    """Describe a vocabulary for JSON."""
    return {"terms": list(words.terms), "core": words.core, "policy": words.policy}


def words_described(content: Mapping[str, Any]) -> Vocabulary:
    """Restore a vocabulary from `describe_words`."""
    terms = tuple(map(str, content["terms"]))
    return Vocabulary(terms, int(content["core"]), str(content["policy"]))
