"""SequencesFoundation: the alphabet and the sketch on which sequences are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.pieces import Pieces, SequenceTotals
from streaming_moments.statistics.sequences.seams import seams_of
from streaming_moments.statistics.sequences.windows import (
    FIRST,
    MOST_SYMBOLS,
    PreparedWindows,
    SymbolBatch,
    joined_windows,
)
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics, ViewTotals
from streaming_moments.statistics.views.three_views import (
    ThreeViews,
    describe_words,
    require_sketch,
    words_described,
)


@dataclass(frozen=True)
class SequencesFoundation(ThreeViews):
    """What statistics of sequences of symbols are gathered on, a `Foundation`.

    Windows of three symbols are records of three views: the middle one has rows, those before and
    after it have sketches by one basis.

    Parameters
    ----------
    alphabet : Vocabulary
        The n symbols by falling frequency.
    sketch : Basis
        Q, of the alphabet.
    halves : bool
        Whether the sums of half of the sequences are kept apart, for error bars.
    joins : bool
        Whether sequences have names, by which pieces of one are joined wherever they were counted.
    by_content : bool
        Whether the half of a sequence is what its name says, or without names its symbols; else it
        is that of its place in the shard, as in stores of earlier formats that join no pieces.

    Examples
    --------
    >>> import numpy as np
    >>> letters = Vocabulary(("a", "b"), core=2)
    >>> sketch = Basis(np.eye(2, dtype=np.int8), 2, letters.fingerprint)
    >>> foundation = SequencesFoundation(letters, sketch, halves=False)
    >>> statistics = foundation.of_sequences(SymbolBatch.of([[0, 1, 0, 0]]))
    >>> statistics.sums["triple_sketch"][1, 1:, 1:].tolist(), statistics.totals.triples
    ([[1, 0], [0, 0]], 2)
    """

    alphabet: Vocabulary
    sketch: Basis
    halves: bool = True
    joins: bool = False
    by_content: bool = True
    kind: ClassVar[str] = "sequences"
    drawn: ClassVar[str] = "alphabet and sketch"

    __repr__ = short_repr
    join = staticmethod(joined_windows)

    def __post_init__(self) -> None:
        require_sketch(self.sketch, self.alphabet)
        if self.alphabet.n_words > MOST_SYMBOLS:
            raise InvalidInput(
                f"an alphabet of {self.alphabet.n_words:,} symbols; {MOST_SYMBOLS:,} at most: "
                "create the store with a lower --vocabulary-size"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the sketch, which names its alphabet, of halves and of whether it joins."""
        content = f"sequences {self.sketch.fingerprint} {self.halves}{' joins' * self.joins}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def halves_by_content(self) -> bool:
        """Whether halves are kept apart, by what sequences hold: those of names always are."""
        return self.halves and self.by_content and not self.joins

    @property
    def rows(self) -> int:
        """Symbols n."""
        return self.sketch.n_words

    @property
    def whole(self) -> bool:
        """Whether the slices hold the table of triples: Q is the identity of all symbols."""
        return self.sketch.columns == self.rows

    @property
    def words(self) -> dict[str, Vocabulary]:
        """The alphabet."""
        return {"symbols": self.alphabet}

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Q; the symbols, whether halves are kept, and whether pieces are joined."""
        attributes = {"alphabet": describe_words(self.alphabet), "halves_kept": self.halves}
        return {"Q": self.sketch.matrix}, {**attributes, **({"joins": True} if self.joins else {})}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """The foundation of `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            They describe none.
        """
        alphabet = words_described(attributes["alphabet"])
        sketch = Basis(arrays["Q"], alphabet.n_words, alphabet.fingerprint)
        kept, joins = bool(attributes["halves_kept"]), bool(attributes.get("joins", False))
        # a store says it only where it matters
        by_content = bool(attributes.get("by_content", True)) or joins or not kept
        return cls(alphabet, sketch, kept, joins, by_content)

    def whole_shapes(self, block: RowBlock) -> dict[str, tuple[int, ...]]:
        """Shape of each row array of a block by name, without those of halves."""
        size, width = block.size(self.rows), 1 + self.sketch.columns
        return {TRIPLES: (size, width, width), FIRST: (size,)}

    def totals(self, tables: Arrays, rows: int | None = None) -> SequenceTotals:
        """Totals that `SequenceTotals.tables` described."""
        return SequenceTotals.of_tables(tables)

    def with_seams(self, statistics: ViewStatistics) -> ViewStatistics:
        """Of pieces that were counted each by itself the statistics of their sequences.

        They are those of one pass over the sequences, bit for bit, wherever these were cut.
        """
        seams = self._seams(statistics.totals)
        sums = {name: array.copy() for name, array in statistics.sums.items()}
        seams.add(sums, statistics.block)
        totals = _whole(statistics.totals, seams)
        return replace(statistics, totals=totals, sums=sums)

    def totals_with_seams(self, totals: SequenceTotals) -> SequenceTotals:
        """Of pieces that were counted each by itself the totals of their sequences."""
        return _whole(totals, self._seams(totals))

    def prepared(self, batch: SymbolBatch) -> PreparedWindows:
        """The windows of a batch; errors as `PreparedWindows.of`."""
        return PreparedWindows.of(batch, self.sketch, self.halves)

    def rejection_reason(self, totals: ViewTotals) -> str | None:
        """Sequences without a window of three known symbols are nothing to count.

        Where they may go on in other shards, those without a known symbol.
        """
        if totals.triples or (self.joins and totals.n_tokens):
            return None
        if self.joins:
            return (
                f"none of the symbols of its {totals.n_documents} sequences is of the alphabet; "
                "check the columns, or create a store from such shards"
            )
        return (
            f"none of its {totals.n_documents} sequences holds three known symbols in a row "
            f"({totals.without} of them are shorter); check the column and what a symbol is, or "
            "create a store from such shards"
        )

    def of_sequences(self, batch: SymbolBatch, block: RowBlock = RowBlock()) -> ViewStatistics:
        """The statistics of chunks of sequences; errors as `prepared`."""
        return self.of([self.prepared(batch)], block)

    def _seams(self, totals: Any) -> PreparedWindows:
        return seams_of(totals.pieces, self.sketch, self.halves)


def _whole(totals: Any, seams: PreparedWindows) -> SequenceTotals:
    whole: SequenceTotals = replace(totals + seams.totals, pieces=Pieces())
    return whole
