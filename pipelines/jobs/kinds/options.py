"""KindOptions: what is counted of shards."""

from __future__ import annotations

from dataclasses import dataclass

from streaming_moments.models.base import option
from streaming_moments.pipelines.quantities import Count
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.edges.foundation import WHOLE_NODES
from streaming_moments.statistics.registry import KINDS
from streaming_moments.storage.counting.symbols.sequences import SYMBOLS, Symbols
from streaming_moments.storage.counting.vectors import BAD_ROWS, BadRows

# Options of `create` for kinds whose words are chosen by a pilot, and for those of texts.
OF_WORDS = frozenset({"vocabulary_size", "min_documents"})
OF_TEXTS = frozenset({"languages", "stop_words", "min_length", "max_document_fraction"})


@dataclass(frozen=True)
class KindOptions:
    """What is counted of shards; each field says what it is in its help."""

    kind: str = option("What is counted.", CountsFoundation.kind, choices=tuple(KINDS))
    columns: str | None = option(
        "Of views three columns, a,b,c: a value is a word, of NAME:text each word of it. Of "
        "sequences one of lists, or sequence,time,symbol in this order, or sequence,from,symbols "
        "of lists [texts]. Of vectors one of lists of numbers, or several of numbers [vector]. Of "
        "edges both ends [source,target]. Of sets one of lists of features, or several of 0 and "
        "1, each a feature [features].",
        None,
        metavar="NAMES",
    )
    symbols: Symbols = option("A symbol of texts.", "characters", choices=SYMBOLS)
    sketch_columns: Count | None = option(
        "Of views, sequences and edges: columns of a sketch, twice the states and two more [22; "
        f"all of up to 128 words, of edges of up to {WHOLE_NODES:,} nodes]; of vectors one and a "
        "half for each component [50; all of up to 64]; of sets as of views.",
        None,
    )
    directed: bool = option("Of edges: only the source has the target for a neighbour.", False)
    squares: bool = option(
        "Of vectors: keep sums by which each coordinate has a variance in each component.", False
    )
    fourth: bool = option("Of vectors: keep fourth moments, for factors without skew.", False)
    bad_rows: BadRows = option(
        "Of vectors: whether a row of another width, or with NaN, is left out or spoils its shard.",
        "skip",
        choices=BAD_ROWS,
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else ()
