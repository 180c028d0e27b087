"""Parquet: columns of a file, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
_BATCH_BYTES = 4 << 20


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
            rows = _rows_at_a_time(file.metadata.row_group(group), names)
            for batch in file.iter_batches(rows, [group], names, use_threads=False):
                yield first, batch
                first += batch.num_rows


def read_strings(
    fs: fsspec.AbstractFileSystem, path: str, url: str, name: str
) -> Iterator[tuple[int, pa.LargeStringArray]]:
    """Texts of a column in small arrays, each with its first row (from 1); a null is empty.

    They need not be UTF-8: readers of Parquet take the file's word for it.

    Raises
    ------
    ShardError
        As `read_columns`.
    """
    for first, batch in read_columns(fs, path, url, [ParquetColumn(name, "--text-column", False)]):
        yield first, pc.fill_null(batch.column(0).cast(pa.large_string()), "")


def are_sound(texts: pa.LargeStringArray, document_bytes: int) -> bool:
    r"""Whether all texts are UTF-8 of at most so many bytes; none may be null.

    Examples
    --------
    >>> are_sound(pa.array(["sea", "été"], pa.large_string()), 5)
    True
    >>> are_sound(pa.array([b"\xff"], pa.large_binary()).view(pa.large_string()), 5)
    False
    """
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return int(_sizes(texts).max(initial=0)) <= document_bytes


def with_sizes(texts: pa.LargeStringArray) -> Iterator[tuple[str, int]]:
    """Each text with its bytes of UTF-8; none may be null.

    Examples
    --------
    >>> list(with_sizes(pa.array(["sea", "été"], pa.large_string())))
    [('sea', 3), ('été', 5)]
    """
    return zip(texts.to_pylist(), _sizes(texts).tolist(), strict=True)


def in_chunks(
    arrays: Iterable[pa.LargeStringArray], chunk_bytes: int, chunk_rows: int
) -> Iterator[pa.LargeStringArray]:
    """Join and cut arrays of texts, so that each is as large as the bounds allow.

    A text above the bound on bytes stands alone.

    Examples
    --------
    >>> texts = pa.array(["sea", "law", "ship"], pa.large_string())
    >>> [chunk.to_pylist() for chunk in in_chunks([texts, texts[:1]], 6, 2)]
    [['sea', 'law'], ['ship'], ['sea']]
    """
    held: list[pa.LargeStringArray] = []
    size = rows = 0
    for array in arrays:
        ends = np.concatenate([[0], np.cumsum(_sizes(array))])
        start = 0
        while start < len(array):
            fitting = np.searchsorted(ends, ends[start] + chunk_bytes - size, side="right") - 1
            stop = min(int(fitting), start + chunk_rows - rows)
            if stop <= start and held:
                yield pa.concat_arrays(held)
                held, size, rows = [], 0, 0
                continue
            stop = max(stop, start + 1)
            held.append(array[start:stop])
            size, rows = size + int(ends[stop] - ends[start]), rows + stop - start
            start = stop
    if held:
        yield pa.concat_arrays(held)


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


def _rows_at_a_time(group: pq.RowGroupMetaData, names: Sequence[str]) -> int:
    """Rows whose columns take `_BATCH_BYTES` decoded, going by the mean of the row group."""
    columns = (group.column(place) for place in range(group.num_columns))
    stored = sum(
        column.total_uncompressed_size
        for column in columns
        if column.path_in_schema.split(".")[0] in names or column.path_in_schema in names
    )
    mean = max(1, int(stored) // max(1, int(group.num_rows)))
    return min(_BATCH_ROWS, max(1, _BATCH_BYTES // mean))


def _sizes(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    return np.asarray(pc.binary_length(texts), dtype=np.int64)


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
