"""CSV: records of fields under a header, the document one of them; blank lines are none.

Arrow's incremental reader reads 32 blocks ahead, takes no record longer than a block and does not
tell where one lies. So blocks of whole records are found here; Arrow's parser reads each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import (
    BYTE_ORDER_MARK,
    DEFAULT_LIMITS,
    START,
    Format,
    Position,
    ReadLimits,
    Source,
    decoded,
    place_of_column,
    refuse_long,
)
from streaming_moments.storage.formats.compressions import opened
from streaming_moments.storage.formats.csv_kernels import find_records
from streaming_moments.storage.formats.date_columns import bounds_of
from streaming_moments.storage.formats.text_chunks import TextPiece, in_chunks

_BLOCK_BYTES = 1 << 20
_HEADER_BYTES = 1 << 16
_COLUMNS = 4096
_RECORDS = 1 << 16


@dataclass(frozen=True)
class Csv(Format):
    """Fields between delimiters; one that holds a delimiter, a quote or a line's end is quoted.

    Parameters
    ----------
    name, suffixes, options
        As of any format.
    delimiter : str
        One character of ASCII.
    """

    name: str
    suffixes: tuple[str, ...]
    delimiter: str
    options: tuple[str, ...] = ("text_column",)

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.LargeStringArray, Position]]:
        return in_chunks(self._texts(source, limits, start), limits)

    def days(self, source: Source, column: str) -> Iterator[date]:
        for _, values in self._column(source, column, "--date-column", DEFAULT_LIMITS, START):
            given = values.filter(pc.not_equal(values, b""))
            yield from bounds_of(given.cast(pa.large_string()), column, source.url)

    def _texts(self, source: Source, limits: ReadLimits, start: Position) -> Iterator[TextPiece]:
        column = source.columns.text_column
        for records, values in self._column(source, column, "--text-column", limits, start):
            texts = values.view(pa.large_string())
            yield TextPiece(texts, records.place, records.after, source.url)

    def _column(
        self, source: Source, column: str, option: str, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[_Records, pa.LargeBinaryArray]]:
        """Values of a column from a position on, with the records they are of."""
        byte, longest = ord(self.delimiter), limits.document_bytes
        blocks = _blocks(source, byte, longest)
        first = next(blocks, None)
        if first is None:
            return
        names = self._names(first, source.url)
        number = place_of_column(names, column, option, source.url)
        if start == START:
            blocks = chain([replace(first, rows=first.rows[1:])], blocks)
        else:
            blocks = _blocks(source, byte, longest, start)
        for records in blocks:
            if records.rows.size:
                yield records, self._values(records, len(names), number, source.url)

    def _names(self, first: _Records, url: str) -> list[str]:
        content, place = first.content_of(first.rows[:1]), first.place(0)
        fields = first.found[first.rows[0], 2]
        if len(content) > _HEADER_BYTES or fields > _COLUMNS:
            raise ShardError(
                url,
                f"{place} has {fields} fields and {len(content)} bytes, a header {_COLUMNS} and "
                f"{_HEADER_BYTES} at most; write the names of the columns on the first line",
            )
        decoded(bytes(content), place, url)
        header = pa.BufferReader(bytes(content) + b"\n")
        reading = csv.ReadOptions(use_threads=False)
        names: list[str] = csv.read_csv(header, reading, self._parsing).column_names
        return names

    def _values(
        self, records: _Records, columns: int, number: int, url: str
    ) -> pa.LargeBinaryArray:
        fields = records.found[records.rows, 2]
        wrong = np.flatnonzero(fields != columns)
        if wrong.size:
            raise ShardError(
                url,
                f"{records.place(int(wrong[0]))} has {fields[wrong[0]]} fields, the header has "
                f"{columns}; put quotes around a field that holds a delimiter or a quote",
            )
        content, names = records.content_of(records.rows), [str(one) for one in range(columns)]
        column = names[number]
        table = csv.read_csv(
            pa.BufferReader(content),
            csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            self._parsing,
            csv.ConvertOptions(include_columns=[column], column_types={column: pa.large_binary()}),
        )
        if table.num_rows != records.rows.size:
            raise ShardError(
                url,
                f"{records.place(0)} begins {records.rows.size} records that are read as "
                f"{table.num_rows}; write the shard again, with quotes around its texts",
            )
        return table.column(0).combine_chunks()

    @property
    def _parsing(self) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)


@dataclass(frozen=True, eq=False)
class _Records:
    """Some consecutive records, as `find_records` gives them.

    Parameters
    ----------
    content : bytes
        Of the file.
    found : (records, 3) int64
        End, lines and fields of each.
    rows : (rows,) int64
        Which of them are wanted; blank lines are not.
    before : Position
        Where the first begins.
    compressed : bool
        Whether no position has an offset.
    """

    content: bytes
    found: NDArray[np.int64]
    rows: NDArray[np.int64]
    before: Position
    compressed: bool

    def content_of(self, rows: NDArray[np.int64]) -> memoryview:
        """From the first of some rows to the last."""
        begin = self.found[rows[0] - 1, 0] if rows[0] else 0
        return memoryview(self.content)[begin : self.found[rows[-1], 0]]

    def line(self, record: int) -> str:
        """Where a record begins, for errors."""
        lines = self.found[record - 1, 1] if record else 0
        return f"line {self.before.passed + lines + 1}"

    def place(self, row: int) -> str:
        """Where a row begins, for errors."""
        return self.line(int(self.rows[row]))

    def after(self, row: int) -> Position:
        """Position after a row."""
        end, lines, _ = self.found[self.rows[row]].tolist()
        offset = 0 if self.compressed else self.before.offset + end
        return Position(self.before.passed + lines, offset)


def _blocks(
    source: Source, delimiter: int, document_bytes: int, start: Position = START
) -> Iterator[_Records]:
    """Records after a position, some at a time, of which one at least is no blank line."""
    compressed, url = source.compressed, source.url
    before, rest = START if compressed else start, b""
    with opened(source.fs, source.path) as stream:
        if before.offset:
            stream.seek(before.offset)
        more, full = True, False
        while more or rest:
            if not full:
                block = stream.read(max(_BLOCK_BYTES, len(rest)))
                more = bool(block)
                # the last record need not end its line
                rest += block or b"\n" * bool(rest)
            if before == START and rest.startswith(BYTE_ORDER_MARK):
                before = Position(0, len(BYTE_ORDER_MARK))
                rest = rest[before.offset :]
            found = np.empty((_RECORDS, 3), dtype=np.int64)
            number, quoted = find_records(np.frombuffer(rest, dtype=np.uint8), delimiter, found)
            found, full = found[:number], number == _RECORDS
            end, lines = found[-1, :2].tolist() if number else (0, 0)
            if number and end == len(rest) and not more:
                found[-1, 0] -= 1
            rows = np.flatnonzero((found[:, 2] > 0) & (before.passed + found[:, 1] > start.passed))
            records = _Records(rest, found, rows, before, compressed)
            _require_sound(records, document_bytes, url)
            if rows.size:
                yield records
            before, rest = Position(before.passed + lines, before.offset + end), rest[end:]
            place = f"line {before.passed + 1}"
            if quoted and not more:
                raise ShardError(url, f"{place} has a quote that is not closed; close or double it")
            if not full:
                place += ", up to where its quotes close," if quoted else ""
                refuse_long(len(rest), place, url, document_bytes)


def _require_sound(records: _Records, document_bytes: int, url: str) -> None:
    ends = records.found[:, 0]
    sizes = np.diff(ends, prepend=0)
    if sizes.max(initial=0) > document_bytes:
        longest = int(np.argmax(sizes > document_bytes))
        refuse_long(int(sizes[longest]), records.line(longest), url, document_bytes)
    zero = records.content.find(b"\0", 0, ends[-1] if ends.size else 0)
    if zero >= 0:
        place = records.line(int(np.searchsorted(ends, zero, side="right")))
        raise ShardError(
            url, f"{place} holds a zero byte, which is no text; write the shard again as UTF-8"
        )
