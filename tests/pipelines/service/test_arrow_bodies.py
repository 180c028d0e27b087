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
    with pytest.raises(Problem, match="share") as refused:
        list(documents_of_stream(content))
    assert refused.value.status == 415


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


@pytest.fixture(scope="module", params=["text", "list", "fixed"])
def column(request):
    """Sixteen megabytes of one value, or eight."""
    if request.param == "fixed":
        return pa.FixedSizeListArray.from_arrays(np.zeros(1 << 20, np.int64), 1 << 20)
    text = "a" * (1 << 24)
    return pa.array([text if request.param == "text" else [text]])


@pytest.mark.parametrize("framing", FRAMINGS, ids=str)
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
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
    refused = refused_without_growing(mixed, 1 << 20)
    assert (refused.status, "dictionaries" in refused.detail) == (415, True)


def test_what_is_behind_the_end_is_not_lost_in_silence():
    with pytest.raises(Problem, match="after the end"):
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
    with pytest.raises(Problem, match="'text' appears twice"):
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


def test_columns_that_may_come_are_as_json_says_them():
    moment = datetime.datetime(2026, 11, 20, 3, 4, 5)
    columns = {
        "large": pa.array(["a"], pa.large_string()),
        "byte": pa.array([7], pa.uint8()),
        "half": pa.array([0.5], pa.float32()),
        "when": pa.array([moment], pa.timestamp("us")),
        "day": pa.array([moment.date()], pa.date64()),
        "words": pa.array([["a", None]], pa.large_list(pa.string())),
        "days": pa.array([[moment.date()]], pa.list_(pa.date32())),
    }
    assert list(documents_of_stream(stream(pa.table(columns)))) == [
        {
            "large": "a",
            "byte": 7,
            "half": 0.5,
            "when": "2026-11-20T03:04:05",
            "day": "2026-11-20",
            "words": ["a", None],
            "days": ["2026-11-20"],
        }
    ]
    for other in (pa.array([0.5], pa.float16()), pa.array([1], pa.time32("s"))):
        with pytest.raises(Problem, match="send others as JSON") as refused:
            list(documents_of_stream(stream(pa.table({"x": other}))))
        assert (refused.value.status, refused.value.field) == (415, "Content-Type")


def test_names_of_columns_are_told_at_most_so_long():
    name = "n" * 61
    column = pa.array([True])
    with pytest.raises(Problem, match=rf"column {'n' * 60!r} is bool"):
        list(documents_of_stream(stream(pa.table({name: column}))))
    with pytest.raises(Problem, match=rf"column {'n' * 60!r} appears twice") as refused:
        list(documents_of_stream(stream(pa.table([column, column], [name, name]))))
    assert refused.value.status == 400


def test_rows_of_many_batches_are_all_there_once():
    table = pa.table({"id": pa.array(range(2500))})
    for content in (stream_whole(table), stream(table)):
        assert [one["id"] for one in documents_of_stream(content)] == list(range(2500))


def test_a_stream_without_its_end_or_with_nothing_behind_it_is_one():
    content = stream(TABLE)
    assert content.endswith(b"\xff\xff\xff\xff\0\0\0\0")
    for same in (content, content[:-8], content + b"\0" * 9):
        assert list(documents_of_stream(same)) == TABLE_ROWS
    with pytest.raises(Problem, match="after the end of the stream") as refused:
        list(documents_of_stream(content + b"\0y"))
    assert refused.value.status == 400


def messages_of(content):
    return [bytes(one) for one in arrow_bodies._messages(content)]


def test_messages_are_handed_on_whole_and_in_their_order():
    content = stream(TABLE)
    schema, *batches = messages_of(content)
    assert schema + b"".join(batches) == content[:-8]
    assert len(batches) == 2
    for wrong in (
        b"".join(batches),
        schema + schema,
        batches[0] + schema,
    ):
        with pytest.raises(Problem, match="neither a schema nor a record batch") as refused:
            list(documents_of_stream(wrong))
        assert refused.value.status == 400
    with pytest.raises(Problem, match="it is empty"):
        list(documents_of_stream(b""))
    with pytest.raises(Problem, match="it ends in the middle of a message"):
        list(documents_of_stream(content[: len(schema) + len(batches[0]) - 1]))


def test_big_endian_numbers_are_refused():
    """The byte of the schema that says so is set by hand."""
    schema, batch, _ = messages_of(stream(TABLE))
    head = bytearray(schema[8:])
    message = arrow_bodies._root(head)
    table = arrow_bodies._table(bytes(head), message, 2)
    vtable = table - struct.unpack_from("<i", head, table)[0]
    length = struct.unpack_from("<H", head, vtable)[0]
    assert arrow_bodies._byte(bytes(head), table, 0) == 0
    # a default is not written: another field that is one byte or more is named in its place
    offset = next(
        place
        for number in range(1, (length - 4) // 2)
        if (place := struct.unpack_from("<H", head, vtable + 4 + 2 * number)[0])
    )
    struct.pack_into("<H", head, vtable + 4, offset)
    assert arrow_bodies._byte(bytes(head), table, 0) != 0
    with pytest.raises(Problem, match="big-endian") as refused:
        list(documents_of_stream(schema[:8] + bytes(head) + batch))
    assert (refused.value.status, refused.value.field) == (415, "Content-Type")


def test_a_text_that_is_not_utf_8_is_told_as_such():
    texts, names = pa.table({"text": ["abc"]}), pa.table({"abc": ["text"]})
    for table, told in ((texts, "Invalid UTF8 sequence"), (names, "a text is not UTF-8")):
        content = stream(table).replace(b"abc", b"\xff\xfe\xfd")
        with pytest.raises(Problem, match=told) as refused:
            list(documents_of_stream(content))
        assert refused.value.status == 400


def test_texts_whose_places_go_backwards_are_none():
    places, wrong = struct.pack("<4i", 0, 3, 4, 5), struct.pack("<4i", 0, 4, 3, 5)
    content = stream_whole(pa.table({"text": ["abc", "d", "e"]}))
    assert content.count(places) == 1
    with pytest.raises(Problem, match="not an Arrow stream .*Offset invariant"):
        list(documents_of_stream(content.replace(places, wrong)))


def test_why_a_stream_is_none_is_told_in_brief(monkeypatch):
    remedy = "write it by pyarrow.ipc.new_stream"
    for content in (b"nonsense" * 100, b"?"):
        with pytest.raises(Problem) as refused:
            list(documents_of_stream(content))
        told = f"the body is not an Arrow stream (it is cut off or damaged); {remedy}"
        assert (refused.value.status, refused.value.detail) == (400, told)
    written = pa.BufferOutputStream()
    with pa.ipc.new_file(written, pa.schema({"text": pa.string()})):
        pass
    with pytest.raises(Problem, match="is an Arrow file; send a stream"):
        list(documents_of_stream(written.getvalue().to_pybytes()))

    def failing(content):
        raise ValueError("x" * 300)

    monkeypatch.setattr(arrow_bodies, "_messages", failing)
    with pytest.raises(Problem) as refused:
        list(documents_of_stream(b""))
    assert refused.value.detail == f"the body is not an Arrow stream ({'x' * 200}); {remedy}"


def test_a_table_of_flatbuffers_is_read_by_its_fields():
    """Three fields, of which the second has its default, and none behind them."""
    vtable = struct.pack("<HHHHH", 10, 16, 4, 0, 8)
    table = struct.pack("<iiq", len(vtable), -5, 1 << 40)
    data, at = vtable + table, len(vtable)
    assert [arrow_bodies._field(data, at, number) for number in range(5)] == [
        at + 4,
        0,
        at + 8,
        0,
        0,
    ]
    assert arrow_bodies._byte(data, at, 0) == 251
    assert [arrow_bodies._byte(data, at, number) for number in (1, 3)] == [0, 0]
    assert [arrow_bodies._long(data, at, number) for number in (1, 2, 3)] == [0, 1 << 40, 0]
    assert arrow_bodies._table(data, at, 1) is None
    assert arrow_bodies._root(struct.pack("<I", 77)) == 77
    inner = struct.pack("<HHH", 6, 8, 4) + struct.pack("<iI", 6, 12)
    assert arrow_bodies._table(inner, 6, 0) == 6 + 4 + 12
