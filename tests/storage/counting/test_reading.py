"""Reading: shards counted over a vocabulary, and combinations that are refused."""

import gzip
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from brute_halves import odd_document
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shards import (
    ID_VOCABULARY,
    TERMS,
    brute_force,
    jsonl,
    lda_c,
    parquet,
    put,
    put_local,
    read_all,
    rows,
    vocabulary_for,
)

from streaming_moments.errors import ForeignStatistics, InvalidInput, ShardError
from streaming_moments.storage.counting.reading import (
    DocumentHalves,
    index_of,
    read_indexed,
    read_shard,
)
from streaming_moments.storage.counting.samples import sample_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat

POLICY = TokenPolicy(stop_words=("and", "the"))


@settings(max_examples=40)
@given(
    texts=st.lists(
        st.text(st.sampled_from("seashiplaw ,é"), max_size=30)
        | st.lists(st.sampled_from([*TERMS, "the", "storm"]), max_size=9).map(" ".join),
        min_size=1,
        max_size=12,
    ),
    passage_words=st.none() | st.integers(1, 4),
    batch_bytes=st.integers(1, 60),
    batch_documents=st.integers(1, 5),
)
def test_counts_are_those_of_a_counter_in_batches_of_any_size(
    texts: list[str], passage_words: int | None, batch_bytes: int, batch_documents: int
) -> None:
    policy = TokenPolicy(2, ("and", "the"), passage_words)
    vocabulary = vocabulary_for(policy)
    limits = ReadLimits(batch_bytes=batch_bytes, batch_documents=batch_documents)
    place = f"memory:///{uuid.uuid4().hex}"
    for shard in (
        put(place, "a.jsonl", jsonl(texts)),
        put(place, "a.parquet", parquet(3, text=texts)),
        put(place, "a.txt.gz", gzip.compress("".join(f"{text}\n" for text in texts).encode())),
    ):
        whole, outside = read_all(shard, ShardFormat(), vocabulary, policy)
        assert (rows(whole), outside) == brute_force(texts, policy)
        batch, outside_again = read_all(shard, ShardFormat(), vocabulary, policy, limits)
        assert outside_again == outside
        assert batch.vocabulary == whole.vocabulary == vocabulary.fingerprint
        for name in ("indptr", "words", "counts", "odd"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(whole, name))
        counts = np.array(rows(batch)).reshape(-1, len(TERMS))
        sizes = [len(policy.passages(text)) for text in texts]
        documents = np.add.reduceat(counts, np.cumsum(sizes) - sizes, axis=0)
        halves = [odd_document(dict(enumerate(row))) for row in documents.tolist()]
        assert batch.odd.tolist() == np.repeat(halves, sizes).tolist()


@settings(max_examples=40)
@given(
    documents=st.lists(
        st.dictionaries(st.sampled_from([0, 3, 7, 9, 12, 10**15]), st.integers(1, 10**6)),
        min_size=1,
        max_size=9,
    ),
    batch_documents=st.integers(1, 4),
)
def test_ids_are_mapped_to_the_rows_of_the_vocabulary(
    documents: list[dict[int, int]], batch_documents: int
) -> None:
    place = f"memory:///{uuid.uuid4().hex}"
    lists = [(list(document), list(document.values())) for document in documents]
    columns = {"ids": [ids for ids, _ in lists], "counts": [counts for _, counts in lists]}
    typed = {name: pa.array(values, pa.list_(pa.int64())) for name, values in columns.items()}
    form = ShardFormat(ids_column="ids", counts_column="counts")
    limits = ReadLimits(batch_documents=batch_documents)
    expected = [[document.get(key, 0) for key in (9, 3, 7)] for document in documents]
    outside = sum(n for d in documents for key, n in d.items() if key not in (9, 3, 7))
    for shard in (put(place, "a.dat", lda_c(lists)), put(place, "a.pq", parquet(4, **typed))):
        batch, seen_outside = read_all(shard, form, ID_VOCABULARY, None, limits)
        assert (rows(batch), seen_outside) == (expected, outside)
        assert batch.vocabulary == ID_VOCABULARY.fingerprint
        assert batch.odd.tolist() == [odd_document(dict(enumerate(row))) for row in expected]


def test_by_place_documents_are_of_both_halves_in_turn() -> None:
    policy = TokenPolicy(passage_words=2)
    place, vocabulary = f"memory:///{uuid.uuid4().hex}", vocabulary_for(policy)
    index, turns = index_of(vocabulary, policy), DocumentHalves(by_content=False)
    texts = ["sea law ship", "sea", "", "law law law law"]
    for more in ("", "s"):
        shard = put(place, f"{more}.jsonl", jsonl([*texts, more]))
        for limits in (ReadLimits(), ReadLimits(batch_documents=1)):
            reads = read_indexed(shard, ShardFormat(), index, limits, halves=turns)
            odd = np.concatenate([read.batch.odd for read in reads])
            numbers = enumerate([*texts, more], start=shard.size)
            expected = [number % 2 for number, text in numbers for _ in policy.passages(text)]
            assert odd.tolist() == expected


def test_by_place_shards_of_one_document_are_of_both_halves() -> None:
    policy = TokenPolicy(passage_words=2)
    place, vocabulary = f"memory:///{uuid.uuid4().hex}", vocabulary_for(policy)
    index, turns = index_of(vocabulary, policy), DocumentHalves(by_content=False)
    halves = []
    for number in range(8):
        for name in ("one", "copy"):
            shard = put(place, f"{number}-{name}.jsonl", jsonl([f"sea law {'s' * number}"]))
            [read] = read_indexed(shard, ShardFormat(), index, halves=turns)
            [odd] = set(read.batch.odd.tolist())
            halves.append(odd)
    assert sum(halves) == 8
    assert halves[::2] == halves[1::2]


def put_folder(place: str, texts: list[str]) -> Shard:
    for number, text in enumerate(texts):
        put(place, f"folder/{number:03}", text.encode())
    [shard] = list_shards([f"{place}/folder"])
    return shard


@settings(max_examples=25)
@given(
    texts=st.lists(
        st.text(st.sampled_from("sea law é\r"), max_size=30), min_size=2, max_size=14
    ).filter(any),
    batch_bytes=st.integers(1, 60),
    batch_documents=st.integers(1, 4),
    row_group=st.integers(1, 6),
)
def test_a_shard_read_on_from_any_cut_gives_the_same_batches(
    texts: list[str], batch_bytes: int, batch_documents: int, row_group: int
) -> None:
    policy = TokenPolicy(2, ("and", "the"), passage_words=3)
    limits = ReadLimits(batch_bytes=batch_bytes, batch_documents=batch_documents)
    place = f"memory:///{uuid.uuid4().hex}"
    lines = b"\xef\xbb\xbf" + "".join(f"{text}\r\n" for text in texts).encode()
    lists = [([7, 3], [len(text), 1]) for text in texts]
    ids = pa.array([ids for ids, _ in lists], pa.list_(pa.int64()))
    of_ids = ShardFormat(ids_column="ids")
    for shard, form in (
        (put(place, "a.txt", lines), ShardFormat()),
        (put(place, "a.txt.gz", gzip.compress(lines)), ShardFormat()),
        (put(place, "a.jsonl", jsonl(texts).replace(b"\n", b"\n \n\n")), ShardFormat()),
        (put(place, "a.parquet", parquet(row_group, text=texts)), ShardFormat()),
        (put_folder(place, texts), ShardFormat()),
        (put(place, "a.dat", b"\n" + lda_c(lists)), ShardFormat()),
        (put(place, "b.parquet", parquet(row_group, ids=ids)), of_ids),
    ):
        words, made = vocabulary_for(policy), policy
        if form.holds(shard.url) == "ids":
            words, made = ID_VOCABULARY, None
        whole = list(read_shard(shard, form, words, made, limits))
        for number, cut in enumerate(whole[:-1], start=1):
            rest = list(read_shard(shard, form, words, made, limits, start=cut.after))
            assert [read.after for read in rest] == [read.after for read in whole[number:]]
            for one, two in zip(rest, whole[number:], strict=True):
                assert rows(one.batch) == rows(two.batch)
                assert one.outside == two.outside


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.parquet", "a.jsonl", "a.dat"])
def test_errors_after_a_cut_name_the_place_in_the_whole_shard(tmp_path: Path, name: str) -> None:
    text = b"law\n" * 8 + b"\xff\n"
    content = {
        "a.txt": text,
        "a.txt.gz": gzip.compress(text),
        "a.parquet": parquet(3, text=pa.array([b"law"] * 8 + [b"\xff"]).view(pa.string())),
        "a.jsonl": jsonl(["law"] * 8) + b"law\n",
        "a.dat": lda_c([([7], [1])] * 8) + b"1 seven:1\n",
    }
    shard = put_local(tmp_path, name, content[name])
    words, policy = vocabulary_for(POLICY), POLICY
    if name == "a.dat":
        words, policy = ID_VOCABULARY, None
    limits = ReadLimits(batch_documents=2)
    reads = read_shard(shard, ShardFormat(), words, policy, limits)
    afters = [next(reads).after for _ in range(2)]
    for after in afters:
        with pytest.raises(ShardError, match="(line|row) 9 (is|has)"):
            list(read_shard(shard, ShardFormat(), words, policy, limits, start=after))


def test_what_was_read_before_a_cut_is_not_decoded_again(tmp_path: Path) -> None:
    content = parquet(100, text=[f"law {'sea ' * 300}{number}" for number in range(1000)])
    limits = ReadLimits(batch_documents=100)
    shard = put_local(tmp_path, "a.parquet", content)
    whole = list(read_shard(shard, ShardFormat(), vocabulary_for(POLICY), POLICY, limits))
    broken = bytearray(content)
    broken[1000:2000] = bytes(1000)
    put_local(tmp_path, "a.parquet", bytes(broken))
    with pytest.raises(ShardError):
        list(read_shard(shard, ShardFormat(), vocabulary_for(POLICY), POLICY, limits))
    words, start = vocabulary_for(POLICY), whole[-2].after
    [last] = read_shard(shard, ShardFormat(), words, POLICY, limits, start=start)
    assert rows(last.batch) == rows(whole[-1].batch)


def test_a_footer_that_takes_more_than_a_row_group_is_refused(tmp_path: Path) -> None:
    columns = {f"c{number}": [1] for number in range(6000)}
    shard = put_local(tmp_path, "a.parquet", parquet(text=["law"], **columns))
    words, limits = vocabulary_for(POLICY), ReadLimits(row_group_bytes=4 << 20)
    with pytest.raises(ShardError, match=r"the footer takes \d+ bytes, .* with fewer columns, or"):
        list(read_shard(shard, ShardFormat(), words, POLICY, limits))
    [read] = read_shard(shard, ShardFormat(), words, POLICY)
    assert read.batch.documents == 1


def test_an_id_that_a_document_repeats_is_added_up(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.parquet", parquet(ids=[[7, 3, 7, 8], [7]]))
    form = ShardFormat(ids_column="ids")
    batch, outside = read_all(shard, form, ID_VOCABULARY, None)
    assert rows(batch) == [[0, 1, 2], [0, 0, 1]]
    assert outside == 1


def test_texts_and_ids_do_not_mix(tmp_path: Path) -> None:
    text, ids = put_local(tmp_path, "a.txt", b"law"), put_local(tmp_path, "a.dat", b"1 7:1")
    words = vocabulary_for(POLICY)
    form = ShardFormat()
    with pytest.raises(
        ShardError, match="contains token ids, but the vocabulary contains terms; give"
    ):
        read_shard(ids, form, words, POLICY)
    with pytest.raises(
        ShardError, match="contains texts, but the vocabulary contains token ids; give"
    ):
        read_shard(text, form, ID_VOCABULARY, None)
    with pytest.raises(InvalidInput, match="texts need a token policy"):
        read_shard(text, form, words, None)
    with pytest.raises(InvalidInput, match="have no token policy; leave it out"):
        read_shard(ids, form, ID_VOCABULARY, POLICY)
    with pytest.raises(ForeignStatistics, match="read with the policy of the store"):
        read_shard(text, form, words, TokenPolicy(min_length=4))
    with pytest.raises(InvalidInput, match="texts need a token policy"):
        sample_shard(text, form, None, 5, 0)
    with pytest.raises(InvalidInput, match="have no token policy; leave it out"):
        sample_shard(ids, form, POLICY, 5, 0)


def test_a_shard_that_changes_while_it_is_read(place: str) -> None:
    limits = ReadLimits(batch_documents=1)
    shard = put(place, "a.txt", b"law\nsea\n")
    read = read_shard(shard, ShardFormat(), vocabulary_for(POLICY), POLICY, limits)
    next(read)
    put(place, "a.txt", b"sea\nlaw\n")
    with pytest.raises(ShardError, match="changed while it was read; list and read it again"):
        list(read)


def test_a_folder_that_grows_while_it_is_read(tmp_path: Path) -> None:
    put_local(tmp_path, "a", b"law")
    put_local(tmp_path, "b", b"law")
    [shard] = list_shards([str(tmp_path)])
    limits = ReadLimits(batch_documents=1)
    read = read_shard(shard, ShardFormat(), vocabulary_for(POLICY), POLICY, limits)
    next(read)
    put_local(tmp_path, "c", b"law")
    with pytest.raises(ShardError, match="changed while it was read"):
        list(read)


def test_a_shard_that_changed_since_it_was_listed(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.txt", b"law")
    put_local(tmp_path, "a.txt", b"law and sea")
    with pytest.raises(ShardError, match=r"\(3 bytes then, 11 now\); list it again"):
        list(read_shard(shard, ShardFormat(), vocabulary_for(POLICY), POLICY))
