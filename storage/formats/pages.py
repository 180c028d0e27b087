"""Pages of Parquet: read from their headers alone how much memory it takes to decode them.

A page is decoded as a whole. The metadata of a file has the sizes of row groups, not of pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow.parquet as pq

# Bytes to read first for a header, which has some tens of bytes, or more with statistics of texts.
_HEADER_BYTES = 1 << 12
_LONGEST_HEADER = 1 << 24
_DICTIONARY_PAGE = 2
# The header of a page identifies its fields by these numbers: the type of page, its size before and
# after compression, and the structs whose first field is the number of values.
_TYPE, _DECOMPRESSED, _STORED, _COUNTED = 1, 2, 3, (5, 7, 8)
# Types of Thrift's compact protocol.
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 6, 7, 8, 12
_DEEPEST = 4


@dataclass(frozen=True)
class Page:
    """One page of a column.

    is_dictionary : whether it holds the values that later pages refer to
    nbytes : decompressed size
    values : number of values, including nulls
    """

    is_dictionary: bool
    nbytes: int
    values: int


def pages_of(stored: IO[bytes], column: pq.ColumnChunkMetaData) -> Iterator[Page]:
    """Read the pages of a column of a row group in order, from their headers alone.

    Raises ValueError for an invalid header.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> content = io.BytesIO()
    >>> pq.write_table(pa.table({"text": ["law", "sea", "law"]}), content)
    >>> column = pq.ParquetFile(content).metadata.row_group(0).column(0)
    >>> [(page.is_dictionary, page.nbytes, page.values) for page in pages_of(content, column)]
    [(True, 14, 2), (False, 9, 3)]
    """
    starts = (column.dictionary_page_offset, column.data_page_offset)
    place = min(start for start in starts if start)
    end = place + column.total_compressed_size
    while place < end:
        stored.seek(place)
        header = _next_header(stored)
        parts = (part for part in map(header.fields.get, _COUNTED) if isinstance(part, dict))
        values = _count(next(parts, {}).get(1))
        decompressed = _count(header.fields.get(_DECOMPRESSED))
        compressed = _count(header.fields.get(_STORED))
        if min(values, decompressed, compressed) < 0:
            raise ValueError(f"there is no valid page header at byte {place}")
        yield Page(header.fields.get(_TYPE) == _DICTIONARY_PAGE, decompressed, values)
        place += header.nbytes + compressed


@dataclass(frozen=True)
class _Header:
    """Fields of a page header by number, and its size in bytes."""

    fields: dict[int, Any]
    nbytes: int


def _next_header(stored: IO[bytes]) -> _Header:
    content, wanted = b"", _HEADER_BYTES
    while len(content) < _LONGEST_HEADER:
        more = stored.read(wanted)
        content += more
        try:
            return _Header(*_struct(content, 0, _DEEPEST))
        except IndexError:
            if not more:
                break
            wanted = len(content)
    raise ValueError("a page header is truncated")


def _count(value: object) -> int:
    """Return a field that should be a number; -1 if it is not."""
    return value if type(value) is int else -1


def _struct(content: bytes, place: int, depth: int) -> tuple[dict[int, Any], int]:
    """Parse a struct of Thrift, and return its fields and the place after it.

    Raises IndexError if the content is too short.
    """
    fields: dict[int, Any] = {}
    number = 0
    while head := content[place]:
        place += 1
        kind, step = head & 15, head >> 4
        if step:
            number += step
        else:
            number, place = _integer(content, place)
        fields[number], place = _value(content, place, kind, depth)
    return fields, place + 1


def _value(content: bytes, place: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, place
    if kind == _STRUCT and depth:
        return _struct(content, place, depth - 1)
    if _BYTE < kind <= _I64:
        return _integer(content, place)
    if kind == _BINARY:
        size, place = _varint(content, place)
    elif kind in (_BYTE, _DOUBLE):
        size = 1 if kind == _BYTE else 8
    else:
        raise ValueError(f"a page header holds a field of unknown type {kind}")
    if place + size > len(content):
        raise IndexError
    return content[place : place + size], place + size


def _integer(content: bytes, place: int) -> tuple[int, int]:
    value, place = _varint(content, place)
    return value >> 1 ^ -(value & 1), place


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("a page header holds a number of more than 64 bits")
