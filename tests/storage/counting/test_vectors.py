"""Rows of numbers in any format: equal bits for any cut, and refused rows."""

import io
import itertools
import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr
from small_shards import COMPRESS, parquet, put

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.storage.counting import vectors
from streaming_moments.storage.counting.vectors import (
    VectorReader,
    VectorsForm,
    number_rows,
    pilot_of,
    sample_vectors,
)
from streaming_moments.storage.documents import read_chunks, read_tables
from streaming_moments.storage.formats import START, ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat, files_of

ROWS = np.round(np.random.default_rng(0).normal(size=(23, 5)), 2).astype(np.float32)
FORM = ShardFormat()
GRID = Grid(np.zeros(5), 0.01, 10_000)


def npy(rows):
    stream = io.BytesIO()
    np.save(stream, rows)
    return stream.getvalue()


def described(header):
    """Make a NumPy file with another header."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def ipc(table, of_file=True, rows=7):
    stream = io.BytesIO()
    opened = pa.ipc.new_file if of_file else pa.ipc.new_stream
    with opened(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return stream.getvalue()


def fixed(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])


def lists(rows):
    return pa.array(list(rows))


def numbered(rows):
    return {f"v{column}": rows[:, column] for column in range(rows.shape[1])}


def separated(rows, delimiter=","):
    lines = [delimiter.join(numbered(rows)), *(delimiter.join(map(str, row)) for row in rows)]
    return ("\n".join(lines) + "\n").encode()


def records(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


LISTS, NUMBERS = VectorsForm(("v",)), VectorsForm(("v0", "v1", "v2", "v3", "v4"))
WRITTEN = {
    "fixed.parquet": (lambda rows: parquet(6, v=fixed(rows)), LISTS),
    "lists.parquet": (lambda rows: parquet(6, v=lists(rows)), LISTS),
    "columns.parquet": (lambda rows: parquet(6, **numbered(rows)), NUMBERS),
    "rows.npy": (npy, LISTS),
    "file.arrow": (lambda rows: ipc(pa.table({"n": range(len(rows)), "v": fixed(rows)})), LISTS),
    "stream.arrow": (lambda rows: ipc(pa.table({"v": lists(rows)}), of_file=False), LISTS),
    "columns.feather": (lambda rows: ipc(pa.table(numbered(rows))), NUMBERS),
    "rows.csv": (separated, NUMBERS),
    "lists.jsonl": (lambda rows: records([{"v": row} for row in rows.tolist()]), LISTS),
    "columns.jsonl": (
        lambda rows: records(
            [dict(zip(NUMBERS.columns, row, strict=True)) for row in rows.tolist()]
        ),
        NUMBERS,
    ),
    "rows.tsv": (lambda rows: separated(rows, "\t"), NUMBERS),
}
CASES = [
    (name, suffix)
    for name in WRITTEN
    for suffix in (COMPRESS if name in ("rows.npy", "rows.csv") else [""])
]


def written(name, rows=ROWS, suffix=""):
    content, vectors = WRITTEN[name]
    return put(
        f"memory:///{uuid.uuid4().hex}", name + suffix, COMPRESS[suffix](content(rows))
    ), vectors


def read(shard, vectors, limits=ReadLimits(), start=START, width=5, by_content=True):
    reader = VectorReader(FORM, vectors, width, limits, by_content=by_content)
    return list(reader.read(shard, start))


def values_of(found):
    return np.concatenate([one.batch.values for one in found])


def odd_of(found):
    return np.concatenate([one.batch.odd for one in found]).tolist()


@pytest.mark.parametrize(("name", "suffix"), CASES)
@pytest.mark.parametrize("documents", [1, 4, 100])
def test_every_format_gives_the_same_rows_from_any_cut(name, suffix, documents):
    shard, vectors = written(name, suffix=suffix)
    limits = ReadLimits(batch_documents=documents)
    whole = read(shard, vectors, limits)
    values = values_of(whole)
    assert np.array_equal(values.astype(np.float32), ROWS)
    assert np.array_equal(GRID.quantised(values)[0], GRID.quantised(ROWS)[0])
    assert all(one.batch.odd is None for one in whole)
    turns = read(shard, vectors, limits, by_content=False)
    assert odd_of(turns) == [(number + shard.size) % 2 == 1 for number in range(23)]
    for number, cut in enumerate(whole[:-1], start=1):
        rest = read(shard, vectors, limits, cut.after)
        assert [one.after for one in rest] == [one.after for one in whole[number:]]
        assert np.array_equal(values_of(rest), values_of(whole[number:]))


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int8, np.int32, np.uint8])
@pytest.mark.parametrize("name", ["fixed.parquet", "lists.parquet", "rows.npy", "file.arrow"])
def test_numbers_keep_their_type(name, kind):
    rows = (np.abs(ROWS) * 10).astype(kind)
    shard, vectors = written(name, rows)
    [found] = read(shard, vectors)
    assert found.batch.values.dtype == kind
    assert np.array_equal(found.batch.values, rows)


ODD = pa.array([[1.0, 2.0], [3.0], None, [4.0, None], [float("nan"), 1.0], [5.0, 6.0], []])


def test_rows_of_another_width_and_without_numbers_are_left_out_and_counted():
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", parquet(3, v=ODD))
    found = read(shard, LISTS, width=2)
    assert values_of(found).tolist() == [[1, 2], [5, 6]]
    assert sum(one.batch.without for one in found) == sum(one.outside for one in found) == 5
    turns = read(shard, LISTS, width=2, by_content=False)
    assert odd_of(turns) == [shard.size % 2 == 1, shard.size % 2 == 0]
    with pytest.raises(ShardError, match="row 2 has 1 numbers"):
        read(shard, VectorsForm(("v",), "refuse"), width=2)
    later = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", parquet(2, v=ODD[4:6]))
    with pytest.raises(ShardError, match="row 1 has numbers that are not finite"):
        read(later, VectorsForm(("v",), "refuse"), width=2)


def test_fields_of_csv_that_are_no_numbers_make_a_bad_row():
    content = b"a,b\n1, 2\nx,3\n,4\n5,1e400\n6,-7e-1\n"
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.csv", content)
    [found] = read(shard, VectorsForm(("a", "b")), width=2)
    assert found.batch.values.tolist() == [[1, 2], [6, -0.7]]
    assert found.outside == 3


def test_a_number_is_what_numbers_look_like_in_tables():
    content = b"a,b\n1_0,2\n3,4\n"  # float("1_0") is 10
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.csv", content)
    [found] = read(shard, VectorsForm(("a", "b")), width=2)
    assert (found.batch.values.tolist(), found.outside) == ([[3, 4]], 1)


@pytest.mark.parametrize("documents", [4096, 32_768])
def test_lists_and_single_values_in_a_field_of_json_are_refused_wherever_they_meet(documents):
    content = b'{"v": null}\n' * 5 + b'{"v": [1, 2]}\n' * 4091 + b'{"v": null}\n{"v": 5}\n'
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.jsonl", content)
    with pytest.raises(ShardError, match="'v' holds both lists and single values before line 4099"):
        read(shard, LISTS, ReadLimits(batch_documents=documents), width=2)


def test_a_pilot_may_begin_with_nulls_alone():
    content = b'{"v": null}\n' * 4096 + b'{"v": [1, 2]}\n'
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.jsonl", content)
    drawn = sample_vectors(shard, FORM, LISTS, 5000, 0, ReadLimits(batch_documents=4096))
    assert (drawn.widths.size, drawn.values.tolist()) == (4097, [1, 2])


def test_nulls_in_fields_of_json_make_a_bad_row():
    content = records([{"v": [1, 2.5]}, {"v": None}, {"v": [float("nan"), 1]}, {"v": [None, 2]}])
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.jsonl", content)
    [found] = read(shard, LISTS, width=2)
    assert (found.batch.values.tolist(), found.outside) == ([[1, 2.5]], 3)


def test_nulls_in_columns_of_numbers_make_a_bad_row():
    content = parquet(9, a=[1, None, 3], b=[0.5, 1.0, None])
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", content)
    [found] = read(shard, VectorsForm(("a", "b")), width=2)
    assert (found.batch.values.tolist(), found.outside) == ([[1, 0.5]], 2)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.parquet", parquet(3, v=["x", "y"], w=[[1], [2]]), "row|numbers"),
        ("a.parquet", parquet(3, v=[["x"], ["y"]]), "not finite"),
        ("a.parquet", parquet(3, v=[[[1.0]]]), "is of type list"),
        ("a.parquet", parquet(3, other=[1.0]), "no column 'v'"),
        ("a.arrow", ipc(pa.table({"other": [1.0]})), "no column 'v'"),
        ("a.arrow", b"no Arrow at all", "not an Arrow file or stream"),
        ("a.npy", b"no array", "not a NumPy array"),
        ("a.npy", npy(np.ones(3)), "two dimensions"),
        ("a.npy", described("{'descr':'<f8'((("), "not a NumPy array"),
        ("a.npy", described("{'descr':'<f8' 1}"), "not a NumPy array"),
        ("a.npy", described("{[]: 1}"), "not a NumPy array"),
        ("a.npy", described("-" * 9000 + "1"), "not a NumPy array"),
        ("a.arrow.gz", COMPRESS[".gz"](ipc(pa.table({"v": [1.0]}), False)), "decompress it"),
        ("a.arrow.zst", COMPRESS[".zst"](ipc(pa.table({"v": [1.0]}))), "decompress it"),
        ("a.npy", npy(np.array([["x"]])), "rows of numbers"),
        ("a.npy", npy(np.asfortranarray(np.ones((3, 4)))), "by columns"),
        ("a.npy", npy(np.ones((30, 4)))[:-8], "8 bytes too early"),
        ("a.txt", b"1 2\n", "no columns such as v;"),
    ],
)
def test_what_holds_no_vectors_is_refused(name, content, told):
    shard = put(f"memory:///{uuid.uuid4().hex}", name, content)
    vectors = VectorsForm(("v",), "refuse")
    with pytest.raises(ShardError, match=told):
        read(shard, vectors, width=1)


@pytest.mark.parametrize("damage", ["half", "end", "NUL", "mark"])
@pytest.mark.parametrize("name", WRITTEN)
def test_a_damaged_shard_is_refused_where_its_format_can_tell(name, damage):
    content, vectors = WRITTEN[name]
    whole, end = content(ROWS), np.random.default_rng(0).bytes(30)
    damaged = {"half": whole[: len(whole) // 2], "end": whole[:-30] + end, "NUL": b"\0" * 9}
    shard = put(f"memory:///{uuid.uuid4().hex}", name, damaged.get(damage, b"ARROW1"))
    if (name, damage) != ("rows.npy", "end"):
        with pytest.raises(ShardError):
            read(shard, vectors)
        return
    # any bytes are numbers: those of the last two rows are others
    [found] = read(shard, vectors)
    assert np.array_equal(found.batch.values[:21], ROWS[:21])
    assert len(found.batch.values) + found.outside == 23


def test_arrays_are_no_documents():
    for name in ("rows.npy", "file.arrow"):
        shard, _ = written(name)
        with pytest.raises(ShardError, match="--kind vectors"):
            FORM.holds(shard.url)
        with pytest.raises(ShardError, match="--kind vectors"):
            list(read_chunks(shard, FORM))


@pytest.mark.parametrize("name", ["fixed.parquet", "lists.parquet"])
def test_row_groups_of_many_vectors_need_not_fit_the_memory(name):
    rows = np.zeros((3_000, 5), dtype=np.float32)
    content, vectors = WRITTEN[name]
    stream = io.BytesIO()
    pq.write_table(pa.table({"v": fixed(rows) if name[0] == "f" else lists(rows)}), stream)
    shard = put(f"memory:///{uuid.uuid4().hex}", name, stream.getvalue())
    limits = ReadLimits(row_group_bytes=4_000, batch_documents=500)
    assert sum(len(one.batch.values) for one in read(shard, vectors, limits)) == 3_000
    assert files_of(shard)[0].size == shard.size
    del content


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_vectors_are_read_by_their_mean_and_held_to_it(kind):
    rows = np.ones((500, 50), dtype=kind)
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", parquet(500, v=lists(rows)))
    limits = ReadLimits(row_group_bytes=100_000)
    assert sum(len(one.batch.values) for one in read(shard, LISTS, limits, width=50)) == 500
    assert len(sample_vectors(shard, FORM, LISTS, 9, 0, limits).widths) == 9
    # where they are no vectors, one may be as long as all together
    with pytest.raises(ShardError, match="'v' takes 200000 bytes"):
        list(read_tables(shard, FORM, ["v"], limits))
    uneven = pa.array([[]] * 499 + [np.ones(200_000, dtype=kind)], pa.list_(pa.array(rows[0]).type))
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", parquet(500, v=uneven))
    with pytest.raises(ShardError, match="'v' has rows that take .* with lists of one length, or"):
        read(shard, LISTS, limits, width=50)


def test_a_pilot_takes_rows_of_the_commonest_width(monkeypatch):
    shard = put(f"memory:///{uuid.uuid4().hex}", "a.parquet", parquet(3, v=ODD))
    sample = sample_vectors(shard, FORM, LISTS, 100, 0)
    rows, others = pilot_of([sample, sample], 100, 0)
    assert rows.tolist() == [[1, 2], [5, 6]] * 2
    assert others == 10
    rows, others = pilot_of([sample, sample], 3, 0)
    assert (rows.shape, others) == ((3, 2), 10)
    assert {*map(tuple, rows.tolist())} <= {(1, 2), (5, 6)}
    monkeypatch.setattr(vectors, "PILOT_BYTES", 2 * 8 * 2)
    assert len(pilot_of([sample, sample], 100, 0)[0]) == 2
    few = sample_vectors(written("rows.npy")[0], FORM, LISTS, 6, 0)
    assert few.widths.tolist() == [5] * 6
    with pytest.raises(InvalidInput, match="none of the 2 rows"):
        pilot_of(
            [
                number_rows(
                    pa.table({"v": [[], None]}, pa.schema({"v": pa.list_(pa.float32())})),
                    ["v"],
                    "x",
                )
            ],
            100,
            0,
        )


BLOSC = {"typesize": 8, "cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0}
CONFIGURED = {"gzip": {"level": 5}, "blosc": BLOSC, "zstd": {"level": 0, "checksum": True}}


def zarred(place, rows, name="", **kept):
    """Write a Zarr array to a folder, and return its shard."""
    if name:
        zarr.open_group(f"{place}", mode="w").create_array(name, data=rows, **kept)
    else:
        zarr.create_array(f"{place}", data=rows, **kept)
    [shard] = list_shards([str(place)])
    return shard


@pytest.mark.parametrize("kept", [{"chunks": (4, 2)}, {"chunks": (2, 5), "shards": (6, 5)}, {}])
@pytest.mark.parametrize("name", ["", "v"])
def test_arrays_of_zarr_are_read_by_the_rows_of_a_chunk(tmp_path, kept, name):
    shard = zarred(tmp_path / "a.zarr", ROWS, name, **kept)
    assert FORM.kind_of(shard.url) == "zarr"
    for documents in (1, 4, 100):
        limits = ReadLimits(batch_documents=documents)
        whole = read(shard, LISTS, limits)
        assert np.array_equal(values_of(whole), ROWS)
        assert all(len(one.batch.values) <= documents for one in whole)
        for number, cut in enumerate(whole[:-1], start=1):
            rest = read(shard, LISTS, limits, cut.after)
            assert np.array_equal(rest[0].batch.values, whole[number].batch.values)


def test_what_is_no_array_of_zarr_is_refused(tmp_path):
    shard = zarred(tmp_path / "a.zarr", ROWS, chunks=(4, 5))
    with pytest.raises(ShardError, match="chunks of 4 rows, 80 bytes, above the limit of 20"):
        read(shard, LISTS, ReadLimits(row_group_bytes=20))
    with pytest.raises(ShardError, match="can be read as one array only"):
        read(shard, NUMBERS)
    with pytest.raises(ShardError, match=r"\(23,\) of float32; give rows"):
        read(zarred(tmp_path / "flat.zarr", ROWS[:, 0]), LISTS)
    group = zarred(tmp_path / "group.zarr", ROWS, "v")
    with pytest.raises(ShardError, match="has no w/zarr.json"):
        read(group, VectorsForm(("w",)))
    part = tmp_path / "a.zarr" / "c" / "0" / "0"
    part.write_bytes(part.read_bytes()[:-7])
    shard = list_shards([str(tmp_path / "a.zarr")])[0]
    with pytest.raises(ShardError, match="cannot be read"):
        read(shard, LISTS)
    (tmp_path / "a.zarr" / "zarr.json").write_text("{")
    shard = list_shards([str(tmp_path / "a.zarr")])[0]
    with pytest.raises(ShardError, match="cannot be read"):
        read(shard, LISTS)


@pytest.mark.parametrize("damage", ["cut", "halved", "overwritten"])
@pytest.mark.parametrize("compressor", ["gzip", "blosc", "zstd"])
def test_a_damaged_chunk_of_zarr_is_refused(tmp_path, compressor, damage):
    codec = {"name": compressor, "configuration": CONFIGURED[compressor]}
    rows = np.random.default_rng(0).normal(size=(64, 5))
    shard = zarred(tmp_path / "a.zarr", rows, chunks=(64, 5), compressors=codec)
    assert np.array_equal(read(shard, LISTS)[0].batch.values, rows)
    file = tmp_path / "a.zarr" / "c" / "0" / "0"
    whole = file.read_bytes()
    damaged = {
        "cut": whole[:8],
        "halved": whole[: len(whole) // 2],
        "overwritten": whole[:20] + b"\xff" * 20 + whole[40:-9],
    }
    file.write_bytes(damaged[damage])
    shard = list_shards([str(tmp_path / "a.zarr")])[0]
    with pytest.raises(ShardError, match="cannot be read"):
        read(shard, LISTS)


@pytest.mark.parametrize("columns", [(), ("a", "a"), ("",)])
def test_columns_are_named_once(columns):
    with pytest.raises(InvalidInput, match="columns of numbers"):
        VectorsForm(columns)
    with pytest.raises(InvalidInput, match="skip or refuse"):
        VectorsForm(bad="drop")
    assert VectorsForm.from_json(NUMBERS.to_json()) == NUMBERS


def test_a_batch_is_of_numbers():
    for values, odd in itertools.product([np.ones(3), np.array([["x"]])], [np.ones(1, bool)]):
        with pytest.raises(InvalidInput, match="vectors are"):
            VectorBatch(values, odd)
    with pytest.raises(InvalidInput, match="halves"):
        VectorBatch(np.ones((2, 2)), np.ones(3, bool))
