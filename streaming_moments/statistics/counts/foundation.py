"""CountsFoundation: definition of the statistics of words in documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, short
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.adding import BlockSums, of_basis, refuse_overflow
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.identities import broken_identities
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights
from streaming_moments.statistics.counts.projection import ProjectedBatch, joined
from streaming_moments.statistics.counts.statistics import (
    SIGNED,
    MomentStatistics,
    statistic_shapes,
    zero_arrays,
)
from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.statistics.row_block import RowBlock

_HISTOGRAM = "length_histogram"


@dataclass(frozen=True)
class CountsFoundation:
    """Definition of the statistics of words in documents; a `Foundation`.

    Parameters
    ----------
    basis : Basis
        Q, with the fingerprint of its vocabulary.
    codocuments : bool
        Whether to count the documents in which two words occur together.
    halves : bool
        Whether to gather the pair counts of half of the documents separately.
    by_content : bool
        Whether the counts of a document decide its half. Otherwise documents alternate between the
        halves, as in stores of earlier formats. The half of a row of a table always depends on its
        position.
    first_words : int, optional
        Number of first words whose counts decide the half, if words were added later. With None,
        all words decide.

    Examples
    --------
    >>> foundation = CountsFoundation(Basis(np.eye(4, 2, dtype=np.int8), 6), codocuments=False)
    >>> foundation.shapes(RowBlock(1, 2))["pair_counts"], foundation.rows
    ((3, 4), 6)
    """

    basis: Basis
    codocuments: bool
    halves: bool = True
    by_content: bool = True
    first_words: int | None = None
    kind: ClassVar[str] = "counts"
    drawn: ClassVar[str] = "vocabulary and basis"
    can_rebase: ClassVar[bool] = True
    joined_bytes: ClassVar[int] = 0
    one_place: ClassVar[bool] = False
    by_length: ClassVar[bool] = True
    adds_words: ClassVar[bool] = True
    joins: ClassVar[bool] = False

    __repr__ = short_repr

    @property
    def told_halves(self) -> bool:
        """Whether sums of half of the documents are stored, which the fingerprint does not say."""
        return self.halves

    @property
    def halves_by_content(self) -> bool:
        """Whether sums of one half are stored, and the content of a document decides its half."""
        return self.halves and self.by_content and self.basis.table is None

    @property
    def since_first(self) -> frozenset[str]:
        """Features of this foundation that the first format of stores lacks."""
        own = {
            "length weights": not self.basis.weights.is_pooled,
            "halves of documents": self.halves,
            "categorical columns": self.basis.table is not None,
        }
        return frozenset(name for name, has in own.items() if has)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the basis."""
        return self.basis.fingerprint

    @property
    def rows(self) -> int:
        """Number of words n."""
        return self.basis.n_words

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (Q, and length weights unless all are 1) and attributes (all else)."""
        basis = self.basis
        arrays: dict[str, NDArray[Any]] = {"Q": basis.matrix}
        if not basis.weights.is_pooled:
            arrays["length_weights"] = basis.weights.table
        attributes = {"n_words": basis.n_words, "vocabulary": basis.vocabulary}
        if basis.table is not None:
            return arrays, attributes | {"table": basis.table.to_json()}
        return arrays, attributes

    @classmethod
    def from_parts(
        cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]
    ) -> CountsFoundation:
        """Restore the foundation from its `parts`.

        Raises
        ------
        KeyError, InvalidInput
            The parts do not describe a basis.
        """
        words, vocabulary = int(attributes["n_words"]), str(attributes["vocabulary"])
        weights = LengthWeights(arrays["length_weights"]) if "length_weights" in arrays else POOLED
        table = attributes.get("table")
        columns = None if table is None else TableColumns.from_json(table)
        basis = Basis(arrays["Q"], words, vocabulary, weights, columns)
        halves = bool(attributes["halves"])
        # only stores of halves save `by_content`, and not for rows of a table; else it is True
        by_content = attributes.get("by_content", True) or not halves or columns is not None
        return cls(
            basis,
            bool(attributes["codocuments"]),
            halves,
            bool(by_content),
            attributes.get("first_words"),
        )

    def names(self) -> dict[str, str]:
        """Return the fingerprints of basis and vocabulary."""
        return {"basis": self.basis.fingerprint, "vocabulary": self.basis.vocabulary}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block; with `rows`, for that many first words."""
        return statistic_shapes(self.basis, block, self.codocuments, self.halves, rows)

    def compresses(self, name: str) -> bool:
        """Whether to compress an array: not the sketch, whose bytes look random."""
        return name not in SIGNED

    def totals(self, tables: Arrays, rows: int | None = None) -> RowLengths[LengthHistogram]:
        """Restore document lengths; with `rows`, only that many first words were counted."""
        words = None if rows == self.rows else rows
        table = tables.get(_HISTOGRAM, np.empty((0, 2), dtype=np.int64))
        lengths = LengthHistogram.from_array(table, self.basis.weights)
        return RowLengths.of_first(lengths, words)

    def statistics(
        self, block: RowBlock, totals: RowLengths[LengthHistogram], arrays: Arrays
    ) -> MomentStatistics:
        """Return statistics from stored arrays."""
        return MomentStatistics(self.basis, block, totals.whole, later=totals.later, **arrays)

    def prepared(self, batch: CountBatch) -> ProjectedBatch:
        """Project a batch on the basis; raises the errors of `ProjectedBatch.of`."""
        return ProjectedBatch.of(batch, self.basis)

    def rejection_reason(self, totals: RowLengths[LengthHistogram]) -> str | None:
        """Return why to reject the documents if none has a word of the vocabulary, else None."""
        if totals.n_tokens:
            return None
        return (
            f"none of its {totals.n_documents} documents holds a word of the vocabulary; check its "
            "language and the column, or create a store from such shards"
        )

    def tokens_below(self, bound: float, most: int) -> int:
        """Return the largest number of tokens with which a document adds less than `bound`."""
        lengths, peak = np.arange(most) + 1, float(np.abs(self.basis.matrix.astype(np.int64)).max())
        bounds = self.basis.weights.at(lengths) * lengths * (peak * lengths) ** 2
        # entry i is the bound of length i + 1, so the index of the first bound that is too large is
        # the largest length that is allowed
        return int(np.argmax(bounds >= bound)) if bounds.max() >= bound else most

    def require_bounded(self, bound: float) -> None:
        """Refuse sums that could exceed 2^62; raises the errors of `refuse_overflow`."""
        refuse_overflow(bound)

    def joined(
        self, batches: Iterable[ProjectedBatch], most_bytes: int
    ) -> Iterator[ProjectedBatch]:
        """Join batches by the function `joined`; raises the errors of `of_basis`."""
        return joined(of_basis(self.basis, batches), most_bytes)

    def sums(self, block: RowBlock) -> BlockSums:
        """Return empty sums of a block of rows, to which projected batches can be added."""
        return BlockSums(
            self.basis, block, zero_arrays(self.basis, block, self.codocuments, self.halves)
        )

    def of(
        self, batches: Iterable[ProjectedBatch], block: RowBlock = RowBlock()
    ) -> MomentStatistics:
        """Return the statistics of projected batches; without batches, all sums are 0."""
        return MomentStatistics.of_projected(
            batches, self.basis, block, self.codocuments, self.halves
        )

    def require_own(self, statistics: MomentStatistics) -> None:
        """Refuse statistics of another basis, of fewer words, or with other arrays.

        Raises
        ------
        ForeignStatistics
            The basis, the words or the arrays differ; the message says how.
        """
        if statistics.basis != self.basis:
            raise ForeignStatistics(
                f"the statistics have basis {short(statistics.basis.fingerprint)}, but the store "
                f"has {short(self.basis.fingerprint)}; gather them with the store's basis"
            )
        if statistics.later:
            raise ForeignStatistics(
                f"some documents were counted with fewer than all {self.basis.n_words} "
                "words, because words were added to the vocabulary later; write the documents of "
                "each vocabulary into a separate segment"
            )
        if (statistics.codocuments is not None) != self.codocuments:
            raise ForeignStatistics(
                f"co-document counts are {'' if self.codocuments else 'not '}in the store; "
                f"gather the statistics with codocuments={self.codocuments}"
            )
        if (statistics.even_pair_counts is not None) != self.halves:
            raise ForeignStatistics(
                f"pair counts of each half are {'' if self.halves else 'not '}in the store; "
                f"gather the statistics with halves={self.halves}"
            )

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: RowLengths[LengthHistogram]
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield each violated identity with its row block, or with None for all blocks."""
        return broken_identities(self.basis, self.shapes, blocks, totals.whole)
