"""Shards counted over a vocabulary, and what does not belong together."""

import gzip
import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
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
from streaming_moments.storage.documents import ReadLimits, read_ids, read_texts
from streaming_moments.storage.readers import read_shard
from streaming_moments.storage.samples import sample_shard
from streaming_moments.storage.shards import ShardFormat, list_shards
from streaming_moments.storage.tokens import TokenPolicy

POLICY = TokenPolicy(stop_words=("and", "the"))


@settings(deadline=None, max_examples=40)
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
        for name in ("indptr", "words", "counts"):
            np.testing.assert_array_equal(getattr(batch, name), getattr(whole, name))


@settings(deadline=None, max_examples=40)
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
    with pytest.raises(ShardError, match="holds token ids but the vocabulary is of terms; give"):
        read_shard(ids, form, words, POLICY)
    with pytest.raises(ShardError, match="holds texts but the vocabulary is of token ids; give"):
        read_shard(text, form, ID_VOCABULARY, None)
    with pytest.raises(InvalidInput, match="texts need a token policy"):
        read_shard(text, form, words, None)
    with pytest.raises(InvalidInput, match="leave out the token policy"):
        read_shard(ids, form, ID_VOCABULARY, POLICY)
    with pytest.raises(ForeignStatistics, match="read with the policy the store keeps"):
        read_shard(text, form, words, TokenPolicy(min_length=4))
    with pytest.raises(InvalidInput, match="texts need a token policy"):
        sample_shard(text, form, None, 5, 0)
    with pytest.raises(InvalidInput, match="leave out the token policy"):
        sample_shard(ids, form, POLICY, 5, 0)
    with pytest.raises(ShardError, match="holds token ids; give shards of texts"):
        list(read_texts(ids, form))
    with pytest.raises(ShardError, match="holds texts; name the column"):
        list(read_ids(text, form))


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
