"""Files of columns: types of arrays, nulls for unknown rows, written atomically."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streaming_moments.columns import Column, Columns
from streaming_moments.storage.column_files import array_of, write_columns
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.output_folders import OutputFolder

UNKNOWN = np.array([False, True])


def part(number):
    said = Columns.of(
        topic=Column(np.array([1, 0], np.int32), UNKNOWN),
        shares=Column(np.eye(2) * number, UNKNOWN),
        states=Column(np.array([3, 4, 5], np.int32), offsets=np.array([0, 1, 3])),
        word=Column(np.array([1, 0]), UNKNOWN, texts=("sea", "law")),
        foreign=np.array([True, False]),
    )
    return {"id": pa.array([f"a{number}", None]), **said}


def test_all_parts_are_in_the_file_with_what_is_said_at_the_end(tmp_path):
    told = []
    folder = OutputFolder(Folder.at(str(tmp_path)))

    def parts():
        for number in (1, 2):
            yield part(number)
            told.append(number)

    metadata = {b"shard": b"a.csv"}
    url = write_columns(
        folder, "out.parquet", parts(), metadata, lambda: {b"parts": str(told).encode()}
    )
    assert url == str(tmp_path / "out.parquet")
    table = pq.read_table(url)
    assert table.schema.equals(
        pa.schema(
            {
                "id": pa.string(),
                "topic": pa.int32(),
                "shares": pa.list_(pa.float64(), 2),
                "states": pa.list_(pa.int32()),
                "word": pa.string(),
                "foreign": pa.bool_(),
            }
        )
    )
    assert table.to_pylist()[:2] == [
        {
            "id": "a1",
            "topic": 1,
            "shares": [1.0, 0.0],
            "states": [3],
            "word": "law",
            "foreign": True,
        },
        {
            "id": None,
            "topic": None,
            "shares": None,
            "states": [4, 5],
            "word": None,
            "foreign": False,
        },
    ]
    assert table["shares"].to_pylist()[2] == [2.0, 0.0]
    found = pq.read_metadata(url)
    assert found.num_row_groups == 2
    assert (found.metadata[b"shard"], found.metadata[b"parts"]) == (b"a.csv", b"[1, 2]")


def test_a_file_whose_parts_end_with_an_error_is_not_there(tmp_path):
    def parts():
        yield part(1)
        raise ValueError("torn")

    folder = OutputFolder(Folder.at(str(tmp_path)))
    with pytest.raises(ValueError, match="torn"):
        write_columns(folder, "out.parquet", parts())
    assert [*tmp_path.iterdir()] == []


def test_parts_have_the_same_columns(tmp_path):
    folder = OutputFolder(Folder.at(str(tmp_path)))
    others = iter([{"a": Column(np.zeros(1))}, {"b": Column(np.zeros(1))}])
    with pytest.raises(ValueError, match="schema"):
        write_columns(folder, "out.parquet", others)
    assert [*tmp_path.iterdir()] == []


def test_lists_of_one_width_are_of_that_width_also_where_there_are_none():
    assert array_of(Column(np.empty((0, 3)))).type == pa.list_(pa.float64(), 3)
