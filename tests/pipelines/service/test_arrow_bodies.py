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
    assert list(documents_in(stream(TABLE), kind, 5)) == [
        {"text": "the sea", "id": 1, "date": "2026-11-20"},
        {"text": "the law", "id": None, "date": "2026-11-20"},
        {"text": None, "id": 3, "date": "2026-11-20"},
    ]
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
