"""Documents: every format, plain and compressed, within limits."""

import io
import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv
from small_shards import (
    COMPRESS,
    flat,
    jsonl,
    lda_c,
    parquet,
    put,
    put_local,
    read_ids,
    read_texts,
    separated,
)

from streaming_moments.errors import ShardError
from streaming_moments.storage import formats
from streaming_moments.storage.documents import read_chunks
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

TEXTS = ["The sea, the SEA and a ship", "", "Law of the sea: law", "été\tहिन्दी 42", "ship " * 40]
IDS: list[tuple[list[int], list[int]]] = [([7, 3], [2, 1]), ([], []), ([9, 1000000007], [5, 1])]


def entries(chunks: Iterator[Any]) -> list[tuple[list[int], list[int]]]:
    found = []
    for chunk in chunks:
        counts = np.ones_like(chunk.ids) if chunk.counts is None else chunk.counts
        for start, stop in itertools.pairwise(chunk.offsets.tolist()):
            found.append((chunk.ids[start:stop].tolist(), counts[start:stop].tolist()))
    return found


@pytest.mark.parametrize("suffix", COMPRESS)
def test_lines_of_text_are_documents(place: str, suffix: str) -> None:
    content = "\r\n".join(TEXTS).encode()
    shard = put(place, f"a.txt{suffix}", COMPRESS[suffix](content))
    assert flat(read_texts(shard, ShardFormat())) == TEXTS
    closed = put(place, f"b.txt{suffix}", COMPRESS[suffix](b"\xef\xbb\xbf" + content + b"\n"))
    assert flat(read_texts(closed, ShardFormat())) == TEXTS


@pytest.mark.parametrize("suffix", COMPRESS)
def test_json_lines(place: str, suffix: str) -> None:
    content = b"\xef\xbb\xbf" + jsonl(TEXTS).replace(b"\n", b"\n\n \r\n")
    shard = put(place, f"a.jsonl{suffix}", COMPRESS[suffix](content))
    assert flat(read_texts(shard, ShardFormat())) == TEXTS


@pytest.mark.parametrize("suffix", COMPRESS)
def test_csv(place: str, suffix: str) -> None:
    texts = [*TEXTS, 'a "ship"', "two\r\nlines\n", "'", ",", '"']
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t"), ("a.tab", "\t")):
        content = b"\xef\xbb\xbf" + separated(texts, delimiter).replace(b"3", b"3x", 1)
        shard = put(place, f"{name}{suffix}", COMPRESS[suffix](content))
        assert flat(read_texts(shard, ShardFormat())) == texts
    bare = b'\n\ntext,"n ""of"" it"\rsea,\n\r\n5" ship,1\r\n"",2\n"law" and,3'
    shard = put(place, f"b.csv{suffix}", COMPRESS[suffix](bare))
    assert flat(read_texts(shard, ShardFormat())) == ["sea", '5" ship', "", "law and"]
    shard = put(place, f"b.csv{suffix}", COMPRESS[suffix](b'"text"\nsea\n\n""\n'))
    assert flat(read_texts(shard, ShardFormat())) == ["sea", ""]


@pytest.mark.parametrize("suffix", COMPRESS)
def test_files_of_a_folder_are_documents_by_name(place: str, suffix: str) -> None:
    for name, text in zip(["a/z", "b.txt", "b/a", "c", "d"], TEXTS, strict=True):
        content = COMPRESS[suffix](text.encode() + b"\n") if text else b""
        put(place, f"{name}{suffix}", content)
    put(place, "b/.hidden", b"\xff")
    [shard] = list_shards([f"{place}/"])
    expected = [text + "\n" if text else "" for text in TEXTS]
    assert flat(read_texts(shard, ShardFormat())) == expected


@pytest.mark.parametrize("suffix", COMPRESS)
def test_lda_c(place: str, suffix: str) -> None:
    content = b"\n" + lda_c(IDS).replace(b"3:1", b"3:1 ").replace(b"2 7", b"3 8:0\t7")
    shard = put(place, f"a.ldac{suffix}", COMPRESS[suffix](content))
    assert entries(read_ids(shard, ShardFormat())) == IDS


STRINGS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int8(), pa.string()),
]


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_parquet_texts(place: str, kind: pa.DataType, codec: str) -> None:
    texts = pa.array([*TEXTS, None]).cast(kind)
    stream = io.BytesIO()
    table = pa.table({"n": range(6), "a.b": texts})
    pq.write_table(table, stream, row_group_size=4, compression=codec)
    shard = put(place, "a.parquet", stream.getvalue())
    assert flat(read_texts(shard, ShardFormat(text_column="a.b"))) == [*TEXTS, ""]


LISTS = [
    pa.list_(pa.int64()),
    pa.list_(pa.uint32()),
    pa.large_list(pa.int32()),
]


@pytest.mark.parametrize("kind", LISTS, ids=str)
def test_parquet_ids(place: str, kind: pa.DataType) -> None:
    ids = pa.array([*(ids for ids, _ in IDS), None, [5, 6]], kind)
    counts = pa.array([*(counts for _, counts in IDS), [], [0, 2]], kind)
    shard = put(place, "a.parquet", parquet(2, ids=ids, counts=counts))
    counted = ShardFormat(ids_column="ids", counts_column="counts")
    assert entries(read_ids(shard, counted)) == [*IDS, ([], []), ([6], [2])]
    once = [(ids, [1] * len(ids)) for ids in ids.to_pylist() if ids is not None]
    assert entries(read_ids(shard, ShardFormat(ids_column="ids"))) == [
        *once[:3],
        ([], []),
        once[3],
    ]


def test_parquet_ids_in_lists_of_one_size(tmp_path: Path) -> None:
    ids = pa.array([[1, 2], None, [2, 2]], pa.list_(pa.int32(), 2))
    shard = put_local(tmp_path, "a.parquet", parquet(ids=ids))
    documents = entries(read_ids(shard, ShardFormat(ids_column="ids")))
    assert documents == [([1, 2], [1, 1]), ([], []), ([2, 2], [1, 1])]


def test_chunks_keep_to_the_limits(tmp_path: Path) -> None:
    texts = ["x" * size for size in (3, 4, 9, 1, 1, 1, 5, 2)]
    limits = ReadLimits(batch_bytes=8, batch_documents=3)
    sizes = [[3, 4], [9], [1, 1, 1], [5, 2]]
    shard = put_local(tmp_path, "a.txt", "\n".join(texts).encode())
    chunks = list(read_texts(shard, ShardFormat(), limits))
    assert [[len(text) for text in chunk] for chunk in chunks] == sizes
    shard = put_local(tmp_path, "a.parquet", parquet(text=texts))
    chunks = list(read_texts(shard, ShardFormat(), limits))
    assert [[len(text) for text in chunk] for chunk in chunks] == sizes


def test_lines_across_blocks(tmp_path: Path) -> None:
    texts = ["a" * 1_048_575, "é" * 1_000_000, "", "b" * 3_000_000, "\r"]
    shard = put_local(tmp_path, "a.txt", "\n".join(texts).encode() + b"\r\n")
    assert flat(read_texts(shard, ShardFormat())) == texts


@pytest.mark.parametrize("block", [1, 2, 5, 1 << 20])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["a", "été", ",", '"', '""', '"a', 'a"', "\n", "\r", "\r\n"])),
    st.sampled_from(["text\n", "text,n\n", '"n\n",text\r\n']),
)
def test_records_of_csv_are_those_of_arrow(
    monkeypatch: pytest.MonkeyPatch, block: int, signs: list[str], header: str
) -> None:
    monkeypatch.setattr(formats.csv, "_BLOCK_BYTES", block)
    monkeypatch.setattr(formats.csv, "_RECORDS", block)
    content = (header + "".join(signs)).encode()
    shard = put("memory://arrow", "a.csv", content)
    limits = ReadLimits(batch_documents=1)
    try:
        chunks = list(read_chunks(shard, ShardFormat(), limits))
    except ShardError as error:
        refused = str(error)
        if "not closed" in refused:
            return
        with pytest.raises(pa.ArrowInvalid) if "fields" in refused else nullcontext():
            assert not arrow_texts(content)
        return
    assert [text for chunk, _ in chunks for text in chunk.cast(pa.string()).to_pylist()] == (
        arrow_texts(content)
    )
    for number, (_, after) in enumerate(chunks, start=1):
        assert content[after.offset - 1 : after.offset] in (b"\n", b"\r") or number == len(chunks)
        if number < len(chunks):
            rest = list(read_chunks(shard, ShardFormat(), limits, start=after))
            assert [place for _, place in rest] == [place for _, place in chunks[number:]]


def arrow_texts(content: bytes) -> list[str]:
    """Texts that Arrow's own reader finds in a whole file."""
    table = csv.read_csv(
        io.BytesIO(content + b"\n"),
        csv.ReadOptions(use_threads=False),
        csv.ParseOptions(newlines_in_values=True),
        csv.ConvertOptions(include_columns=["text"], column_types={"text": pa.string()}),
    )
    texts: list[str] = table.column(0).to_pylist()
    return texts


def test_a_huge_row_group_is_read_in_small_batches(tmp_path: Path) -> None:
    texts = ["law " * 2500] * 20_000
    shard = put_local(tmp_path, "a.parquet", parquet(text=texts))
    assert shard.size < 1_000_000
    before = pa.total_allocated_bytes()
    chunks = read_texts(shard, ShardFormat(), ReadLimits(batch_bytes=100_000))
    for chunk in itertools.islice(chunks, 100):
        assert len(chunk) == 10
        assert pa.total_allocated_bytes() - before < 32 << 20
    chunks.close()  # type: ignore[attr-defined]
