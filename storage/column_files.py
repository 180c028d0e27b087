"""Parquet files of columns, each there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.columns import Column
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
    """Write parts, at least one, into a file and return its URL; errors as of `parquet_output`.

    parts : columns by name, each a `Column` or an Arrow array; the same names and types in all
    end : gives further metadata once all parts are written
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
    >>> table_of({"row": Column(np.array([0, 1])), "id": pa.array(["a", "b"])}).num_rows
    2
    """
    return pa.table({name: array_of(one) for name, one in columns.items()})


def array_of(column: Column | pa.Array) -> pa.Array:
    """Convert a column to an Arrow array, with nulls where its values are unknown."""
    if not isinstance(column, Column):
        return column
    array, unknown = column.array, column.unknown
    if column.texts is not None:
        places = pa.array(array.astype(np.int32), mask=unknown)
        return pa.array(column.texts, pa.string()).take(places)
    if column.offsets is not None:
        return pa.ListArray.from_arrays(column.offsets.astype(np.int32), pa.array(array))
    if array.ndim == 1:
        return pa.array(array, mask=unknown)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
    if unknown is None or not unknown.any():
        return lists
    return lists.take(pa.array(np.arange(len(lists)), mask=unknown))
