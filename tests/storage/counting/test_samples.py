"""Samples of shards over their own terms."""

import itertools
import uuid
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shards import (
    ID_VOCABULARY,
    TERMS,
    brute_force,
    jsonl,
    lda_c,
    put,
    put_local,
    read_all,
    rows,
    vocabulary_for,
)

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.samples import (
    TermSample,
    merge_samples,
    recount,
    sample_shard,
)
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.shards import ShardFormat

TEXTS = ["The sea, the SEA and a ship", "", "Law of the sea: law", "été\tहिन्दी 42", "ship " * 40]
IDS: list[tuple[list[int], list[int]]] = [([7, 3], [2, 1]), ([], []), ([9, 1000000007], [5, 1])]
POLICY = TokenPolicy(stop_words=("and", "the"))


@pytest.mark.parametrize("passage_words", [None, 2])
def test_a_quota_that_is_not_reached_takes_the_whole_shard(
    tmp_path: Path, passage_words: int | None
) -> None:
    policy = TokenPolicy(2, ("the",), passage_words)
    shard = put_local(tmp_path, "a.txt", "\n".join(TEXTS).encode())
    sample = sample_shard(shard, ShardFormat(), policy, quota=1000, seed=0)
    passages = [Counter(p) for text in TEXTS for p in policy.passages(text)]
    assert sample.documents_seen == sample.batch.documents == len(passages)
    assert list(sample.terms) == sorted({term for passage in passages for term in passage})
    assert rows(sample.batch) == [[p[term] for term in sample.terms] for p in passages]
    assert sample.token_ids is None
    assert sample.policy == policy.fingerprint
    vocabulary = vocabulary_for(policy)
    again = recount(sample, vocabulary)
    assert rows(again) == brute_force(TEXTS, policy)[0]
    assert again.vocabulary == vocabulary.fingerprint


def letters(number: int) -> str:
    return "x" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def drawn(sample: TermSample) -> list[int]:
    """Numbers of the one-word documents `letters(number)` in a sample, in its order."""
    numbers = {letters(number): number for number in range(1000)}
    return [numbers[sample.terms[word]] for word in sample.batch.words.tolist()]


def test_samples_are_drawn_in_order_and_do_not_depend_on_chunks(tmp_path: Path) -> None:
    words = [letters(number) for number in range(300)]
    lines = put_local(tmp_path, "a.txt", "\n".join(words).encode())
    cut = put_local(tmp_path, "b.txt", " ".join(words).encode())
    sample = sample_shard(lines, ShardFormat(), POLICY, 20, seed=5)
    assert sample.documents_seen == 300
    assert len(drawn(sample)) == len(sample.terms) == 20
    assert drawn(sample) == sorted(drawn(sample))
    small = ReadLimits(batch_documents=7)
    assert drawn(sample_shard(lines, ShardFormat(), POLICY, 20, 5, small)) == drawn(sample)
    passages = TokenPolicy(2, ("and", "the"), passage_words=1)
    assert drawn(sample_shard(cut, ShardFormat(), passages, 20, 5)) == drawn(sample)
    assert drawn(sample_shard(lines, ShardFormat(), POLICY, 20, 6)) != drawn(sample)


def test_every_passage_is_equally_likely(tmp_path: Path) -> None:
    words = [letters(number) for number in range(40)]
    shard = put_local(tmp_path, "a.txt", "\n".join(words).encode())
    seen = Counter(
        number
        for seed in range(600)
        for number in drawn(sample_shard(shard, ShardFormat(), POLICY, 10, seed))
    )
    # 600 draws of probability 1/4: 150 expected, standard deviation 10.6.
    assert min(seen[number] for number in range(40)) > 100
    assert max(seen.values()) < 200


def test_samples_of_ids(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.dat", lda_c(IDS))
    sample = sample_shard(shard, ShardFormat(), None, quota=10, seed=0)
    assert sample.token_ids == (3, 7, 9, 1000000007)
    assert sample.terms == ("3", "7", "9", "1000000007")
    assert rows(sample.batch) == [[1, 2, 0, 0], [0, 0, 0, 0], [0, 0, 5, 1]]
    assert rows(recount(sample, ID_VOCABULARY)) == [[0, 1, 2], [0, 0, 0], [5, 0, 0]]
    other = put_local(tmp_path, "b.dat", b"2 5:1 10:4\n")
    merged = merge_samples([sample_shard(other, ShardFormat(), None, 1, 0), sample])
    assert merged.token_ids == (3, 5, 7, 9, 10, 1000000007)
    assert merged.documents_seen == 4
    assert rows(merged.batch)[:2] == [[0, 1, 0, 0, 4, 0], [1, 0, 2, 0, 0, 0]]


@settings(max_examples=25)
@given(
    st.lists(
        st.lists(st.lists(st.sampled_from(TERMS), max_size=5).map(" ".join), min_size=1),
        min_size=1,
        max_size=4,
    )
)
def test_merged_samples_are_the_sample_of_all_shards(shards: list[list[str]]) -> None:
    place = f"memory:///{uuid.uuid4().hex}"
    form = ShardFormat()
    samples = [
        sample_shard(put(place, f"{number}.jsonl", jsonl(texts)), form, POLICY, 1000, 0)
        for number, texts in enumerate(shards)
    ]
    together = put(place, "all.jsonl", jsonl(list(itertools.chain.from_iterable(shards))))
    whole = sample_shard(together, form, POLICY, 1000, 0)
    merged = merge_samples(samples)
    assert (merged.terms, merged.documents_seen) == (whole.terms, whole.documents_seen)
    assert rows(merged.batch) == rows(whole.batch)
    vocabulary = vocabulary_for(POLICY)
    assert rows(recount(merged, vocabulary)) == rows(
        read_all(together, form, vocabulary, POLICY)[0]
    )


def test_samples_that_do_not_belong_together() -> None:
    batch = CountBatch.from_csr([[1]])
    sample = TermSample(("law",), batch, 1, policy="one")
    with pytest.raises(InvalidInput, match="no samples to merge"):
        merge_samples([])
    with pytest.raises(ForeignStatistics, match="sample all shards with the same"):
        merge_samples([sample, TermSample(("law",), batch, 1, policy="other")])
    with pytest.raises(ForeignStatistics, match="sample all shards with the same"):
        merge_samples([TermSample(("3",), batch, 1, (3,)), TermSample(("3",), batch, 1)])
    with pytest.raises(ForeignStatistics, match="select the vocabulary from this sample"):
        recount(sample, Vocabulary(("law",), core=1, policy="other"))
    with pytest.raises(ForeignStatistics, match="select the vocabulary from this sample"):
        recount(TermSample(("nine",), batch, 1), ID_VOCABULARY)


def test_a_quota_is_at_least_one(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.txt", b"law")
    with pytest.raises(InvalidInput, match="the quota is 0 passages; it must be at least 1"):
        sample_shard(shard, ShardFormat(), POLICY, 0, 0)


def test_a_sample_of_long_passages_has_fewer_of_them(tmp_path: Path) -> None:
    texts = [f"word{chr(97 + one // 26)}{chr(97 + one % 26)} {'long ' * 100}" for one in range(600)]
    shard = put_local(tmp_path, "long.txt", "\n".join(texts).encode())
    found: list[str] = []
    limits = ReadLimits(batch_documents=50, pilot_bytes=30_000)
    for seed in range(20):
        sample = sample_shard(shard, ShardFormat(), POLICY, 500, seed, limits)
        assert sample.documents_seen == 600
        assert 5 < sample.batch.documents <= 30_000 // 500
        found += [term for term in sample.terms if term != "long"]
    middle = sum(26 * ord(term[4]) + ord(term[5]) - 27 * 97 for term in found) / len(found)
    assert 250 < middle < 350  # the first are no likelier than the last
    least = ReadLimits(batch_documents=50, pilot_bytes=1)
    assert sample_shard(shard, ShardFormat(), POLICY, 500, 0, least).batch.documents == 1
