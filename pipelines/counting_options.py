"""Options of `create` for counts: the form of documents, and the choice of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streaming_moments.models.base import option
from streaming_moments.pipelines.quantities import Count, Number, PositiveShare, Seed
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.statistics.counts.lengths.weights import WEIGHTINGS, Weighting
from streaming_moments.storage.counting.languages import AUTO
from streaming_moments.storage.counting.tokenisers.compiled import NAME as COMPILED
from streaming_moments.storage.counting.tokenisers.registry import spellings, tokeniser_called
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.shards import ShardFormat

PILOT_DOCUMENTS = 20_000
# If a pilot finds too few words, it samples up to this many times its passages and shards. Bounds
# end it, and not a clock, so that the same shards give the same words on every machine.
MOST_TIMES = 16
# Headings in the help of `create`.
_DATA: Mapping[str, None] = MappingProxyType({"Data in SHARDS": None})
WORDS = "Words"
_WORDS: Mapping[str, None] = MappingProxyType({WORDS: None})
_SAMPLE: Mapping[str, None] = MappingProxyType({"Sample": None})
_SUMS: Mapping[str, None] = MappingProxyType({"What STORE holds": None})


@dataclass(frozen=True)
class CountingOptions:
    """Options that define a document and its counts; the help of each field explains it."""

    format: str | None = option(
        f"Format of the shards: {', '.join(FORMATS)} [by suffix].",
        None,
        ShardFormat,
        choices=tuple(FORMATS),
        sections=_DATA,
    )
    text_column: str = option(
        "Column or JSON field of the texts.", "text", metavar="NAME", sections=_DATA
    )
    ids_column: str | None = option(
        "Column of lists of token ids, instead of texts.", None, metavar="NAME", sections=_DATA
    )
    counts_column: str | None = option(
        "Column of the counts of the token ids.", None, metavar="NAME", sections=_DATA
    )
    categories: tuple[str, ...] = option(
        "Categorical column of a table, instead of texts; repeatable, or several with commas.",
        (),
        metavar="NAME",
        sections=_DATA,
    )
    date_column: str | None = option(
        "Column or JSON field of dates.", None, metavar="NAME", sections=_DATA
    )
    date_pattern: str | None = option(
        'Date in the URL of a shard, such as "%Y%m%d", or "none" [ISO dates].',
        None,
        lambda pattern: DateSource(pattern=pattern),
        metavar="PATTERN",
        sections=_DATA,
    )
    languages: tuple[str, ...] = option(
        "Remove the stop words of this language; repeatable. auto: of the languages that the "
        "sample shows; none: of no language [auto].",
        (AUTO,),
        TokenPolicy.for_languages,
        flag="--language",
        metavar="NAME",
        sections=_WORDS,
    )
    tokeniser: str = option(
        f"What cuts texts into words: {spellings()}.",
        COMPILED,
        tokeniser_called,
        metavar="NAME",
        sections=_WORDS,
    )
    stop_words: tuple[str, ...] = option(
        "Remove this word as well; repeatable.",
        (),
        flag="--stop-word",
        metavar="WORD",
        sections=_WORDS,
    )
    phrases: tuple[str, ...] = option(
        "2 or 3: find phrases of at most this many words in the sample, and count each in place "
        "of its words; or a phrase to count, repeatable.",
        (),
        metavar="PHRASE",
        sections=_WORDS,
    )
    min_length: Count = option("Shortest word, in characters.", 2, sections=_WORDS)
    passage_words: Count | None = option(
        "Cut documents into passages of this many words.", None, sections=_WORDS
    )
    codocuments: bool = option("Store the counts that coherence needs.", True, sections=_SUMS)
    halves: bool = option(
        "Store half of the documents separately, for error bars and held-out scores.",
        True,
        sections=_SUMS,
    )

    @property
    def form(self) -> ShardFormat:
        """Where documents are in a shard."""
        columns = tuple(name.strip() for given in self.categories for name in given.split(","))
        return ShardFormat(
            self.format, self.text_column, self.ids_column, self.counts_column, columns
        )

    @property
    def policy(self) -> TokenPolicy:
        """How a text becomes tokens; a policy that looks for languages has no stop words yet."""
        return TokenPolicy.for_languages(
            self.languages,
            self.min_length,
            self.passage_words,
            self.stop_words,
            self.tokeniser,
            self.phrases,
        )

    @property
    def dates(self) -> DateSource:
        """Where the days of documents are."""
        return DateSource(self.date_column, self.date_pattern)


@dataclass(frozen=True)
class PilotOptions:
    """Options for vocabulary and basis from a pilot; the help of each field explains it."""

    vocabulary_size: Count = option("Largest vocabulary, in words.", 10_000, sections=_WORDS)
    core: Count = option(
        "Largest number of core words, whose pairs are stored exactly.",
        DEFAULT_CORE,
        sections=_WORDS,
    )
    min_documents: Number = option(
        "Leave out words of fewer passages of the sample.", 5, sections=_WORDS
    )
    max_document_fraction: PositiveShare = option(
        "Leave out words of a larger share of its passages.", 0.5, sections=_WORDS
    )
    max_topics: Count = option("Largest number of topics of later fits.", 32, sections=_SAMPLE)
    pilot_documents: Count = option(
        f"Passages to sample; without this option up to {MOST_TIMES} times as many, until the "
        "sample has enough words.",
        PILOT_DOCUMENTS,
        sections=_SAMPLE,
    )
    length_weights: Weighting = option(
        "even: long documents have a lower weight; pooled: all words weigh the same.",
        "even",
        choices=WEIGHTINGS,
        sections=_SUMS,
    )
    seed: Seed = option("Seed of the sample and the basis.", 0, sections=_SAMPLE)
