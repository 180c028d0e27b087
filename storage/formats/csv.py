"""CSV: a header, then records, each with the document in one field; blank lines are skipped.

Arrow's incremental reader reads 32 blocks ahead, accepts no record longer than a block, and does
not return the place of a record. Therefore this module finds blocks of whole records, and Arrow's
parser reads each block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats import csv_kernels as kernels
from streaming_moments.storage.formats.base import (
    BYTE_ORDER_MARK,
    DEFAULT_LIMITS,
    START,
    Columns,
    Format,
    Holds,
    Position,
    ReadLimits,
    Source,
    decoded,
    place_of_column,
    refuse_long,
    table_chunks,
)
from streaming_moments.storage.formats.columns.dates import bounds_of
from streaming_moments.storage.formats.columns.ids import names_of
from streaming_moments.storage.formats.compressions import opened
from streaming_moments.storage.formats.text_chunks import TextPiece, in_chunks, sound_sizes

_BLOCK_BYTES = 1 << 20
_HEADER_BYTES = 1 << 16
_COLUMNS = 4096
_RECORDS = 1 << 16


@dataclass(frozen=True)
class Csv(Format):
    """Fields between delimiters. A field with a delimiter, a quote or a line end is quoted.

    The delimiter is one ASCII character.
    """

    name: str
    suffixes: tuple[str, ...]
    delimiter: str
    options: tuple[str, ...] = ("text_column", "categories")
    grows: bool = True

    def holds(self, columns: Columns) -> Holds:
        return "categories" if columns.categories else "texts"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.LargeStringArray | pa.Table, Position]]:
        if self.holds(source.columns) == "categories":
            return self.tables(source, source.columns.categories, limits, start)
        return in_chunks(self._texts(source, limits, start), limits)

    def days(self, source: Source, column: str, zones: bool = True) -> Iterator[date]:
        option = "create.date_column"
        for _, values in self._column(source, column, option, DEFAULT_LIMITS, START):
            given = values.filter(pc.not_equal(values, b""))
            yield from bounds_of(given.cast(pa.large_string()), column, source.url, zones)

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        if column is None:
            return None
        found = self._column(source, column, "transform.id_column", limits, START)
        return (names_of(values, column, source.url) for _, values in found)

    def whole_bytes(self, stream: IO[bytes]) -> int:
        found = np.empty((_RECORDS, 5), dtype=np.int64)
        rest, end = b"", 0
        while block := stream.read(max(_BLOCK_BYTES, len(rest))):
            rest += block
            while True:
                content = np.frombuffer(rest, dtype=np.uint8)
                number, used, *_ = kernels.find_records(content, ord(self.delimiter), found)
                end, rest = end + used, rest[used:]
                if number < _RECORDS:
                    break
        return end

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        return table_chunks(self._tables(source, columns, limits, start), limits)

    def _tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        for records, found in self._columns(source, columns, "create.columns", limits, start):
            texts = [one.view(pa.large_string()) for one in found.values()]
            for own in texts:
                sound_sizes(
                    TextPiece(own, records.place, records.after, source.url),
                    len(records.content) + 1,
                )
            yield pa.table(texts, list(found)), records.after(len(records.found) - 1)

    def _texts(self, source: Source, limits: ReadLimits, start: Position) -> Iterator[TextPiece]:
        column = source.columns.text_column
        for records, values in self._column(source, column, "create.text_column", limits, start):
            # a piece needs only the places of its records: drop their content to save memory
            light = replace(records, content=b"")
            yield TextPiece(values.view(pa.large_string()), light.place, light.after, source.url)

    def _column(
        self, source: Source, column: str, option: str, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[_Records, pa.LargeBinaryArray]]:
        """Read the values of a column from a position on; each array comes with its records."""
        for records, found in self._columns(source, [column], option, limits, start):
            yield records, found[column]

    def _columns(
        self,
        source: Source,
        columns: Sequence[str],
        option: str,
        limits: ReadLimits,
        start: Position,
    ) -> Iterator[tuple[_Records, dict[str, pa.LargeBinaryArray]]]:
        """Read the values of some columns by name; each block of values comes with its records."""
        byte, longest = ord(self.delimiter), limits.document_bytes
        headed = source if source.whole is None else replace(source, fs=source.whole)
        blocks = _blocks(headed, byte, longest)
        first = next(blocks, None)
        if first is None:
            return
        names = self._names(first, source.url)
        asked = dict.fromkeys(columns)
        numbers = {one: place_of_column(names, one, option, source.url) for one in asked}
        if start == START and source.whole is None:
            blocks = chain([replace(first, found=first.found[1:])], blocks)
        else:
            blocks = _blocks(source, byte, longest, start)
        for records in blocks:
            if len(records.found):
                yield records, self._values(records, len(names), numbers, source.url)

    def _names(self, first: _Records, url: str) -> list[str]:
        content, place, fields = first.record(0), first.place(0), first.found[0, kernels.FIELDS]
        if len(content) > _HEADER_BYTES or fields > _COLUMNS:
            raise ShardError(
                url,
                f"{place} has {fields} fields and {len(content)} bytes, and a header has at most "
                f"{_COLUMNS} fields and {_HEADER_BYTES} bytes; write the names of the columns on "
                "the first line",
            )
        decoded(content, place, url)
        header = pa.BufferReader(content + b"\n")
        reading = csv.ReadOptions(use_threads=False)
        names: list[str] = csv.read_csv(header, reading, self._parsing).column_names
        return names

    def _values(
        self, records: _Records, columns: int, numbers: Mapping[str, int], url: str
    ) -> dict[str, pa.LargeBinaryArray]:
        fields = records.found[:, kernels.FIELDS]
        wrong = np.flatnonzero(fields != columns)
        if wrong.size:
            raise ShardError(
                url,
                f"{records.place(int(wrong[0]))} has {fields[wrong[0]]} fields, and the header has "
                f"{columns}; put quotes around a field that holds a delimiter or a quote",
            )
        content, names = records.content, [str(one) for one in range(columns)]
        wanted = [names[number] for number in numbers.values()]
        table = csv.read_csv(
            pa.BufferReader(
                memoryview(content)[
                    records.found[0, kernels.BEGIN] : records.found[-1, kernels.END]
                ]
            ),
            csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
            self._parsing,
            csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pa.large_binary())
            ),
        )
        if table.num_rows != len(fields):
            raise ShardError(
                url,
                f"{len(fields)} records begin at {records.place(0)}, but Arrow's parser finds "
                f"{table.num_rows}; write the shard again, with quotes around its texts",
            )
        return {
            column: table.column(place).combine_chunks() for place, column in enumerate(numbers)
        }

    @property
    def _parsing(self) -> csv.ParseOptions:
        return csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)


@dataclass(frozen=True, eq=False)
class _Records:
    """Consecutive records in a block of a CSV file, at the places that `find_records` found.

    `before` is the position at the start of the block. In a compressed file, positions have no
    offset.
    """

    content: bytes
    found: NDArray[np.int64]
    before: Position
    compressed: bool

    def record(self, number: int) -> bytes:
        begin, end = self.found[number, [kernels.BEGIN, kernels.END]]
        return self.content[begin:end]

    def place(self, number: int) -> str:
        """Return the line where a record begins, for errors."""
        return f"line {self.before.passed + self.found[number, kernels.LINE] + 1}"

    def after(self, number: int) -> Position:
        """Return the position after a record."""
        _, end, _, lines, _ = self.found[number].tolist()
        offset = 0 if self.compressed else self.before.offset + end
        return Position(self.before.passed + lines, offset)


def _blocks(
    source: Source, delimiter: int, document_bytes: int, start: Position = START
) -> Iterator[_Records]:
    """Yield the records after a position, one or more at a time."""
    compressed, url = source.compressed, source.url
    before, rest = START if compressed else start, b""
    found = np.empty((_RECORDS, 5), dtype=np.int64)
    with opened(source.fs, source.path) as stream:
        if before.offset:
            stream.seek(before.offset)
        more, number = True, 0
        while more or rest:
            if number < _RECORDS:
                room = min(len(rest), document_bytes - len(rest))
                block = stream.read(max(_BLOCK_BYTES, room))
                more = bool(block)
                # add the end of line that the last record may lack
                rest += block or b"\n" * bool(rest)
            if before == START and rest.startswith(BYTE_ORDER_MARK):
                before = Position(0, len(BYTE_ORDER_MARK))
                rest = rest[before.offset :]
            content = np.frombuffer(rest, dtype=np.uint8)
            number, end, lines, quoted = kernels.find_records(content, delimiter, found)
            if number and not more and found[number - 1, kernels.END] == len(rest):
                found[number - 1, kernels.END] -= 1
            wanted = found[:number][before.passed + found[:number, kernels.LINES] > start.passed]
            if len(wanted):
                records = _Records(rest, wanted, before, compressed)
                _require_sound(records, document_bytes, url)
                yield records
            before, rest = Position(before.passed + lines, before.offset + end), rest[end:]
            if number == _RECORDS:
                continue
            place = f"line {before.passed + 1}"
            if quoted and not more:
                raise ShardError(
                    url, f"{place} has a quote that is not closed; close it or double it"
                )
            place += ", up to where its quotes close," if quoted else ""
            refuse_long(len(rest), place, url, document_bytes)


def _require_sound(records: _Records, document_bytes: int, url: str) -> None:
    begins, ends = records.found[:, kernels.BEGIN], records.found[:, kernels.END]
    longest = int(np.argmax(ends - begins > document_bytes))
    refuse_long(int(ends[longest] - begins[longest]), records.place(longest), url, document_bytes)
    zero = records.content.find(b"\0", begins[0], ends[-1])
    if zero >= 0:
        place = records.place(int(np.searchsorted(ends, zero, side="right")))
        raise ShardError(
            url, f"{place} holds a zero byte, which is not text; write the shard again as UTF-8"
        )
