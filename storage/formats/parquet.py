"""Parquet: reads columns of a file in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.printing.remedies import remedy
from streaming_moments.storage.files.filesystems import one_line
from streaming_moments.storage.formats import id_chunks, text_chunks
from streaming_moments.storage.formats.base import (
    DEFAULT_LIMITS,
    START,
    Columns,
    Format,
    Holds,
    Position,
    ReadLimits,
    Source,
    place_of_column,
    table_chunks,
)
from streaming_moments.storage.formats.columns.categories import of_categories
from streaming_moments.storage.formats.columns.dates import bounds_of
from streaming_moments.storage.formats.columns.ids import names_of
from streaming_moments.storage.formats.pages import pages_of

_BLOCK_BYTES = 1 << 20
_BATCH_ROWS = 256
_BATCH_BYTES = 4 << 20
# Rows read at a time if the columns hold only numbers, which take 8 bytes each in every encoding.
_NUMBER_ROWS = 1 << 15
_NUMBERS = frozenset({"BOOLEAN", "INT32", "INT64", "FLOAT", "DOUBLE"})
_LARGEST_ID = (1 << 63) - 1
_ID_BYTES = 8
_TAIL_BYTES = 8  # bytes after the footer: its length, and the magic number
# A footer takes 16 times its size in memory once it is parsed, and a row group takes up to 3 times
# the size that its limit allows (measured). So 16 / 3 times the size of a footer, rounded up, is
# compared with the limit of a row group.
_FOOTER_FACTOR = 6
_LEAST_FOOTER = 4 << 20
_DATE_ROWS = 65_536


class Parquet(Format):
    """Columns of texts, of categories, or of lists of token ids with optional counts."""

    name = "parquet"
    suffixes = (".parquet", ".pq")
    options = ("text_column", "ids_column", "counts_column", "categories")

    def holds(self, columns: Columns) -> Holds:
        if columns.categories:
            return "categories"
        return "texts" if columns.ids_column is None else "ids"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.LargeStringArray | id_chunks.IdChunk | pa.Table, Position]]:
        """Read documents from a position on; a null is an empty document."""
        holds = self.holds(source.columns)
        if holds == "ids":
            return id_chunks.in_chunks(_ids(source, limits, start), limits)
        if holds == "categories":
            names = source.columns.categories
            return of_categories(self.tables(source, names, limits, start), source.url)
        return text_chunks.in_chunks(_texts(source, limits, start), limits)

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        named = dict.fromkeys(columns)
        asked = [ParquetColumn(name, "create.columns", None, source.even) for name in named]
        read = read_columns(source, asked, limits.decoded_bytes, start)
        tables = (
            (pa.Table.from_batches([batch]), Position(passed + batch.num_rows))
            for passed, batch in read
        )
        return table_chunks(tables, limits)

    def days(self, source: Source, column: str, zones: bool = True) -> Iterator[date]:
        with source.fs.open(source.path, "rb") as stored:
            _refuse_large_footer(stored, DEFAULT_LIMITS.decoded_bytes, source.url)
            file = pq.ParquetFile(stored)
            names = file.schema_arrow.names
            place_of_column(names, column, "create.date_column", source.url)
            for batch in file.iter_batches(_DATE_ROWS, columns=[column], use_threads=False):
                yield from bounds_of(batch.column(0), column, source.url, zones)

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        if column is None:
            return None
        found = read_columns(source, [_IdColumn(column)], limits.decoded_bytes)
        return (names_of(batch.column(0), column, source.url) for _, batch in found)

    def share_before(self, source: Source, place: Position) -> float:
        """Return the share of a shard's rows that are before a place in it."""
        with source.fs.open(source.path, "rb") as stored:
            return place.passed / max(int(pq.ParquetFile(stored).metadata.num_rows), 1)


@dataclass(frozen=True)
class ParquetColumn:
    """A column to read, and the command line option that chose it, for errors.

    of_lists : True for lists of integers, False for texts, None for any values or lists of them
    even : whether its lists, if it holds any, are vectors of about equal length
    """

    name: str
    option: str
    of_lists: bool | None
    even: bool = False

    @property
    def expected(self) -> str:
        """The required type in words."""
        return "a list of integers" if self.of_lists else "string"

    def takes(self, kind: pa.DataType) -> bool:
        """Whether the column may have a type.

        Examples
        --------
        >>> ParquetColumn("ids", "create.ids_column", True).takes(pa.list_(pa.float64()))
        False
        """
        if self.of_lists is None:
            return True
        if self.of_lists:
            return is_list(kind) and bool(pa.types.is_integer(kind.value_type))
        held = kind.value_type if pa.types.is_dictionary(kind) else kind
        strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return any(of(held) for of in strings)


@dataclass(frozen=True)
class _IdColumn(ParquetColumn):
    """A column with the names of documents."""

    option: str = "transform.id_column"
    of_lists: bool = False

    @property
    def expected(self) -> str:
        return "texts or whole numbers"

    def takes(self, kind: pa.DataType) -> bool:
        return super().takes(kind) or bool(pa.types.is_integer(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is a list type."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(of(kind) for of in lists)


def read_columns(
    source: Source, columns: Sequence[ParquetColumn], row_group_bytes: int, start: Position = START
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Read rows from a position on, in small batches, each with the number of rows before it.

    Row groups before the position are skipped. Raises ShardError also if decoding a row group
    or the footer takes more than `row_group_bytes`.
    """
    url = source.url
    with source.fs.open(source.path, "rb") as stored:
        _refuse_large_footer(stored, row_group_bytes, url)
        try:
            file = pq.ParquetFile(stored, buffer_size=_BLOCK_BYTES)
        except pa.ArrowInvalid as error:
            raise ShardError(
                url,
                f"is not Parquet, or is truncated ({one_line(error)})",
                "write it again, or give its real format to {create.format}",
            ) from error
        columns = [_required_column(file.schema_arrow, column, url) for column in columns]
        names, passed = [column.name for column in columns], 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            if passed + group.num_rows <= start.passed:
                passed += group.num_rows
                continue
            place = f"row group {number + 1}"
            rows = _rows_at_a_time(stored, group, columns, row_group_bytes, place, url)
            for batch in file.iter_batches(rows, [number], names, use_threads=False):
                _require_even(batch, columns, row_group_bytes, place, url)
                before = max(0, start.passed - passed)
                if before < batch.num_rows:
                    yield passed + before, batch[before:]
                passed += batch.num_rows


def _refuse_large_footer(stored: IO[bytes], limit: int, url: str) -> None:
    """Raise ShardError if the footer takes more memory than the limit of a row group allows.

    This function accepts a file without a footer; the reader of Parquet reports it.
    """
    end = stored.seek(0, os.SEEK_END)
    stored.seek(max(0, end - _TAIL_BYTES))
    stored_bytes = int.from_bytes(stored.read(_TAIL_BYTES)[:4], "little")
    stored.seek(0)
    if stored_bytes < end:
        nbytes, fewer = _FOOTER_FACTOR * stored_bytes, "fewer columns, or larger row groups"
        _refuse_large(nbytes, "the footer takes", max(limit, _LEAST_FOOTER), url, fewer)


def _texts(source: Source, limits: ReadLimits, start: Position) -> Iterator[text_chunks.TextPiece]:
    # the texts of the pieces may be invalid UTF-8, as readers of Parquet do not check them
    columns = [ParquetColumn(source.columns.text_column, "create.text_column", False)]
    for passed, batch in read_columns(source, columns, limits.decoded_bytes, start):
        texts = pc.fill_null(batch.column(0).cast(pa.large_string()), "")
        yield text_chunks.TextPiece(texts, _row(passed), _after(passed), source.url)


def _row(passed: int) -> Callable[[int], str]:
    return lambda number: f"row {passed + number + 1}"


def _after(passed: int) -> Callable[[int], Position]:
    return lambda number: Position(passed + number + 1)


def _ids(
    source: Source, limits: ReadLimits, start: Position
) -> Iterator[tuple[id_chunks.IdChunk, NDArray[np.int64], Position]]:
    columns = [ParquetColumn(str(source.columns.ids_column), "create.ids_column", True)]
    if source.columns.counts_column is not None:
        columns.append(ParquetColumn(source.columns.counts_column, "create.counts_column", True))
    for passed, batch in read_columns(source, columns, limits.decoded_bytes, start):
        lists = [lists_of(batch.column(c.name), c.name, source.url) for c in columns]
        sizes = _ID_BYTES * np.sum([np.diff(offsets) for offsets, _ in lists], axis=0)
        id_chunks.require_sound(lists, sizes, passed, source.url, limits.document_bytes)
        counts = lists[1][1] if len(lists) > 1 else None
        chunk = id_chunks.IdChunk(*lists[0], counts)
        yield id_chunks.without_zeros(chunk), sizes, Position(passed)


def lists_of(column: pa.Array, name: str, url: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Convert a column of lists to `(rows + 1,)` int64 offsets and int64 numbers.

    A null is an empty list. Raises ShardError for a null within a list, or a number beyond int64.

    Examples
    --------
    >>> lists_of(pa.array([[3, 4], None]), "ids", "/corpus/a.parquet")
    (array([0, 2, 2]), array([3, 4]))
    """
    values = column.flatten()
    if values.null_count:
        raise ShardError(
            url, f"column {name!r} has a null within a list; correct or delete the row"
        )
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    if pa.types.is_uint64(values.type) and len(values):
        largest = pc.max(values).as_py()
        if largest > _LARGEST_ID:
            raise ShardError(
                url,
                f"column {name!r} has {largest}, beyond int64; ids and counts must be at most "
                f"{_LARGEST_ID}",
            )
    numbers = values.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), numbers


def _rows_at_a_time(
    stored: IO[bytes],
    group: pq.RowGroupMetaData,
    columns: Sequence[ParquetColumn],
    limit: int,
    place: str,
    url: str,
) -> int:
    """Return how many rows to read at a time, so that they decode to about `_BATCH_BYTES`.

    The number is estimated from mean sizes in the row group.
    """
    # leave room below the limit, because decoded lists also have offsets and marks of nulls
    most = min(_BATCH_BYTES, limit // 4)
    asked = {column.name: column for column in columns}
    numbers, rows = True, _NUMBER_ROWS
    for index in range(group.num_columns):
        chunk = group.column(index)
        path = chunk.path_in_schema
        name = path if path in asked else path.split(".")[0]
        if name not in asked or not group.num_rows:
            continue
        numbers &= chunk.physical_type in _NUMBERS and not asked[name].of_lists
        where = f"{place}, column {name!r}"
        if asked[name].of_lists:
            # Stored sizes show little: repeated ids are compressed to almost nothing, and one row
            # may take as much memory as a row group. So use the size in memory.
            size = max(chunk.total_uncompressed_size, _ID_BYTES * chunk.num_values)
            rows_at_once = group.num_rows if asked[name].even else 1
            _refuse_large(size // rows_at_once, f"{where} takes", limit, url)
            fitting = most * group.num_rows // max(1, size)
        else:
            fitting = _fitting_texts(stored, chunk, group.num_rows, limit, where, url)
        rows = min(rows, fitting)
    alike = most // (_ID_BYTES * len(columns)) if numbers else _BATCH_ROWS
    return max(1, min(rows, max(alike, _BATCH_ROWS)))


def _require_even(
    batch: pa.RecordBatch, columns: Sequence[ParquetColumn], limit: int, place: str, url: str
) -> None:
    """Raise ShardError for lists much longer than the mean of their row group.

    The number of rows of a batch is set by the mean, so longer lists would take too much memory.
    """
    for column in columns:
        if column.even:
            rows = f"{place}, column {column.name!r} has rows that take"
            _refuse_large(batch[column.name].nbytes, rows, limit, url, "lists of one length")


def _fitting_texts(
    stored: IO[bytes], chunk: pq.ColumnChunkMetaData, rows: int, limit: int, where: str, url: str
) -> int:
    """Return how many texts to decode at a time, so that pages and texts are within the limit."""
    largest = int(chunk.total_uncompressed_size)
    whole = largest <= limit
    try:
        # only the first page can be a dictionary; the other pages matter only if the column exceeds
        # the limit
        pages = list(islice(pages_of(stored, chunk), 1 if whole else None))
    except ValueError as error:
        raise ShardError(url, f"{where} cannot be read ({error}); write the file again") from error
    means = [largest // rows]
    if not whole:
        largest = max((page.nbytes for page in pages), default=0)
        means = [page.nbytes // max(1, page.values) for page in pages if not page.is_dictionary]
        _refuse_large(largest, f"{where} has pages of up to", limit, url)
    fitting = _BATCH_BYTES // max(1, *means)
    if chunk.physical_type in _NUMBERS:
        return _NUMBER_ROWS
    # Each text may repeat the largest entry of a dictionary, or the text before it. Such a text
    # takes almost no bytes of its page, but is decoded to its full size.
    repeated = max((page.nbytes for page in pages if page.is_dictionary), default=0)
    if "DELTA_BYTE_ARRAY" in chunk.encodings:
        repeated = largest
    return min(fitting, limit // max(1, repeated))


def _refuse_large(
    nbytes: int, takes: str, limit: int, url: str, fewer: str = "smaller row groups"
) -> None:
    if nbytes > limit:
        raise ShardError(
            url,
            f"{takes} {nbytes} bytes, which are decoded together, above the limit of {limit}",
            remedy(
                "write the file again with {fewer}, or raise {option.max_row_group_bytes}",
                fewer=fewer,
            ),
        )


def _required_column(schema: pa.Schema, column: ParquetColumn, url: str) -> ParquetColumn:
    """Set `of_lists` and `even` of a column by its type; ShardError if it cannot have this type."""
    kind = schema.field(place_of_column(schema.names, column.name, column.option, url)).type
    if not column.takes(kind):
        raise ShardError(
            url,
            f"column {column.name!r} is of type {kind}, expected {column.expected}",
            remedy("choose another with {" + column.option + "}"),
        )
    if column.of_lists is not None:
        return column
    lists = is_list(kind)
    even = lists and (column.even or pa.types.is_fixed_size_list(kind))
    return replace(column, of_lists=lists, even=bool(even))
