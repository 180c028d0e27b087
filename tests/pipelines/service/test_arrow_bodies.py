"""Arrow streams: their rows are documents, and no stream is larger than it came."""

import datetime
import random
import struct
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.pipelines.service.http import arrow_bodies
from streaming_moments.pipelines.service.http.arrow_bodies import documents_of_stream
from streaming_moments.pipelines.service.http.bodies import documents_in
from streaming_moments.pipelines.service.http.problems import Problem

TABLE = pa.table(
    {
        "text": ["the sea", "the law", None],
        "id": pa.array([1, None, 3]),
        "date": pa.array([datetime.date(2026, 11, 20)] * 3),
    }
)
TABLE_ROWS = [
    {"text": "the sea", "id": 1, "date": "2026-11-20"},
    {"text": "the law", "id": None, "date": "2026-11-20"},
    {"text": None, "id": 3, "date": "2026-11-20"},
]


def stream(table, **options):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(**options)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def stream_whole(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def test_rows_are_documents():
    kind = "application/vnd.apache.arrow.stream"
    assert list(documents_in(stream(TABLE), kind, 5)) == TABLE_ROWS
    with pytest.raises(Problem, match="more than 2"):
        list(documents_in(stream(TABLE), kind, 2))


def test_rows_beyond_what_is_taken_are_never_made():
    content = stream_whole(pa.table({"id": pa.array(np.zeros(1_000_000, np.int8))}))
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="more than 2"):
            list(documents_in(content, "application/vnd.apache.arrow.stream", 2))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_columns_that_share_a_buffer_are_refused():
    """Eight columns of which all are the bytes of the first."""
    column, names = pa.array(np.zeros(1 << 10, np.int64)), [f"c{number}" for number in range(8)]
    content = bytearray(stream_whole(pa.table([column] * 8, names)))
    size = 8 << 10
    for number in range(1, 8):
        # offset and length of its validity, which it has none of, and of its values
        own = struct.pack("<qqqq", number * size, 0, number * size, size)
        content = content.replace(own, struct.pack("<qqqq", 0, 0, 0, size))
    content = content.replace(struct.pack("<q", 8 * size), struct.pack("<q", size))
    end = content.rindex(b"\xff\xff\xff\xff")
    content = bytes(content[: end - 7 * size] + content[end:])
    assert pa.ipc.open_stream(content).read_all().num_columns == 8
    with pytest.raises(Problem, match="share"):
        list(documents_of_stream(content))


def test_lists_and_numbers_are_as_json_says_them():
    columns = {
        "ids": pa.array([[3, 4], None], pa.list_(pa.int32())),
        "vector": pa.array([[0.5, 1.0], [2.0, 3.0]], pa.list_(pa.float32(), 2)),
        "x": pa.array([1.5, None]),
    }
    assert list(documents_of_stream(stream(pa.table(columns)))) == [
        {"ids": [3, 4], "vector": [0.5, 1.0], "x": 1.5},
        {"ids": None, "vector": [2.0, 3.0], "x": None},
    ]


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_compressed_batches_are_refused_before_they_are_read(codec):
    bomb = pa.table({"text": ["a" * (1 << 24)]})
    content = stream(bomb, compression=codec)
    assert len(content) < 1 << 20
    with pytest.raises(Problem, match="compressed") as refused:
        list(documents_of_stream(content))
    assert refused.value.status == 415


FRAMINGS = [
    {"use_legacy_format": legacy, "metadata_version": version}
    for legacy in (False, True)
    for version in (pa.ipc.MetadataVersion.V4, pa.ipc.MetadataVersion.V5)
]


def refused_without_growing(content, most):
    """What is said of a stream of which nothing is decompressed on the way."""
    before = pa.default_memory_pool()
    counting = pa.proxy_memory_pool(before)
    pa.set_memory_pool(counting)
    try:
        with pytest.raises(Problem) as refused:
            list(documents_of_stream(content))
    finally:
        pa.set_memory_pool(before)
    assert counting.max_memory() <= most
    return refused.value


@pytest.mark.parametrize("framing", FRAMINGS, ids=str)
def test_every_framing_holds_the_same_documents(framing):
    assert list(documents_of_stream(stream(TABLE, **framing))) == TABLE_ROWS


@pytest.mark.parametrize("framing", FRAMINGS, ids=str)
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a" * (1 << 24)]),
        pa.array([["a" * (1 << 24)]]),
        pa.array([[0] * (1 << 20)], pa.list_(pa.int64(), 1 << 20)),
    ],
    ids=["text", "list", "fixed"],
)
def test_a_compressed_batch_is_refused_in_every_framing(framing, codec, column):
    content = stream(pa.table({"text": column}), compression=codec, **framing)
    assert len(content) < 1 << 20
    refused = refused_without_growing(content, 1 << 22)
    assert (refused.status, "compressed" in refused.detail) == (415, True)


def experimental(nbytes, legacy):
    """A stream as versions 0.15 to 0.17 compressed it: its metadata say so beside the batch."""
    packed = b"?"
    while len(packed) % 2:
        nbytes += 2
        packed = struct.pack("<q", nbytes) + pa.compress(bytes(nbytes), codec="zstd", asbytes=True)
    rows = len(packed) // 2
    column = pa.Array.from_buffers(pa.int16(), rows, [None, pa.py_buffer(packed)])
    batch, sink = pa.RecordBatch.from_arrays([column], ["id"]), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(
        use_legacy_format=legacy, metadata_version=pa.ipc.MetadataVersion.V4
    )
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        told = {"ARROW:experimental_compression": "zstd"}
        writer.write_batch(batch, custom_metadata=told)
    content = sink.getvalue().to_pybytes()
    # the rows of the batch and of its column, but not the bytes of its buffer
    assert content.count(struct.pack("<q", rows)) == 2
    return content.replace(struct.pack("<q", rows), struct.pack("<q", nbytes // 2)), nbytes


@pytest.mark.parametrize("legacy", [False, True])
def test_the_compression_of_early_versions_is_refused_before_it_is_read(legacy):
    content, nbytes = experimental(1 << 26, legacy)
    assert len(content) < 1 << 13
    with pa.ipc.open_stream(content) as reader:
        assert reader.read_next_batch().nbytes == nbytes, "who only reads it is filled"
    assert "compressed" in refused_without_growing(content, 1 << 22).detail


@pytest.mark.parametrize("framing", FRAMINGS, ids=str)
def test_dictionaries_are_refused_in_every_framing(framing):
    encoded = pa.table({"text": pa.array(["a" * 1000] * 3).dictionary_encode()})
    assert refused_without_growing(stream(encoded, **framing), 1 << 20).status == 415
    # also where the schema is one of texts
    parts = [stream(one, **framing) for one in (TABLE.select(["text"]), encoded)]
    schemas = [next(arrow_bodies._messages(part)).size for part in parts]
    mixed = parts[0][: schemas[0]] + parts[1][schemas[1] :]
    assert "dictionaries" in refused_without_growing(mixed, 1 << 20).detail


def test_what_is_behind_the_end_is_not_lost_in_silence():
    with pytest.raises(Problem, match="behind the end"):
        list(documents_of_stream(stream(TABLE) * 2))


def test_a_stream_that_is_cut_off_is_refused_wherever():
    content = stream(TABLE)
    ends = {content.rindex(b"\xff\xff\xff\xff"), len(content)}
    for size in range(len(content)):
        try:
            found = list(documents_of_stream(content[:size]))
        except Problem as refused:
            assert refused.status == 400  # noqa: PT017
        else:
            assert len(found) < 3 or size in ends


def test_a_column_that_is_there_twice_is_refused():
    column = pa.array(["a"])
    with pytest.raises(Problem, match="'text' is there twice"):
        list(documents_of_stream(stream(pa.table([column, column], ["text", "text"]))))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a" * 1000] * 3).dictionary_encode(),
        pa.array([[["a"]]] * 3),
        pa.array([[]] * 3, pa.list_(pa.int8(), 0)),
        pa.array([[True]] * 3),
        pa.array([b"a"] * 3),
        pa.nulls(3),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_other_types_are_refused(column):
    with pytest.raises(Problem, match="send others as JSON"):
        list(documents_of_stream(stream(pa.table({"text": column}))))


@given(st.integers(0, 1 << 30))
@settings(max_examples=200)
def test_a_damaged_stream_is_documents_or_a_problem(seed):
    rng = random.Random(seed)
    content = bytearray(stream(TABLE))
    for _ in range(rng.randint(1, 4)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    cut = bytes(content[: rng.choice([len(content), rng.randrange(len(content))])])
    try:
        found = list(documents_of_stream(cut))
    except Problem as refused:
        found = []
        assert refused.status in (400, 415)  # noqa: PT017
    assert len(found) <= 3
