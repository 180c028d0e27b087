"""Read records with three views: columns of a shard whose words are counted together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, Vocabulary
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.statistics.views.records import ViewBatch
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.columns import values_of, words_of
from streaming_moments.storage.counting.counting import SpelledTexts, WordIndex
from streaming_moments.storage.counting.halves import halved
from streaming_moments.storage.counting.passages import Passages, words_in
from streaming_moments.storage.counting.reading import ReadBatch, steadily
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import read_tables
from streaming_moments.storage.formats import DEFAULT_LIMITS, START, Position, ReadLimits
from streaming_moments.storage.lazy_libraries import pa, pc
from streaming_moments.storage.shards import Shard, ShardFormat

_TEXT = ":text"


@dataclass(frozen=True)
class ViewsForm:
    """The three columns of a shard that are views.

    `texts` says for each column whether it holds texts, which are split into words. In other
    columns each value is one word.
    """

    columns: tuple[str, str, str]
    texts: tuple[bool, bool, bool]
    policy: TokenPolicy = field(default_factory=TokenPolicy)

    def __post_init__(self) -> None:
        if len(self.columns) != 3 or len(set(self.columns)) != 3:
            raise InvalidInput(
                f"views are three different columns, got {', '.join(self.columns) or 'none'}",
                "give them as {create.columns:a,b,c}, with NAME:text for a column of texts",
            )
        if self.policy.passage_words is not None:
            raise InvalidInput(
                "records of views are not cut into passages",
                "create without {create.passage_words}",
            )

    @classmethod
    def parse(cls, columns: Sequence[str], policy: TokenPolicy = TokenPolicy()) -> ViewsForm:
        """Make the form from names of columns, with `:text` after those that hold texts.

        Examples
        --------
        >>> ViewsForm.parse(["title:text", "author", "year"]).texts
        (True, False, False)
        """
        names: Any = tuple(name.removesuffix(_TEXT) for name in columns)
        texts: Any = tuple(name.endswith(_TEXT) for name in columns)
        return cls(names, texts, policy)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ViewsForm:
        """Decode a form that `to_json` encoded."""
        columns: Any = tuple(content["columns"])
        texts: Any = tuple(map(bool, content["texts"]))
        return cls(columns, texts, TokenPolicy.from_json(content["policy"]))

    def to_json(self) -> dict[str, Any]:
        """Convert the form to an object for JSON."""
        policy = self.policy.to_json()
        return {"columns": list(self.columns), "texts": list(self.texts), "policy": policy}


@dataclass(frozen=True, eq=False)
class ViewReader:
    """Reads the shards of a store of views.

    indices : for each view, a WordIndex (texts) or an Arrow array (values) that finds its words
    given : columns to read, by default all; in the other columns, each record then has no words
    by_content : whether the half of a record depends on its words; otherwise consecutive records
        alternate between the halves of the data
    """

    form: ShardFormat
    views: ViewsForm
    vocabularies: tuple[Vocabulary, Vocabulary, Vocabulary]
    indices: tuple[Any, ...]
    limits: ReadLimits = DEFAULT_LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    given: tuple[str, ...] = ()
    by_content: bool = False

    @classmethod
    def of(
        cls,
        form: ShardFormat,
        views: ViewsForm,
        foundation: ViewsFoundation,
        limits: ReadLimits = DEFAULT_LIMITS,
        storage_options: Mapping[str, object] | None = None,
    ) -> ViewReader:
        """Make a reader for a store; its foundation has the vocabularies of the views."""
        made = cls.over(form, views, foundation.vocabularies, limits, storage_options)
        return replace(made, by_content=foundation.by_content)

    @classmethod
    def over(
        cls,
        form: ShardFormat,
        views: ViewsForm,
        words: tuple[Vocabulary, Vocabulary, Vocabulary],
        limits: ReadLimits = DEFAULT_LIMITS,
        storage_options: Mapping[str, object] | None = None,
    ) -> ViewReader:
        """Make a reader that counts the words of three vocabularies, one for each view."""
        indices = tuple(
            WordIndex.of(own, views.policy) if text else words_of(own)
            for own, text in zip(words, views.texts, strict=True)
        )
        return cls(form, views, words, indices, limits, storage_options)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[ViewBatch]]:
        """Read records of a shard from a position on."""
        options = self.storage_options
        columns = self.given or self.views.columns
        tables = read_tables(shard, self.form, columns, self.limits, options, start, content)
        return steadily(self._counted(tables, shard), shard, options, content)

    def _counted(
        self, tables: Iterable[tuple[pa.Table, Position]], shard: Shard
    ) -> Iterator[ReadBatch[ViewBatch]]:
        for table, after, odd in halved(tables, shard.size, self.by_content):
            batch, outside = self.counted(table, shard.url)
            yield ReadBatch(batch.halved(odd), outside, after)

    def counted(self, table: pa.Table, url: str) -> tuple[ViewBatch, int]:
        """Count the words in each row of a table; also return how many words are unknown."""
        counted = [self._view(table, place, url) for place in range(3)]
        return ViewBatch(*(view for view, _ in counted)), sum(outside for _, outside in counted)

    def _view(self, table: pa.Table, place: int, url: str) -> tuple[CountBatch, int]:
        name, words = self.views.columns[place], self.vocabularies[place]
        shape = table.num_rows, words.n_words
        if self.given and name not in self.given:
            return CountBatch.from_entries([], [], None, shape, words.fingerprint), 0
        if self.views.texts[place]:
            found: tuple[CountBatch, int] = self.indices[place].count(text_column(table[name]))
            return found
        values = values_of(table[name], name, url)
        places = values.places(self.indices[place])
        records = np.repeat(np.arange(table.num_rows), np.diff(values.offsets))
        known = places >= 0
        view = CountBatch.from_entries(
            records[known], places[known], None, shape, words.fingerprint
        )
        outside = places.size - int(known.sum()) - values.texts.null_count
        return view, outside


def text_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to texts, as `count_column` takes them."""
    return column.cast(pa.large_string())


def sample_rows(
    shard: Shard,
    form: ShardFormat,
    columns: Sequence[str],
    quota: int,
    seed: int,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    even: bool = False,
) -> pa.Table:
    """Draw rows of a shard, each equally likely, in one pass, and keep their order.

    The sample is smaller than the quota if it would take more than `limits.pilot_bytes`. For `even`
    see `read_tables`, whose errors are raised, too.
    """
    rng = np.random.default_rng(seed)
    held: pa.Table | None = None
    keys = np.empty(0)
    tables = read_tables(shard, form, columns, limits, storage_options, even=even)
    for table, _ in steadily(tables, shard, storage_options):
        keys = np.concatenate([keys, rng.random(table.num_rows)])
        # promote types, so that a column with only nulls gets its type from other tables
        joined = [table] if held is None else [held, table]
        held = pa.concat_tables(joined, promote_options="default")
        # each row has a random key; the rows with the smallest keys are a uniform sample of any
        # size
        if held.nbytes > limits.pilot_bytes:
            quota = min(quota, max(1, held.num_rows * limits.pilot_bytes // held.nbytes))
        if held.num_rows > quota:
            # keep the order that the rows have in the shard
            drawn = np.sort(np.argpartition(keys, quota)[:quota])
            held, keys = held.take(drawn).combine_chunks(), keys[drawn]
    return held


def column_frequencies(
    column: pa.ChunkedArray, name: str, policy: TokenPolicy | None
) -> TermFrequencies:
    """Count how often each word of a view occurs in a pilot, and in how many records."""
    rows = len(column)
    if policy is not None:
        passages = Passages.of(SpelledTexts.of(text_column(column), policy), None)
        return _word_frequencies(passages, rows, policy)
    values = values_of(column, name, name)
    records, texts = np.repeat(np.arange(rows), np.diff(values.offsets)), values.texts
    encoded = texts.dictionary_encode()
    places = np.asarray(pc.fill_null(encoded.indices, -1), dtype=np.int64)
    known = places >= 0
    terms = encoded.dictionary.to_pylist()
    counts = np.bincount(places[known], minlength=len(terms)).astype(np.int64)
    pairs = np.unique(places[known] * max(rows, 1) + records[known])
    documents = np.bincount(pairs // max(rows, 1), minlength=len(terms)).astype(np.int64)
    return TermFrequencies(terms, counts, documents, rows)


def _word_frequencies(passages: Passages, rows: int, policy: TokenPolicy) -> TermFrequencies:
    known: dict[str, int] = {}
    counts, documents = np.zeros(0, np.int64), np.zeros(0, np.int64)
    # convert one text at a time, because words as Python objects take much more memory than their
    # bytes
    for place in range(rows):
        words = policy.tokens_in(words_in(passages[place]))
        codes = np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int64)
        used, often = np.unique(codes, return_counts=True)
        if len(known) > counts.size:
            # make the arrays at least twice as long, so that this happens rarely
            more = np.zeros(len(known), np.int64)
            counts, documents = np.append(counts, more), np.append(documents, more)
        counts[used] += often
        documents[used] += 1
    own = slice(0, len(known))
    return TermFrequencies(list(known), counts[own], documents[own], rows)
