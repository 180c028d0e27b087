"""Bad shards: every kind of damage, and its error."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from small_shards import (
    COMPRESS,
    ID_VOCABULARY,
    flat,
    jsonl,
    parquet,
    put_local,
    read_ids,
    read_texts,
)

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.samples import sample_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat


def archived(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


# The entry of a member in the list of an archive, up to its flags; and one that is encrypted.
PLAIN, ENCRYPTED = b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\x01"
POLICY = TokenPolicy(stop_words=("and", "the"))
VOCABULARY = Vocabulary(("law", "sea"), core=1, policy=POLICY.fingerprint)


BAD = [
    ("a.txt", b"", {}, "is empty; leave it out"),
    ("a.jsonl", b"\n \n", {}, "is empty; leave it out"),
    ("a.txt.gz", gzip.compress(b""), {}, "is empty; leave it out"),
    ("a.parquet", parquet(text=pa.array([], pa.string())), {}, "is empty; leave it out"),
    ("a.dat", b"\n", {}, "is empty; leave it out"),
    (
        "a.parquet",
        b"law and sea",
        {},
        "is not Parquet, or is truncated .*or give its real format to `create --format`",
    ),
    ("a.parquet", parquet(text=["a"])[:-9], {}, "is not Parquet, or is truncated"),
    (
        "a.parquet",
        parquet(body=["a"], n=[1]),
        {},
        r"no column 'text'.* columns are \['body', 'n'\]; rename one, or choose another with",
    ),
    (
        "a.parquet",
        parquet(text=[1]),
        {},
        "column 'text' is of type int64, expected string; choose another with",
    ),
    ("a.parquet", parquet(text=[b"a"]), {}, "is of type binary, expected string"),
    (
        "a.parquet",
        parquet(ids=[1]),
        {"ids_column": "ids"},
        "expected a list of integers; choose another with `create --ids-column`",
    ),
    ("a.parquet", parquet(ids=[["a"]]), {"ids_column": "ids"}, "expected a list of integers"),
    ("a.parquet", parquet(ids=[[1]]), {"ids_column": "i"}, "no column 'i'.*--ids-column"),
    (
        "a.parquet",
        parquet(ids=[[1], [2]], n=[[1.0], [0.5]]),
        {"ids_column": "ids", "counts_column": "n"},
        "'n' is of type list<.*double>, expected a list of integers.*--counts-column",
    ),
    (
        "a.parquet",
        parquet(ids=[[1], [2, 3]], n=[[1], [1]]),
        {"ids_column": "ids", "counts_column": "n"},
        "row 2 does not have one count for each id",
    ),
    (
        "a.parquet",
        parquet(ids=[[1], [2, 3]], n=[[1], [1, -4]]),
        {"ids_column": "ids", "counts_column": "n"},
        "row 2 counts id 3 -4 times; counts must be whole numbers from 0 to 2147483647",
    ),
    (
        "a.parquet",
        parquet(ids=[[1, 1]], n=[[2**31 - 1, 1]]),
        {"ids_column": "ids", "counts_column": "n"},
        "row 1 has 2147483648 tokens; split it into documents of at most 2147483647 tokens",
    ),
    ("a.parquet", parquet(ids=[[1], [-2]]), {"ids_column": "ids"}, "row 2 has id -2; ids must be"),
    ("a.jsonl", b'{"ids":[1]}\n{"ids":[-2]}', {"ids_column": "ids"}, "line 2 has id -2; ids must"),
    ("a.jsonl", b'{"ids":[1.5]}', {"ids_column": "ids"}, "line 1 has no list of whole numbers"),
    ("a.jsonl", b'{"ids":[true]}', {"ids_column": "ids"}, "line 1 has no list of whole numbers"),
    ("a.jsonl", b'{"i":[1]}', {"ids_column": "ids"}, "no list of whole numbers in a field 'ids'"),
    ("a.jsonl", b'{"ids":[36893488147419103232]}', {"ids_column": "ids"}, "more than 64 bits"),
    (
        "a.jsonl",
        b'{"ids":[1,2],"n":[1]}',
        {"ids_column": "ids", "counts_column": "n"},
        "line 1 does not have one count for each id",
    ),
    ("a.parquet", parquet(ids=[[1, None]]), {"ids_column": "ids"}, "'ids' has a null within"),
    (
        "a.parquet",
        parquet(ids=pa.array([[2**63]], pa.list_(pa.uint64()))),
        {"ids_column": "ids"},
        "'ids' has 9223372036854775808, beyond int64; ids and counts must be at most",
    ),
    (
        "a.parquet",
        parquet(text=pa.array([b"a", b"b\xff"]).view(pa.string())),
        {},
        "row 2 is not UTF-8: its byte 1 is 0xff; convert the shard to UTF-8",
    ),
    (
        "a.txt",
        b"law\nsea \xe9t\xe9\nx",
        {},
        "line 2 is not UTF-8: its byte 4 is 0xe9; convert the shard to UTF-8",
    ),
    ("a.txt", "law".encode("utf-16"), {}, "line 1 is not UTF-8: its byte 0"),
    (
        "a.jsonl",
        gzip.compress(jsonl(["law"])),
        {},
        r"compressed as \.gz; rename the shard, so that",
    ),
    ("a.txt", lzma.compress(b"law"), {}, r"line 1 is compressed as \.xz"),
    ("a.txt.gz", b"law and sea", {}, r"is not compressed as \.gz: compress the file, or rename it"),
    ("a.jsonl.zst", jsonl(["law"]), {}, r"is not compressed as \.zst: "),
    ("a.txt.xz", b"law\n", {}, r"is not compressed as \.xz: "),
    ("a.jsonl", b'{"text": "a"}\n\n{"text": "\xff"}', {}, "line 3 is not UTF-8: its byte 10"),
    (
        "a.jsonl",
        b'{"text": "a"}\n{"text": "b"',
        {},
        r"line 2 is not JSON \(.* at column \d+\); correct or delete it",
    ),
    ("a.jsonl", b"[" * 100_000, {}, "line 1 is not JSON"),
    ("a.jsonl", b'{"text": "a", "n": ' + b"1" * 5000 + b"}", {}, "line 1 is not JSON"),
    ("a.jsonl", b'["a"]', {}, "line 1 is not a JSON object; write an object"),
    (
        "a.jsonl",
        b'{"text": "a"}\n{"body": "b", "a": 1}',
        {},
        r"no field 'text'; its fields are \['a', 'body'\]; rename a field, or choose another with",
    ),
    ("a.jsonl", b'{"text": 5}', {}, "line 1: field 'text' is int, expected a string"),
    ("a.jsonl", b'{"text": null}', {}, "field 'text' is NoneType, expected a string"),
    ("a.jsonl", b'{"text": "a\\ud800"}', {}, "line 1 holds half of a surrogate pair"),
    ("a.csv", b"\n\r\n", {}, "is empty; leave it out"),
    ("a.csv", b"n,text", {}, "is empty; leave it out"),
    ("a.csv", b"n,text\r\n\r\n", {}, "is empty; leave it out"),
    (
        "a.csv",
        b"n,body\n1,sea\n",
        {},
        r"no column 'text'; its columns are \['n', 'body'\]; rename one, or choose another with",
    ),
    (
        "a.csv",
        b"text,text\nlaw,sea\n",
        {},
        r"has 2 columns 'text'; its columns are \['text', 'text'\]; rename one, or choose",
    ),
    ("a.tsv", b"text,n\nsea,1\n", {}, r"its columns are \['text,n'\]; rename one, or choose"),
    (
        "a.csv",
        b'text,n\n"two\nlines",1\n\nsea,law,2\n',
        {},
        "line 5 has 3 fields, and the header has 2; put quotes around a field that holds",
    ),
    ("a.tsv", b"text\tn\nsea\t1\nlaw\n", {}, "line 3 has 1 fields, and the header has 2"),
    ("a.csv", b'text,n\nsea,1\n"law,2\n', {}, "line 3 has a quote that is not closed; close it or"),
    ("a.csv", b"text\nsea\n\nl\0w\n", {}, "line 4 holds a zero byte, which is not text; write"),
    ("a.csv", "text\nsea\n".encode("utf-16"), {}, "line 1 holds a zero byte.*again as UTF-8"),
    ("a.csv", b"text\xe9,n\nsea,1\n", {}, "line 1 is not UTF-8: its byte 4 is 0xe9"),
    ("a.csv", b'n,text\n1,"\n"\n2,\xe9t\xe9\n', {}, "line 4 is not UTF-8: its byte 0 is 0xe9"),
    ("a.csv", b"," * 4096 + b"\n", {}, "line 1 has 4097 fields .*; write the names of the columns"),
    (
        "a.csv",
        b"law " * 20_000 + b"\n",
        {},
        "line 1 has 1 fields and 80001 bytes, and a header",
    ),
    ("a.dat", b"1 1:2\n1 1:-2\n", {}, "line 2 counts id 1 '-2' times; counts must be whole"),
    ("a.dat", b"1 1:2.5\n", {}, "line 1 counts id 1 '2.5' times; counts must be whole"),
    ("a.dat", b"1 9223372036854775808:1\n", {}, "line 1 has id 9223372036854775808; ids have at"),
    ("a.dat", b"1 1\n", {}, "line 1 counts id 1 '' times; counts must be whole"),
    ("a.dat", b"1 -1:2\n", {}, "line 1 has '-1:2', expected id:count with a whole number >= 0"),
    ("a.dat", b"3 1:2 4:1\n", {}, "line 1 begins with 3 but has 2 pairs id:count"),
    ("a.dat", b"law 1:2\n", {}, "line 1 begins with 'law', expected the number of its ids"),
    ("a.dat", "1 ٣:2\n".encode(), {}, "expected id:count with a whole number"),
    ("a.dat", b"1 3:3000000000\n", {}, "line 1 counts id 3 3000000000 times"),
    ("a.dat", b"1 3:" + b"9" * 30, {}, "line 1 counts id 3"),
    ("a.txt.gz", gzip.compress(os.urandom(999))[:-9], {}, r"cannot be read \(Truncated"),
    ("a.txt.bz2", bz2.compress(b"a\n" * 999)[:-9], {}, r"cannot be read \(Truncated"),
    ("a.txt.zst", COMPRESS[".zst"](b"a\n" * 9)[:-4], {}, r"cannot be read \(Truncated"),
    ("a.txt.xz", lzma.compress(b"a\n" * 999)[:-9], {}, r"cannot be read \(Truncated"),
    ("a.txt.xz", lzma.compress(b"law\n") + b"more " * 9, {}, r"cannot be read \(xz: .*format"),
    ("a.csv.xz", lzma.compress(b"text\nlaw\n")[:20], {}, r"cannot be read \(Truncated"),
    ("a.zip", b"PK no archive", {}, r"is not a zip archive \(.*\); write it again"),
    ("a.zip", archived(), {}, "is empty; leave it out"),
    ("a.zip", archived(a=b"law", b=b"l\xe9w"), {}, "file b is not UTF-8: its byte 1 is 0xe9"),
    ("a.zip", archived(**{"a.csv": b"text\nlaw\n"}), {}, r"a\.csv, which is not a text; unpack"),
    ("a.zip", archived(**{"a.arrow": b"law"}), {}, r"a\.arrow, which is not a text; unpack"),
    ("a.zip", archived(**{"a.npy": b"law"}), {}, r"a\.npy, which is not a text; unpack"),
    ("a.zip", archived(**{"b/a.zip": archived()}), {}, r"b/a\.zip, which is not a text; unpack"),
    ("a.zip", archived(a=b"law").replace(PLAIN, ENCRYPTED), {}, "a, which is encrypted; unpack"),
    (
        "a.zip",
        archived(a=b"law sea ship").replace(b"law sea", b"law law"),
        {},
        "file a cannot be read",
    ),
]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"), BAD, ids=[f"{i}-{b[0]}" for i, b in enumerate(BAD)]
)
def test_a_bad_shard_is_refused(
    tmp_path: Path, name: str, content: bytes, columns: dict[str, str], message: str
) -> None:
    shard = put_local(tmp_path, name, content)
    form = ShardFormat(**columns)
    holds_ids = form.holds(shard.url) == "ids"
    vocabulary = ID_VOCABULARY if holds_ids else VOCABULARY
    policy = None if holds_ids else POLICY
    with pytest.raises(ShardError, match=message) as caught:
        list(read_shard(shard, form, vocabulary, policy))
    assert caught.value.url == shard.url
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(ShardError, match=message):
        sample_shard(shard, form, policy, quota=5, seed=0)


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"law\n" * 100, mtime=0))
    content[-6] ^= 1
    shard = put_local(tmp_path, "a.txt.gz", bytes(content))
    with pytest.raises(ShardError, match=r"cannot be read \(.*incorrect"):
        list(read_texts(shard, ShardFormat()))


# large contents are made when they are needed: each process of tests reads this
OVERLONG = [
    ("a.zip", archived(a=b"law", b=b"x" * 101), {}, "file b"),
    ("a.txt", b"law\n" + b"x" * 101, {}, "line 2"),
    ("a.txt", b"law\n" + b"x" * 101 + b"\nlaw\n", {}, "line 2"),
    ("a.txt.gz", lambda: gzip.compress(b"0" * 10_000_000), {}, "line 1"),
    ("a.txt.bz2", lambda: bz2.compress(b"law\n" + b"0" * 10_000_000), {}, "line 2"),
    ("a.jsonl", jsonl(["x" * 100]), {}, "line 1"),
    ("a.txt.xz", lambda: lzma.compress(b"law\n" + b"0" * 10_000_000), {}, "line 2"),
    ("a.csv", b"text,n\nlaw,1\nlaw," + b"x" * 101 + b"\nlaw,3\n", {}, "line 3"),
    ("a.csv", b"text,n\nlaw,1\n\n" + b"x" * 101, {}, "line 4"),
    (
        "a.csv.gz",
        lambda: gzip.compress(b'text\n"' + b"\n" * 9_000_000),
        {},
        "line 2, up to where its .*,",
    ),
    ("a.parquet", parquet(text=["a", "é" * 51]), {}, "row 2"),
    ("a.parquet", parquet(ids=[[1] * 12, [1] * 13]), {"ids_column": "ids"}, "row 2"),
    ("a.dat", b"0\n20 " + b"100:1 " * 20, {}, "line 2"),
]


@pytest.mark.parametrize(("name", "content", "columns", "where"), OVERLONG)
def test_a_document_above_the_limit(
    tmp_path: Path,
    name: str,
    content: bytes | Callable[[], bytes],
    columns: dict[str, str],
    where: str,
) -> None:
    shard = put_local(tmp_path, name, content() if callable(content) else content)
    form = ShardFormat(**columns)
    read: Callable[..., Iterator[Any]] = read_ids if form.holds(shard.url) == "ids" else read_texts
    expected = f"{where} exceeds 100 bytes; split the document, or raise --max-document-bytes"
    with pytest.raises(ShardError, match=expected):
        list(read(shard, form, ReadLimits(document_bytes=100)))


def test_a_gzip_bomb_is_refused_long_before_it_is_unpacked(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.txt.gz", gzip.compress(bytes(64 << 20), compresslevel=1))
    tracemalloc.start()
    try:
        with pytest.raises(ShardError, match="line 1 exceeds 1000 bytes"):
            list(read_texts(shard, ShardFormat(), ReadLimits(document_bytes=1000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 << 20


def test_a_damaged_xz_is_refused(tmp_path: Path) -> None:
    content = bytearray(lzma.compress(b"law\n" * 100))
    content[30] ^= 1
    shard = put_local(tmp_path, "a.txt.xz", bytes(content))
    with pytest.raises(ShardError, match=r"cannot be read \(xz: Corrupt"):
        list(read_texts(shard, ShardFormat()))


def test_rows_are_numbered_through_batches_and_row_groups(tmp_path: Path) -> None:
    content = parquet(rows=300, text=["a"] * 700 + ["b" * 101])
    shard = put_local(tmp_path, "a.parquet", content)
    with pytest.raises(ShardError, match="row 701 exceeds 100 bytes"):
        list(read_texts(shard, ShardFormat(), ReadLimits(document_bytes=100)))


def test_a_document_at_the_limit_is_read(tmp_path: Path) -> None:
    shard = put_local(tmp_path, "a.txt", b"x" * 100 + b"\n" + b"y" * 100)
    texts = flat(read_texts(shard, ShardFormat(), ReadLimits(document_bytes=100)))
    assert texts == ["x" * 100, "y" * 100]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "file sub/a is not UTF-8: its byte 0 is 0xff"),
        (b"x" * 101, "file sub/a exceeds 100 bytes"),
    ],
)
def test_a_bad_file_of_a_folder_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "sub").mkdir()
    put_local(tmp_path, "sub/a", content)
    [shard] = list_shards([f"{tmp_path}/"])
    with pytest.raises(ShardError, match=message):
        list(read_texts(shard, ShardFormat(), ReadLimits(document_bytes=100)))


def test_a_truncated_file_of_a_folder_is_named(tmp_path: Path) -> None:
    put_local(tmp_path, "a.gz", gzip.compress(b"law")[:-3])
    [shard] = list_shards([str(tmp_path)])
    with pytest.raises(ShardError, match=r"file a.gz cannot be read \(Truncated"):
        list(read_texts(shard, ShardFormat()))


def test_a_folder_of_empty_files_is_empty(tmp_path: Path) -> None:
    put_local(tmp_path, "a", b"")
    [shard] = list_shards([str(tmp_path)])
    with pytest.raises(ShardError, match="is empty"):
        list(read_texts(shard, ShardFormat()))


def test_a_missing_and_a_forbidden_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard = Shard(f"{tmp_path}/a.txt", 3)
    with pytest.raises(ShardError, match="does not exist; check the path"):
        list(read_shard(shard, ShardFormat(), VOCABULARY, POLICY))

    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "open", forbidden)
    with pytest.raises(
        ShardError, match=r"without permission \(.*denied\); check the permissions: "
    ):
        list(read_texts(shard, ShardFormat()))


def test_programming_errors_are_not_dressed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = put_local(tmp_path, "a.txt", b"law")

    def broken(*_: object, **__: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "open", broken)
    with pytest.raises(TypeError, match="a bug"):
        list(read_texts(shard, ShardFormat()))


@pytest.mark.parametrize("name", ["document_bytes", "batch_bytes", "batch_documents"])
def test_limits_are_at_least_one(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}=0.*every bound must be at least 1"):
        ReadLimits(**{name: 0})
