"""SetsFoundation: features and sketch that define the statistics of sets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.adding import BlockSums
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_by_place
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.three_views import (
    describe_words,
    require_sketch,
    words_described,
)


@dataclass(frozen=True)
class SetsFoundation:
    """Definition of the statistics of sets of features; a `Foundation`.

    A row is counted as a document that has each of its features once. So the sums of pairs and
    triples of distinct features are exact integers. Rows without any feature are counted, too.

    Parameters
    ----------
    features : Vocabulary
        Names of the n features, by decreasing frequency in a pilot.
    basis : Basis
        Q of the features, which sketches triples; the identity stores all triples.
    halves : bool
        Whether the pair counts of half of the rows are stored separately, for error bars.
    by_content : bool
        Whether the features of a row decide its half; otherwise its position does. Use True only if
        rows rarely repeat, because error bars grow with the root of the number of repetitions.

    Examples
    --------
    >>> features = Vocabulary(("a", "b", "c"), core=3)
    >>> basis = Basis(np.eye(3, dtype=np.int8), 3, features.fingerprint)
    >>> batch = CountBatch.from_csr([[1, 5, 0], [0, 0, 0]], features.fingerprint)
    >>> statistics = SetsFoundation(features, basis).of_sets(batch)
    >>> statistics.pair_counts.tolist(), statistics.length_histogram.n_documents
    ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], 2)
    """

    features: Vocabulary
    basis: Basis
    halves: bool = True
    by_content: bool = False
    kind: ClassVar[str] = "sets"
    drawn: ClassVar[str] = "features and sketch"
    can_rebase: ClassVar[bool] = False
    one_place: ClassVar[bool] = True
    by_length: ClassVar[bool] = False
    adds_words: ClassVar[bool] = False
    whole: ClassVar[bool] = True
    """True, because the pairs of all features are stored, so that halves need no table of triples.
    """
    joined_bytes: ClassVar[int] = 0
    joins: ClassVar[bool] = False
    told_halves: ClassVar[bool] = False
    since_first: ClassVar[frozenset[str]] = frozenset()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        require_sketch(self.basis, self.features)

    @staticmethod
    def distinct(batch: CountBatch) -> CountBatch:
        """Return the same rows, with each feature of a row counted once."""
        if not (batch.counts > 1).any():
            return batch
        return replace(batch, counts=np.ones_like(batch.counts))

    @cached_property
    def _counted(self) -> CountsFoundation:
        return CountsFoundation(self.basis, codocuments=False, halves=self.halves)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of features and sketch, and of whether halves are stored."""
        content = f"sets {self.features.fingerprint} {self.basis.fingerprint} {self.halves}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def halves_by_content(self) -> bool:
        """Whether sums of one half are stored, and the features of a row decide its half."""
        return self.halves and self.by_content

    @property
    def rows(self) -> int:
        """Number of features n."""
        return self.features.n_words

    @property
    def words(self) -> dict[str, Vocabulary]:
        """The features."""
        return {"features": self.features}

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (Q) and attributes (the features, and if halves are stored)."""
        attributes = {"features": describe_words(self.features), "halves_kept": self.halves}
        return {"Q": self.basis.matrix}, attributes

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`.

        Raises LookupError, TypeError or InvalidInput if the parts do not describe a foundation.
        """
        features = words_described(attributes["features"])
        basis = Basis(arrays["Q"], features.n_words, features.fingerprint)
        halves, by_content = attributes["halves_kept"], attributes.get("by_content", False)
        return cls(features, basis, bool(halves), bool(by_content))

    def names(self) -> dict[str, str]:
        """Return the fingerprint, for the manifest of a segment."""
        return {"basis": self.fingerprint, "vocabulary": ""}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block; with `rows`, for that many features."""
        return self._counted.shapes(block, rows)

    def compresses(self, name: str) -> bool:
        """Whether an array's bytes are worth compressing."""
        return self._counted.compresses(name)

    def totals(self, tables: Arrays, rows: int | None = None) -> RowLengths[LengthHistogram]:
        """Restore the sizes of sets; with `rows`, only that many first features were counted."""
        return self._counted.totals(tables, rows)

    def statistics(
        self, block: RowBlock, totals: RowLengths[LengthHistogram], arrays: Arrays
    ) -> MomentStatistics:
        """Return statistics from stored arrays."""
        return self._counted.statistics(block, totals, arrays)

    def require_own(self, statistics: MomentStatistics) -> None:
        """Raise ForeignStatistics for statistics of other features or another sketch."""
        self._counted.require_own(statistics)

    def prepared(self, batch: CountBatch) -> ProjectedBatch:
        """Project the rows on the sketch, with each feature of a row counted once."""
        own = self.distinct(batch)
        if own.halves is None and not self.by_content:
            own = replace(own, halves=odd_by_place(0, own.documents))
        return self._counted.prepared(own)

    def rejection_reason(self, totals: RowLengths[LengthHistogram]) -> str | None:
        """Return None, because rows without features count, too."""
        return None

    def tokens_below(self, bound: float, most: int) -> int:
        """Return the largest number of features with which a row adds less than `bound`."""
        return self._counted.tokens_below(bound, most)

    def require_bounded(self, bound: float) -> None:
        """Refuse sums that could exceed 2^62."""
        self._counted.require_bounded(bound)

    def joined(
        self, batches: Iterable[ProjectedBatch], most_bytes: int
    ) -> Iterator[ProjectedBatch]:
        """Yield the same rows in fewer batches."""
        return self._counted.joined(batches, most_bytes)

    def sums(self, block: RowBlock) -> BlockSums:
        """Return empty sums of a block of features, to which prepared batches can be added."""
        return self._counted.sums(block)

    def of(
        self, batches: Iterable[ProjectedBatch], block: RowBlock = RowBlock()
    ) -> MomentStatistics:
        """Return the statistics of prepared batches; without batches, all sums are 0."""
        return self._counted.of(batches, block)

    def of_sets(self, batch: CountBatch, block: RowBlock = RowBlock()) -> MomentStatistics:
        """Return the statistics of some rows; raises the errors of `prepared`."""
        return self.of([self.prepared(batch)], block)

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: RowLengths[LengthHistogram]
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield the identities that stored statistics violate."""
        return self._counted.problems(blocks, totals)
