"""SequencesFoundation: alphabet and sketch that define the statistics of sequences."""

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
    """Definition of the statistics of sequences of symbols; a `Foundation`.

    A window of three symbols is a record of three views. The sums have a row for each middle
    symbol, and the symbols before and after it are sketched by one basis.

    Parameters
    ----------
    alphabet : Vocabulary
        The n symbols by decreasing frequency.
    sketch : Basis
        Q of the alphabet.
    halves : bool
        Whether the sums of half of the sequences are stored separately, for error bars.
    joins : bool
        Whether sequences have names, by which their pieces are joined across shards.
    by_content : bool
        Whether the name of a sequence decides its half, or its symbols if it has no name. If False,
        its position in the shard decides, as in stores of earlier formats without names.

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
                f"the alphabet has {self.alphabet.n_words:,} symbols, but at most "
                f"{MOST_SYMBOLS:,} fit",
                "give a lower {create.vocabulary_size}",
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the sketch, its alphabet, and whether halves are stored and pieces joined."""
        content = f"sequences {self.sketch.fingerprint} {self.halves}{' joins' * self.joins}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def halves_by_content(self) -> bool:
        """Whether stores must note that the symbols of a sequence decide its half.

        False if sequences have names, because names then decide.
        """
        return self.halves and self.by_content and not self.joins

    @property
    def rows(self) -> int:
        """Number of symbols n."""
        return self.sketch.n_words

    @property
    def whole(self) -> bool:
        """Whether all triples are stored, because Q is the identity matrix."""
        return self.sketch.columns == self.rows

    @property
    def words(self) -> dict[str, Vocabulary]:
        """The alphabet."""
        return {"symbols": self.alphabet}

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (Q) and attributes (symbols, and whether there are halves and pieces)."""
        attributes = {"alphabet": describe_words(self.alphabet), "halves_kept": self.halves}
        return {"Q": self.sketch.matrix}, {**attributes, **({"joins": True} if self.joins else {})}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            The parts do not describe a foundation.
        """
        alphabet = words_described(attributes["alphabet"])
        sketch = Basis(arrays["Q"], alphabet.n_words, alphabet.fingerprint)
        kept, joins = bool(attributes["halves_kept"]), bool(attributes.get("joins", False))
        # stores save `by_content` only if it could be False; else it is True
        by_content = bool(attributes.get("by_content", True)) or joins or not kept
        return cls(alphabet, sketch, kept, joins, by_content)

    def whole_shapes(self, block: RowBlock) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, without the arrays of halves."""
        size, width = block.size(self.rows), 1 + self.sketch.columns
        return {TRIPLES: (size, width, width), FIRST: (size,)}

    def totals(self, tables: Arrays, rows: int | None = None) -> SequenceTotals:
        """Restore totals from `SequenceTotals.tables`."""
        return SequenceTotals.of_tables(tables)

    def with_seams(self, statistics: ViewStatistics) -> ViewStatistics:
        """Return statistics of whole sequences from those of pieces that were counted separately.

        Wherever the sequences were cut, the result equals one pass over them, bit for bit.
        """
        seams = self._seams(statistics.totals)
        sums = {name: array.copy() for name, array in statistics.sums.items()}
        seams.add(sums, statistics.block)
        totals = _whole(statistics.totals, seams)
        return replace(statistics, totals=totals, sums=sums)

    def totals_with_seams(self, totals: SequenceTotals) -> SequenceTotals:
        """Return totals of whole sequences from those of pieces that were counted separately."""
        return _whole(totals, self._seams(totals))

    def prepared(self, batch: SymbolBatch) -> PreparedWindows:
        """Prepare the windows of a batch; raises the errors of `PreparedWindows.of`."""
        return PreparedWindows.of(batch, self.sketch, self.halves)

    def rejection_reason(self, totals: ViewTotals) -> str | None:
        """Return why to reject the sequences if none has three known symbols in a row, else None.

        If sequences can continue in other shards, they are rejected only if no symbol is known.
        """
        if totals.triples or (self.joins and totals.n_tokens):
            return None
        if self.joins:
            return (
                f"none of the symbols of its {totals.n_documents} sequences is in the alphabet; "
                "check the columns, or create a store from such shards"
            )
        return (
            f"none of its {totals.n_documents} sequences holds three known symbols in a row "
            f"({totals.without} of them are shorter); check the column and what a symbol is, or "
            "create a store from such shards"
        )

    def of_sequences(self, batch: SymbolBatch, block: RowBlock = RowBlock()) -> ViewStatistics:
        """Return the statistics of chunks of sequences; raises the errors of `prepared`."""
        return self.of([self.prepared(batch)], block)

    def _seams(self, totals: Any) -> PreparedWindows:
        return seams_of(totals.pieces, self.sketch, self.halves)


def _whole(totals: Any, seams: PreparedWindows) -> SequenceTotals:
    whole: SequenceTotals = replace(totals + seams.totals, pieces=Pieces())
    return whole
