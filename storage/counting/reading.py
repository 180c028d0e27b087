"""Read shards of documents, and count the words of a vocabulary in them, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from streaming_moments.errors import ForeignStatistics, InvalidInput, ShardError
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.tables.columns import CATEGORIES
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.halves import odd_in_turn
from streaming_moments.storage.contents import ShardContent, changed
from streaming_moments.storage.counting.categories import CategoryIndex
from streaming_moments.storage.counting.counting import CountedPassages, WordIndex, count_column
from streaming_moments.storage.counting.ids import IdIndex
from streaming_moments.storage.counting.tokenisers.base import TokeniserFailed
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import (
    DEFAULT_LIMITS,
    START,
    Holds,
    Position,
    ReadLimits,
    encoded,
)
from streaming_moments.storage.shards import Shard, ShardFormat, files_of

_Chunk = TypeVar("_Chunk")
_Batch = TypeVar("_Batch", covariant=True)

_UNFITTING: Mapping[Holds, str] = MappingProxyType(
    {
        "texts": "contains token ids, but the vocabulary contains terms; give shards of texts, or "
        "create a store from shards of ids",
        "ids": "contains texts, but the vocabulary contains token ids; give shards of ids (LDA-C, "
        "or "
        "Parquet or JSON Lines with a column of ids), or create a store from texts",
        "categories": "contains documents, but the vocabulary contains values of columns; give "
        "tables of these columns, or create a store from documents",
    }
)


@dataclass(frozen=True, eq=False)
class ReadBatch(Generic[_Batch]):
    """Consecutive records of a shard.

    batch : CountBatch, ViewBatch, SymbolBatch, VectorBatch or EdgeBatch: the records, each with the
        half of the data that it is in, as `Foundation.prepared` takes them
    outside : number of words, symbols, rows or edges that are not counted, because the foundation
        of the store, such as its vocabulary, lacks them
    after : position in the shard after these records
    cutting : seconds that the tokeniser took
    """

    batch: _Batch
    outside: int
    after: Position = START
    cutting: float = field(default=0.0, kw_only=True)


def read_shard(
    shard: Shard,
    form: ShardFormat,
    vocabulary: Vocabulary,
    policy: TokenPolicy | None,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
) -> Iterator[ReadBatch[CountBatch]]:
    r"""Count a shard over a vocabulary, batch by batch, in the order of its documents.

    Raises InvalidInput if a policy is given for token ids, or if none is given for texts. Raises
    ForeignStatistics if the vocabulary was made by another policy. Raises ShardError if the shard
    cannot be read, has changed (list it again), holds texts although the vocabulary has ids or the
    reverse, or has a document on which the tokeniser fails.

    Yields at least one batch, or raises. Use the batches only after the iteration has ended without
    an error, which shows that the shard has not changed meanwhile.

    shard : a shard from `list_shards`
    form : format of its documents
    vocabulary : the n words to count
    policy : the policy that made the vocabulary; None for shards of token ids
    limits : bounds on a document and a batch
    storage_options : options of the fsspec file system
    start : position to begin at; if it is the position `after` of a batch, reading goes on with the
        next batch

    Examples
    --------
    >>> import fsspec
    >>> from streaming_moments.storage.listing import list_shards
    >>> fsspec.filesystem("memory").pipe("/counted/a.txt", b"sea and law\nlaw")
    >>> policy = TokenPolicy(stop_words=("and",))
    >>> vocabulary = Vocabulary(("law",), core=1, policy=policy.fingerprint)
    >>> [shard] = list_shards(["memory://counted/a.txt"])
    >>> for read in read_shard(shard, ShardFormat(), vocabulary, policy):
    ...     print(read.batch.to_csr().toarray().tolist(), read.outside)
    [[1], [1]] 1
    """
    require_fitting(shard, form, vocabulary)
    index = index_of(vocabulary, policy)
    return read_indexed(shard, form, index, limits, storage_options, start)


Index = WordIndex | IdIndex | CategoryIndex


def index_of(vocabulary: Vocabulary, policy: TokenPolicy | None) -> Index:
    """Make the index by which `read_indexed` finds words; one index serves many shards.

    Raises InvalidInput if a vocabulary of texts has no policy, or another vocabulary has one.
    Raises ForeignStatistics if the policy did not make the vocabulary.
    """
    if vocabulary.token_ids is not None:
        refuse_policy(policy)
        return IdIndex.of(vocabulary)
    if vocabulary.policy == CATEGORIES:
        refuse_policy(policy)
        return CategoryIndex.of(vocabulary)
    made = required_policy(policy)
    if vocabulary.policy != made.fingerprint:
        raise ForeignStatistics(
            f"the vocabulary was made by token policy {vocabulary.policy[:12] or '(none)'}, "
            f"not {made.fingerprint[:12]}; read with the policy of the store"
        )
    return WordIndex.of(vocabulary, made)


@dataclass(frozen=True)
class DocumentHalves:
    """Rule that assigns each document of a store to one of the two halves of the data.

    by_content : whether the half of a document depends on its counts. If not, consecutive documents
        alternate between the halves, as rows of tables and documents of older stores do
    n_words : the half depends only on the counts of the first `n_words` words; None means all words
    """

    by_content: bool = True
    n_words: int | None = None

    def put(self, counted: CountedPassages, first: int) -> CountBatch:
        """Assign passages to halves; `first` is the number of their first document."""
        if not self.by_content:
            return counted.halved(odd_in_turn(first, counted.documents)).batch
        if self.n_words is None:
            return counted.batch
        return counted.halved(counted.odd(self.n_words)).batch


@dataclass(frozen=True, eq=False)
class CountReader:
    """Reads the shards of a store of documents; `index` finds the words to count.

    `halves` is the rule for the halves of documents.
    """

    form: ShardFormat
    index: Index
    limits: ReadLimits
    storage_options: Mapping[str, object] | None = field(repr=False)
    halves: DocumentHalves = DocumentHalves()

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[CountBatch]]:
        """Read batches of a shard from a position on; raises as `read_indexed`."""
        options, halves = self.storage_options, self.halves
        return read_indexed(
            shard, self.form, self.index, self.limits, options, start, content, halves
        )


def read_indexed(
    shard: Shard,
    form: ShardFormat,
    index: Index,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
    halves: DocumentHalves | None = None,
) -> Iterator[ReadBatch[CountBatch]]:
    """Count a shard over the vocabulary of an index; raises what `read_shard` raises.

    `content` marks the content that the shard must have; other content raises ShardError. `halves`
    is the rule for the halves of documents. By default the half of a document depends on its
    counts, and rows of tables alternate between the halves.
    """
    require_fitting(shard, form, index.vocabulary)
    halves = halves or DocumentHalves(by_content=index.holds != "categories")
    chunks = read_chunks(shard, form, limits, storage_options, start, content)
    counted = _counted(chunks, index, shard.size, start.passed, halves)
    return steadily(counted, shard, storage_options, content)


def _counted(
    chunks: Iterable[tuple[Any, Position]],
    index: Index,
    number: int,
    before: int,
    halves: DocumentHalves,
) -> Iterator[ReadBatch[CountBatch]]:
    for chunk, after in chunks:
        with after_documents(before):
            counted = index.counted(chunk)
        outside = int(counted.outside.sum())
        batch = halves.put(counted, number)
        yield ReadBatch(batch, outside, after, cutting=counted.cutting)
        number += counted.documents
        before += counted.documents


def require_fitting(shard: Shard, form: ShardFormat, vocabulary: Vocabulary) -> None:
    """Raise ShardError unless shard and vocabulary are of one kind, such as texts or token ids."""
    index: type[Index] = WordIndex if vocabulary.token_ids is None else IdIndex
    if vocabulary.policy == CATEGORIES:
        index = CategoryIndex
    if form.holds(shard.url) != index.holds:
        raise ShardError(shard.url, _UNFITTING[index.holds])


def count_texts(
    texts: Iterable[str], vocabulary: Vocabulary, policy: TokenPolicy
) -> ReadBatch[CountBatch]:
    """Count texts, cut into passages, over a vocabulary.

    Examples
    --------
    >>> policy = TokenPolicy(passage_words=2)
    >>> read = count_texts(["sea law law", ""], Vocabulary(("law", "sea"), core=1), policy)
    >>> read.batch.to_csr().toarray().tolist(), read.outside
    ([[1, 1], [1, 0], [0, 0]], 0)
    """
    return ReadBatch(*count_column(encoded(texts), WordIndex.of(vocabulary, policy)))


def refuse_policy(policy: TokenPolicy | None) -> None:
    if policy is not None:
        raise InvalidInput("token ids and values of columns have no token policy; leave it out")


def required_policy(policy: TokenPolicy | None) -> TokenPolicy:
    if policy is None:
        raise InvalidInput("texts need a token policy; give the policy that made the vocabulary")
    return policy


@contextmanager
def after_documents(number: int) -> Iterator[None]:
    """Add `number` to the number of a document on which the tokeniser fails in this block.

    The block numbers its documents from 0, although `number` documents of the shard precede them.
    So the error then has the number that the document has in the shard.
    """
    try:
        yield
    except TokeniserFailed as error:
        raise error.after(number) from None


@contextmanager
def of_shard(url: str) -> Iterator[None]:
    """Turn a failure of the tokeniser on a document into a ShardError that names the shard."""
    try:
        yield
    except TokeniserFailed as error:
        raise ShardError(url, *error.args) from error


def steadily(
    chunks: Iterator[_Chunk],
    shard: Shard,
    storage_options: Mapping[str, object] | None,
    content: ShardContent | None = None,
) -> Iterator[_Chunk]:
    before = files_of(shard, storage_options)
    size = sum(state.size for state in before)
    replaced = shard.etag is not None and before[0].etag != shard.etag
    if size != shard.size or replaced:
        raise ShardError(
            shard.url,
            f"changed since it was listed ({shard.size} bytes then, {size} now); list it again",
        )
    if content is not None and not content.is_of(before):
        raise changed(shard.url)
    with of_shard(shard.url):
        yield from chunks
    if files_of(shard, storage_options) != before:
        raise changed(shard.url)
