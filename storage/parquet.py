"""Parquet: columns of a file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.storage.filesystems import one_line

_BLOCK_BYTES = 1 << 20
# So few that a page of one long repeated text, decoded, stays bounded.
_BATCH_ROWS = 256


@dataclass(frozen=True)
class ParquetColumn:
    """Column to read: its name, the option that chose it, and whether it holds lists of integers.

    Parameters
    ----------
    name : str
        Name of the column.
    option : str
        Option of the command line that names it, for errors.
    of_lists : bool
        True for lists of integers, False for texts.
    """

    name: str
    option: str
    of_lists: bool

    @property
    def expected(self) -> str:
        """Type the column must have, in words."""
        return "a list of integers" if self.of_lists else "string"

    def takes(self, kind: pa.DataType) -> bool:
        """Whether a type is the expected one.

        Examples
        --------
        >>> ParquetColumn("ids", "--ids-column", True).takes(pa.list_(pa.float64()))
        False
        """
        if self.of_lists:
            lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
            return any(of(kind) for of in lists) and bool(pa.types.is_integer(kind.value_type))
        held = kind.value_type if pa.types.is_dictionary(kind) else kind
        strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return any(of(held) for of in strings)


def read_columns(
    fs: fsspec.AbstractFileSystem, path: str, url: str, columns: Sequence[ParquetColumn]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Row groups one after the other, in small batches, each with its first row (from 1).

    Raises
    ------
    ShardError
        The file is not Parquet, or a column is missing or of another type: names those there are.
    """
    with fs.open(path, "rb") as stored:
        try:
            file = pq.ParquetFile(stored, buffer_size=_BLOCK_BYTES)
        except pa.ArrowInvalid as error:
            raise ShardError(
                url,
                f"is not Parquet, or was cut short ({one_line(error)}); "
                "write it again, or give another --format",
            ) from error
        for column in columns:
            _require_column(file.schema_arrow, column, url)
        names, first = [column.name for column in columns], 1
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_BATCH_ROWS, [group], names, use_threads=False):
                yield first, batch
                first += batch.num_rows


def lists_of(column: pa.Array, name: str, url: str) -> list[NDArray[np.int64]]:
    """Lists of a column as int64 arrays; a null is an empty list.

    Raises
    ------
    ShardError
        A null within a list.

    Examples
    --------
    >>> lists_of(pa.array([[3, 4], None]), "ids", "/corpus/a.parquet")
    [array([3, 4]), array([], dtype=int64)]
    """
    values = column.flatten()
    if values.null_count:
        raise ShardError(url, f"column {name!r} has a null within a list; mend or drop it")
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.split(numbers, np.cumsum(sizes)[:-1]) if sizes.size else []


def _require_column(schema: pa.Schema, column: ParquetColumn, url: str) -> None:
    if schema.names.count(column.name) != 1:
        raise ShardError(
            url,
            f"has no column {column.name!r}, or several; it has {schema.names}: "
            f"choose one by {column.option}",
        )
    kind = schema.field(column.name).type
    if not column.takes(kind):
        raise ShardError(
            url,
            f"column {column.name!r} is of type {kind}, expected {column.expected}; "
            f"choose another by {column.option}",
        )
