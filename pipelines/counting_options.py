"""Options of `create` for counts: the form of documents, and the choice of the vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from streaming_moments.arguments import checked
from streaming_moments.models.base import option
from streaming_moments.pipelines.quantities import (
    Count,
    Number,
    PositiveShare,
    Seed,
    require_ranges,
)
from streaming_moments.printing.remedies import of_commands
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.statistics.counts.lengths.weights import WEIGHTINGS, Weighting
from streaming_moments.storage.counting.languages import AUTO, known_languages
from streaming_moments.storage.counting.tokenisers.compiled import NAME as COMPILED
from streaming_moments.storage.counting.tokenisers.registry import (
    known_names,
    spellings,
    tokeniser_called,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.formats import FORMATS
from streaming_moments.storage.shards import ShardFormat

PILOT_DOCUMENTS = 20_000
MOST_TOPICS = 32  # a new basis can separate this many topics, unless an option sets the number
# If a pilot finds too few words, the sample grows, to at most this many times the passages and
# shards of the first sample. Sampling has no time limit, so that the same shards give the same
# words on every machine.
MOST_TIMES = 16
# Headings in the help of `create`.
_DATA: Mapping[str, None] = MappingProxyType({"Data in SHARDS": None})
WORDS = "Words"
_WORDS: Mapping[str, None] = MappingProxyType({WORDS: None})
_SAMPLE: Mapping[str, None] = MappingProxyType({"Sample": None})
_SUMS: Mapping[str, None] = MappingProxyType({"What STORE holds": None})


@partial(checked, spell=of_commands)
@dataclass(frozen=True)
class CountingOptions:
    """Options that define a document and its counts; the help of each field explains it."""

    __repr__ = short_repr

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
        "Column of categories, for a table instead of texts; repeatable, or several with commas.",
        (),
        metavar="NAME",
        sections=_DATA,
    )
    date_column: str | None = option(
        "Column or JSON field of dates.", None, metavar="NAME", sections=_DATA
    )
    date_pattern: str | None = option(
        'Pattern of the date in the URL of a shard, such as "%Y%m%d"; none: URLs have no date '
        "[ISO dates].",
        None,
        lambda pattern: DateSource(pattern=pattern),
        values=lambda: ("none",),
        metavar="PATTERN",
        sections=_DATA,
    )
    languages: tuple[str, ...] = option(
        "Language whose stop words are removed; repeatable. auto: the languages of the "
        "sample; none: no language [auto].",
        (AUTO,),
        TokenPolicy.for_languages,
        flag="--language",
        values=known_languages,
        metavar="NAME",
        sections=_WORDS,
    )
    tokeniser: str = option(
        f"Tokeniser, which splits texts into words: {spellings()}.",
        COMPILED,
        tokeniser_called,
        values=known_names,
        metavar="NAME",
        sections=_WORDS,
    )
    stop_words: tuple[str, ...] = option(
        "Also remove this word; repeatable.",
        (),
        flag="--stop-word",
        metavar="WORD",
        sections=_WORDS,
    )
    phrases: tuple[str, ...] = option(
        "2 or 3: find frequent phrases of up to this many words in the sample, and count each "
        "as one word. Or a phrase to count; repeatable.",
        (),
        values=lambda: ("2", "3"),
        metavar="PHRASE",
        sections=_WORDS,
    )
    min_length: Count = option(
        "Leave out words with fewer characters than this.", 2, sections=_WORDS
    )
    passage_words: Count | None = option(
        "Split documents into passages of this many words.", None, sections=_WORDS
    )
    codocuments: bool = option(
        "Count documents with both words of a pair, which coherence needs.", True, sections=_SUMS
    )
    halves: bool = option(
        "Also count half of the documents separately, for error bars and held-out scores.",
        True,
        sections=_SUMS,
    )

    def __post_init__(self) -> None:
        require_ranges(self)

    @property
    def form(self) -> ShardFormat:
        """Where documents are in a shard."""
        columns = tuple(name.strip() for given in self.categories for name in given.split(","))
        return ShardFormat(
            self.format, self.text_column, self.ids_column, self.counts_column, columns
        )

    @property
    def policy(self) -> TokenPolicy:
        """How a text becomes tokens.

        With the language `auto`, the policy has no stop words until `create` has found the
        languages.
        """
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
        """Where in a shard, or in its name, the days of documents are."""
        return DateSource(self.date_column, self.date_pattern)


@partial(checked, spell=of_commands)
@dataclass(frozen=True)
class PilotOptions:
    """Options for vocabulary and basis from a pilot; the help of each field explains it."""

    __repr__ = short_repr

    vocabulary_size: Count = option(
        "Largest number of words in the vocabulary.", 10_000, sections=_WORDS
    )
    core: Count = option(
        "Largest number of core words, whose pairs are stored exactly.",
        DEFAULT_CORE,
        sections=_WORDS,
    )
    min_documents: Number = option(
        "Leave out words that occur in fewer passages of the sample than this.", 5, sections=_WORDS
    )
    max_document_fraction: PositiveShare = option(
        "Leave out words that occur in a larger share of the passages than this.",
        0.5,
        sections=_WORDS,
    )
    max_topics: Count | None = option(
        f"Largest number of topics that later fits can have [{MOST_TOPICS}, or as many as there "
        "are core words].",
        None,
        sections=_SAMPLE,
    )
    pilot_documents: Count = option(
        f"Passages in the sample. Without this option, the sample grows up to {MOST_TIMES} times, "
        "until it has enough words.",
        PILOT_DOCUMENTS,
        sections=_SAMPLE,
    )
    length_weights: Weighting = option(
        "even: long documents are down-weighted; pooled: all words have the same weight.",
        "even",
        choices=WEIGHTINGS,
        sections=_SUMS,
    )
    seed: Seed = option("Seed of the sample and the basis.", 0, sections=_SAMPLE)

    def __post_init__(self) -> None:
        require_ranges(self)
