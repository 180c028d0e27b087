"""Write columns to Parquet files, each file atomically, and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streaming_moments.columns import Column
from streaming_moments.errors import StoreError
from streaming_moments.storage.files.backends import storage_errors
from streaming_moments.storage.files.filesystems import one_line, open_file_system
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.files.outputs import parquet_output

Metadata = Mapping[bytes, bytes]


def write_columns(
    folder: OutputFolder,
    name: str,
    parts: Iterator[Mapping[str, Any]],
    metadata: Metadata | None = None,
    end: Callable[[], Metadata] | None = None,
) -> str:
    """Write one or more tables, one after the other, into a Parquet file, and return its URL.

    Raises what `parquet_output` raises.

    parts : the tables: columns by name, each a `Column` or an Arrow array; all tables have the same
        names and types
    end : called after all tables are written; returns further metadata of the file
    """
    tables = map(table_of, parts)
    table = next(tables)
    schema = table.schema if metadata is None else table.schema.with_metadata(metadata)
    with parquet_output(folder, name, schema) as (url, writer):
        writer.write_table(table)
        for table in tables:
            writer.write_table(table)
        if end is not None:
            writer.add_key_value_metadata(end())
    return url


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Convert columns to an Arrow table.

    Examples
    --------
    >>> import numpy as np
    >>> table_of({"row": Column(np.array([0, 1])), "id": pa.array(["a", "b"])}).num_rows
    2
    """
    return pa.table({name: array_of(one) for name, one in columns.items()})


def array_of(column: Column | pa.Array) -> pa.Array:
    """Convert a column to an Arrow array; an Arrow array stays as it is."""
    return column.to_arrow() if isinstance(column, Column) else column


def read_columns(
    files: Sequence[str], storage_options: Mapping[str, object] | None = None
) -> pa.Table:
    """Read one or more Parquet files with the same columns into one table.

    The table has no metadata.

    Raises StoreError if a file is missing or cannot be read.
    """
    tables = []
    for url in files:
        try:
            fs, path = open_file_system(url, storage_options)
            with fs.open(path, "rb") as stored:
                tables.append(pq.read_table(stored).replace_schema_metadata())
        except storage_errors() as error:
            raise StoreError(
                f"{url} cannot be read ({one_line(error, storage_options)}); run transform again"
            ) from error
    return pa.concat_tables(tables)
