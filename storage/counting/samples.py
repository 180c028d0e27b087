"""Draw random passages from shards, and count all their terms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch, concatenate
from streaming_moments.statistics.counts.tables.columns import CATEGORIES
from streaming_moments.statistics.counts.vocabulary import TermFrequencies, Vocabulary
from streaming_moments.storage.counting.categories import coded
from streaming_moments.storage.counting.counting import SpelledTexts
from streaming_moments.storage.counting.languages import languages_of, unspaced_language
from streaming_moments.storage.counting.passages import Passages, words_in
from streaming_moments.storage.counting.reading import (
    after_documents,
    of_shard,
    refuse_policy,
    required_policy,
    steadily,
)
from streaming_moments.storage.counting.reservoir import draw
from streaming_moments.storage.counting.tokeniser.phrases import (
    OrderedTerms,
    found_phrases,
    term_of,
    without_separator,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import DEFAULT_LIMITS, Holds, IdChunk, ReadLimits, join_ids
from streaming_moments.storage.shards import Shard, ShardFormat

_SHOWN_PHRASES = 5
_OBJECT_BYTES = 300  # bytes of the Python objects that hold the ids and counts of one document


@dataclass(frozen=True, eq=False)
class TermSample:
    """A sample of passages, and how often each term occurs in each of them.

    terms : the m terms of the sample, sorted. For token ids, the ids in decimal, sorted by number.
    batch : (passages, m) counts over these terms
    documents_seen : number of all passages from which these were drawn
    token_ids : the m token ids; None for a sample of texts
    policy : fingerprint of the token policy; empty for token ids, `CATEGORIES` for rows of a table
    columns : columns of the table
    seconds : seconds that one thread spent in the tokeniser, and seconds of the whole reading,
        which include those of the tokeniser
    order : the terms of each passage in the order of the text, if the policy finds phrases
    """

    terms: tuple[str, ...]
    batch: CountBatch
    documents_seen: int
    token_ids: tuple[int, ...] | None = None
    policy: str = ""
    columns: tuple[str, ...] = ()
    seconds: tuple[float, float] = (0.0, 0.0)
    order: OrderedTerms | None = None


def sample_shard(
    shard: Shard,
    form: ShardFormat,
    policy: TokenPolicy | None,
    quota: int,
    seed: int,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    chunks: int | None = None,
) -> TermSample:
    """Draw passages of a shard, each equally likely, in one pass.

    Needs memory for the drawn passages and one chunk of the shard. The sample is smaller than the
    quota if it would take more than `limits.pilot_bytes`. Raises InvalidInput if the quota is below
    1, if a policy is given for token ids, or if none is given for texts. Raises ShardError if the
    shard cannot be read, if it changes while it is read, or if the tokeniser fails on it.

    shard, form, limits, storage_options : as for `read_shard`
    policy : token policy; None for shards of token ids
    quota : largest number of passages, at least 1; if the shard has fewer, all are drawn
    seed : the same seed draws the same passages of the same shard
    chunks : draw only from this many chunks at the beginning of the shard; by default from all
    """
    if quota < 1:
        raise InvalidInput(f"the quota is {quota} passages; it must be at least 1")
    read = islice(read_chunks(shard, form, limits, storage_options), chunks)
    steady = steadily((chunk for chunk, _ in read), shard, storage_options)
    with of_shard(shard.url):
        return _SAMPLERS[form.holds(shard.url)](steady, policy, quota, seed, limits.pilot_bytes)


def merge_samples(samples: Sequence[TermSample]) -> TermSample:
    """Join the passages of all samples, in the given order, over the union of their terms.

    Raises InvalidInput without samples, and ForeignStatistics for samples of different token
    policies, or of texts and of token ids.

    Examples
    --------
    >>> one = TermSample(("law",), CountBatch.from_csr([[2]]), 10)
    >>> other = TermSample(("art",), CountBatch.from_csr([[1]]), 20)
    >>> merged = merge_samples([one, other])
    >>> merged.terms, merged.batch.to_csr().toarray().tolist(), merged.documents_seen
    (('art', 'law'), [[0, 2], [1, 0]], 30)
    """
    if not samples:
        raise InvalidInput("there are no samples to merge; give at least one")
    if len({(sample.policy, sample.token_ids is None) for sample in samples}) > 1:
        raise ForeignStatistics(
            "the samples have different token policies, or some contain texts and some token ids; "
            "sample all shards with the same policy and format"
        )
    if len(samples) == 1:
        return samples[0]
    ids, terms = None, tuple(sorted({term for sample in samples for term in sample.terms}))
    if samples[0].token_ids is not None:
        ids = tuple(sorted({key for sample in samples for key in _keys(sample)}))
        terms = tuple(map(str, ids))
    places = {key: place for place, key in enumerate(terms if ids is None else ids)}
    batches, orders = [], []
    for sample in samples:
        # terms are sorted both in this sample and in the union, so the columns of a passage stay
        # sorted
        mapped = np.array([places[key] for key in _keys(sample)], dtype=np.int32)
        own = sample.batch
        if sample.order is not None:
            orders.append(sample.order.renumbered(mapped))
        batches.append(CountBatch(own.indptr, mapped[own.words], own.counts, len(terms)))
    seen = sum(sample.documents_seen for sample in samples)
    first, times = samples[0], zip(*(sample.seconds for sample in samples), strict=True)
    cutting, reading = map(sum, times)
    return TermSample(
        terms,
        concatenate(batches),
        seen,
        ids,
        first.policy,
        first.columns,
        (cutting, reading),
        OrderedTerms.concatenate(orders) if orders else None,
    )


def without_stop_words(sample: TermSample, policy: TokenPolicy) -> TermSample:
    """Remove the stop words of a policy from a sample.

    The policy must be that of the sample, but may have more stop words.

    Examples
    --------
    >>> sample = TermSample(("law", "the"), CountBatch.from_csr([[2, 1], [0, 3]]), 2)
    >>> fewer = without_stop_words(sample, TokenPolicy(stop_words=("the",)))
    >>> fewer.terms, fewer.batch.to_csr().toarray().tolist()
    (('law',), [[2], [0]])
    """
    kept = policy.filtered(sample.terms)
    places = {term: place for place, term in enumerate(kept)}
    mapped = np.array([places.get(term, -1) for term in sample.terms], dtype=np.int64)
    own = sample.batch
    batch = CountBatch.from_rows(own.indptr, mapped[own.words], own.counts, len(kept))
    order = None if sample.order is None else sample.order.renumbered(mapped)
    return replace(sample, terms=tuple(kept), batch=batch, policy=policy.fingerprint, order=order)


def with_phrases(sample: TermSample, policy: TokenPolicy) -> TermSample:
    """Count the passages of a sample again, with the phrases of a policy.

    The sample must have recorded the order of its words.

    Examples
    --------
    >>> seeking = TokenPolicy(phrase_words=2)
    >>> sample = sample_of_passages([["new", "york", "law"]], seeking, 1)
    >>> with_phrases(sample, TokenPolicy(phrases=(("new", "york"),))).terms
    ('law', 'new_york')
    """
    order = sample.order
    if order is None:
        raise InvalidInput(
            "the sample does not record the order of words; draw it with a token policy that has "
            "phrase_words"
        )
    # put an empty word, which no phrase contains, in place of words that are not tokens
    names = [*sample.terms, ""]
    passages = (
        [names[place] for place in order.terms[start:stop].tolist()]
        for start, stop in pairwise(order.starts.tolist())
    )
    counted = sample_of_passages(passages, policy, sample.documents_seen)
    return replace(counted, seconds=sample.seconds)


def settled(
    sample: TermSample, policy: TokenPolicy, least_often: int
) -> tuple[TermSample, TokenPolicy]:
    """Find stop words and phrases in a sample if a policy asks for that, and apply them to it.

    Returns the new sample and policy.

    Words become a phrase only if they occur together at least `least_often` times.
    """
    if policy.seeks_languages:
        policy = policy.in_languages(languages_of(sample.terms, sample.batch.to_csr()))
        sample = without_stop_words(sample, policy)
    if policy.phrase_words is None or sample.order is None:
        return sample, policy
    terms = sample.terms
    if not policy.phrases:
        # A policy with phrases needs words without the separator of phrases. If the policy already
        # had phrases, the tokeniser has replaced the separator in the words of the sample.
        terms = tuple(map(without_separator, terms))
    found = found_phrases(terms, sample.order, policy.phrase_words, least_often)
    # A phrase that the policy already had is one word in the sample. Leave out found phrases that
    # contain this word.
    given = {*map(term_of, policy.phrases)}
    phrases = tuple(sorted({*policy.phrases, *(one for one in found if given.isdisjoint(one))}))
    policy = replace(policy, phrases=phrases, phrase_words=None)
    if phrases:
        sample = replace(sample, terms=terms)
    return with_phrases(sample, policy), policy


def words_told(sample: TermSample, policy: TokenPolicy | None) -> Mapping[str, Any]:
    """Return facts about the words of a sample for a report, as JSON; may be empty.

    The facts are the tokeniser that the language needs, the share of time that a tokeniser takes if
    it is not the default, the number of phrases, and the most frequent phrases.
    """
    if policy is None:
        return {}
    told, counts = dict[str, Any](), frequencies_of(sample).word_counts
    cutting, reading = sample.seconds
    if not policy.is_compiled and reading:
        told["tokeniser_share"] = round(cutting / reading, 3)
    if policy.is_compiled and (better := unspaced_language(sample.terms, counts)):
        told["better_tokeniser"] = better
    if policy.phrases:
        often = dict(zip(sample.terms, counts.tolist(), strict=True))
        terms = sorted(map(term_of, policy.phrases), key=lambda term: -often.get(term, 0))
        told |= {"phrases": len(terms), "frequent_phrases": terms[:_SHOWN_PHRASES]}
    return told


def frequencies_of(sample: TermSample) -> TermFrequencies:
    """Return how often, and in how many passages, each term of a sample occurs."""
    matrix = sample.batch.to_csr()
    return TermFrequencies(
        sample.terms,
        np.asarray(matrix.sum(axis=0), dtype=np.int64).ravel(),
        np.bincount(sample.batch.words, minlength=len(sample.terms)).astype(np.int64),
        sample.batch.documents,
    )


def recount(sample: TermSample, vocabulary: Vocabulary) -> CountBatch:
    """Count the n terms of a vocabulary in the passages of a sample: (passages, n) counts.

    Other terms of the sample are dropped. Raises ForeignStatistics if the vocabulary has another
    token policy, or has token ids although the sample holds texts.

    Examples
    --------
    >>> sample = TermSample(("art", "law"), CountBatch.from_csr([[2, 1], [1, 0]]), 2)
    >>> recount(sample, Vocabulary(("law", "sea"), core=1)).to_csr().toarray().tolist()
    [[1, 0], [0, 0]]
    """
    ids = vocabulary.token_ids
    if sample.policy != vocabulary.policy or (ids is None) != (sample.token_ids is None):
        raise ForeignStatistics(
            f"the vocabulary has token policy {vocabulary.policy[:12] or '(none)'}, and the sample "
            f"has {sample.policy[:12] or '(none)'}; select the vocabulary from this sample"
        )
    rows = {key: row for row, key in enumerate(vocabulary.terms if ids is None else ids)}
    mapped = np.array([rows.get(key, -1) for key in _keys(sample)], dtype=np.int64)
    own, n_words = sample.batch, vocabulary.n_words
    columns = mapped[own.words]
    return CountBatch.from_rows(own.indptr, columns, own.counts, n_words, vocabulary.fingerprint)


def _keys(sample: TermSample) -> Sequence[Any]:
    return sample.terms if sample.token_ids is None else sample.token_ids


def _sample_texts(
    columns: Iterable[pa.Array], given: TokenPolicy | None, quota: int, seed: int, room: int
) -> TermSample:
    policy, cutting, begun = required_policy(given), 0.0, time.perf_counter()
    read = 0

    def cut() -> Iterator[Passages]:
        nonlocal cutting, read
        for texts in columns:
            before = time.perf_counter()
            with after_documents(read):
                spelled = SpelledTexts.of(texts, policy)
            cutting += time.perf_counter() - before
            read += len(texts)
            yield Passages.of(spelled, policy.passage_words)

    drawn, seen = draw(cut(), quota, seed, str, room)
    sample = sample_of_passages(map(words_in, drawn), policy, seen)
    return replace(sample, seconds=(cutting, time.perf_counter() - begun))


def sample_of_passages(
    passages: Iterable[Sequence[str]], policy: TokenPolicy, seen: int
) -> TermSample:
    """Count passages that are given as lists of words; keep only words that are tokens of a policy.

    Examples
    --------
    >>> sample_of_passages([["law", "a", "law"]], TokenPolicy(), 1).terms
    ('law',)
    """
    known: dict[str, int] = {}

    def numbered(passage: Sequence[str]) -> NDArray[np.int32]:
        found = policy.tokens_in(passage)
        if policy.phrase_words:
            tokens = {*found}
            words = (word for word, _ in policy.joined(passage))
            codes = [known.setdefault(one, len(known)) if one in tokens else -1 for one in words]
        else:
            codes = [known.setdefault(one, len(known)) for one in found]
        return np.array(codes, dtype=np.int32)

    # convert one passage at a time, because words as Python objects take much more memory than
    # their bytes
    parts = [numbered(passage) for passage in passages]
    terms = tuple(sorted(known))
    # words that are not tokens have the code -1, which indexes the last entry of `places`
    places = np.full(len(terms) + 1, -1, dtype=np.int64)
    places[[known[term] for term in terms]] = np.arange(len(terms))
    offsets = np.cumsum([0, *map(len, parts)])
    found = places[np.concatenate([np.empty(0, np.int32), *parts])]
    batch = CountBatch.from_rows(offsets, found, None, len(terms))
    order = OrderedTerms(found.astype(np.int32), offsets) if policy.phrase_words else None
    return TermSample(terms, batch, seen, policy=policy.fingerprint, order=order)


def _sample_ids(
    chunks: Iterable[IdChunk], policy: TokenPolicy | None, quota: int, seed: int, room: int
) -> TermSample:
    refuse_policy(policy)
    # copy the drawn documents, because a view of a document would keep its whole chunk in memory
    drawn, seen = draw(
        chunks,
        quota,
        seed,
        lambda document: (document[0].copy(), None if document[1] is None else document[1].copy()),
        room,
        lambda kept: _OBJECT_BYTES + sum(one.nbytes for one in kept if one is not None),
    )
    joined = join_ids(drawn)
    used, columns = np.unique(joined.ids, return_inverse=True)
    ids = tuple(used.tolist())
    batch = CountBatch.from_rows(joined.offsets, columns, joined.counts, len(ids))
    return TermSample(tuple(map(str, ids)), batch, seen, token_ids=ids)


def _sample_categories(
    chunks: Iterable[pa.Table], policy: TokenPolicy | None, quota: int, seed: int, room: int
) -> TermSample:
    refuse_policy(policy)
    seen_terms: dict[str, int] = {}
    names: tuple[str, ...] = ()

    def codes() -> Iterable[NDArray[np.int64]]:
        nonlocal names
        for rows in chunks:
            names = tuple(rows.schema.names)
            yield coded(rows, lambda term: seen_terms.setdefault(term, len(seen_terms)))

    drawn, seen = draw(codes(), quota, seed, np.copy, room)
    rows = np.stack(drawn)
    used = sorted((term, code) for term, code in seen_terms.items() if (rows == code).any())
    places = np.full(len(seen_terms) + 1, -1, dtype=np.int64)
    places[[code for _, code in used]] = np.arange(len(used))
    starts = np.arange(len(rows) + 1) * rows.shape[1]
    batch = CountBatch.from_rows(starts, places[rows].ravel(), None, len(used))
    terms = tuple(term for term, _ in used)
    return TermSample(terms, batch, seen, policy=CATEGORIES, columns=names)


_Sampler = Callable[[Iterable[Any], TokenPolicy | None, int, int, int], TermSample]
_SAMPLERS: Mapping[Holds, _Sampler] = MappingProxyType(
    {"texts": _sample_texts, "ids": _sample_ids, "categories": _sample_categories}
)
