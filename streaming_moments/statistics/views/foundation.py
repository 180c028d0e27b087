"""ViewsFoundation: bases that define the statistics of records with three views."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_by_place
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.records import (
    LEFT,
    RIGHT,
    PreparedRecords,
    ViewBatch,
    joined_records,
)
from streaming_moments.statistics.views.statistics import PEAK, TRIPLES, ViewStatistics, ViewTotals
from streaming_moments.statistics.views.three_views import (
    ThreeViews,
    describe_words,
    require_sketch,
    words_described,
)

VIEWS = ("rows", "left", "right")


@dataclass(frozen=True)
class ViewsFoundation(ThreeViews):
    """Definition of the statistics of records in three views; a `Foundation`.

    Parameters
    ----------
    bases : tuple of Basis
        Bases of the rows view, the left view and the right view. The sums have a slice for each
        word of the rows view, which sketches the pairs of words of the other two views.
    vocabularies : tuple of Vocabulary
        Vocabularies of the views.
    columns : tuple of str
        Names of the views.
    halves : bool
        Whether the sums of half of the records are stored separately, for error bars.
    by_content : bool
        Whether the words of a record decide its half; otherwise its position does. Use True only if
        records rarely repeat, because error bars grow with the root of the number of repetitions.

    Examples
    --------
    >>> import numpy as np
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
    by_content: bool = False
    kind: ClassVar[str] = "views"
    drawn: ClassVar[str] = "words and sketches"
    joins: ClassVar[bool] = False

    __repr__ = short_repr
    join = staticmethod(joined_records)

    def __post_init__(self) -> None:
        for basis, words in zip(self.bases, self.vocabularies, strict=True):
            require_sketch(basis, words)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the bases, their vocabularies, the columns, and whether halves are stored."""
        parts = [*(basis.fingerprint for basis in self.bases), *self.columns, str(self.halves)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def rows(self) -> int:
        """Number of words of the largest view; all views have the same number of row blocks."""
        return max(basis.n_words for basis in self.bases)

    @property
    def whole(self) -> bool:
        """Whether all triples are stored, because both sketches are identity matrices."""
        return all(basis.columns == basis.n_words for basis in self.bases[1:])

    @property
    def words(self) -> dict[str, Vocabulary]:
        """Vocabularies by name of the view."""
        return dict(zip(self.columns, self.vocabularies, strict=True))

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (Q of each view) and attributes (terms of views, whether halves exist)."""
        arrays = {f"Q_{view}": basis.matrix for view, basis in zip(VIEWS, self.bases, strict=True)}
        described = [describe_words(words) for words in self.vocabularies]
        attributes = {"vocabularies": described, "columns": list(self.columns)}
        return arrays, {**attributes, "halves_kept": self.halves}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            The parts do not describe a foundation.
        """
        words = [words_described(one) for one in attributes["vocabularies"]]
        bases = [
            Basis(arrays[f"Q_{view}"], own.n_words, own.fingerprint)
            for view, own in zip(VIEWS, words, strict=True)
        ]
        names, halves = map(str, attributes["columns"]), bool(attributes["halves_kept"])
        by_content = bool(attributes.get("by_content", False))
        found: Any = (tuple(bases), tuple(words), tuple(names), halves, by_content)
        return cls(*found)

    def whole_shapes(self, block: RowBlock) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, without the arrays of halves."""
        sizes = [block.size(basis.n_words) for basis in self.bases]
        own, left, right = (1 + basis.columns for basis in self.bases)
        return {
            TRIPLES: (sizes[0], left, right),
            LEFT: (sizes[1], own),
            RIGHT: (sizes[2], own),
        }

    def prepared(self, batch: ViewBatch) -> PreparedRecords:
        """Compute the sketches of a batch; raises the errors of `PreparedRecords.of`."""
        if batch.rows.halves is None and not self.by_content:
            batch = batch.halved(odd_by_place(0, batch.documents))
        return PreparedRecords.of(batch, self.bases, self.halves)

    def tokens_below(self, bound: float, most: int) -> int:
        """Return the largest number of tokens with which a record adds less than `bound` to a sum.

        It is the number in all views together. A record adds most if its tokens are divided equally
        among the views.
        """
        return min(most, 3 * int((bound / PEAK) ** (1 / 3)))

    def rejection_reason(self, totals: ViewTotals) -> str | None:
        """Return why to reject the records if none has a known word in each view, else None."""
        if totals.triples:
            return None
        return (
            f"none of its {totals.n_documents} records has a known word in each of the columns "
            f"{', '.join(self.columns)}; check these, or create a store from such shards"
        )

    def of_counts(self, batch: ViewBatch, block: RowBlock = RowBlock()) -> ViewStatistics:
        """Return the statistics of some records; raises the errors of `prepared`."""
        return self.of([self.prepared(batch)], block)
