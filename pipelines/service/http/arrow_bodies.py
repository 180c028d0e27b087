"""Arrow in bodies: streams of record batches as documents; nothing in them grows as it is read."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.formats.parquet import is_list

STREAM = "application/vnd.apache.arrow.stream"
_HEADER, _COMPRESSION, _HEADER_TYPE = 2, 3, 1  # fields of the tables of Message and RecordBatch
_RECORD_BATCH = 3
_ROWS = 1000  # that are objects at once
_PLAIN = (
    "the columns may be strings, numbers, dates and times, and lists of strings or numbers; send "
    "others as JSON"
)


def documents_of_stream(content: bytes) -> Iterator[object]:
    """Documents of an Arrow IPC stream: a row each.

    Compressed and shared buffers and dictionaries are refused, as a few bytes of them may be
    gigabytes; all else is as large as it came. Every array is checked before it is read.

    Raises
    ------
    Problem
        400: it is no such stream, 415 of columns of other types or of compressed ones.
    """
    try:
        _require_plain(content)
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            _require_types(reader.schema)
            for batch in reader:
                batch.validate(full=True)
                if batch.nbytes > len(content):
                    raise Problem(415, f"columns share their buffers; {_PLAIN}", "Content-Type")
                # a row of a byte is an object of hundreds
                for start in range(0, batch.num_rows, _ROWS):
                    for row in batch.slice(start, _ROWS).to_pylist():
                        yield {name: _value(value) for name, value in row.items()}
    except (
        pa.ArrowException,
        ArithmeticError,
        IndexError,
        OSError,
        ValueError,
        struct.error,
    ) as error:
        if isinstance(error, UnicodeDecodeError):
            raise Problem(400, "a text is not UTF-8; convert it") from error
        raise Problem(400, f"the body is no Arrow stream ({str(error)[:200]})") from error


def _require_types(schema: pa.Schema) -> None:
    for column in schema:
        kind = column.type
        if is_list(kind) and getattr(kind, "list_size", 1) > 0:
            kind = kind.value_type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        number = pa.types.is_integer(kind) or kind in (pa.float32(), pa.float64())
        if not (text or number or _is_time(kind)):
            raise Problem(415, f"column {column.name[:60]!r} is {kind}; {_PLAIN}", "Content-Type")


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _value(value: Any) -> Any:
    """A value as JSON says it."""
    if isinstance(value, list):
        return [_value(one) for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _require_plain(content: bytes) -> None:
    """Refuse a stream one of whose batches says that its buffers are compressed."""
    at = 0
    while at + 8 <= len(content):
        mark, size = struct.unpack_from("<II", content, at)
        if mark != 0xFFFFFFFF or not size:
            return  # an older form, or the end: what is wrong is told by who reads it
        head = content[at + 8 : at + 8 + size]
        message = _root(head)
        kind, body = _byte(head, message, _HEADER_TYPE), _long(head, message, 3)
        if kind == _RECORD_BATCH:
            batch = _table(head, message, _HEADER)
            if batch is not None and _field(head, batch, _COMPRESSION):
                raise Problem(
                    415,
                    "the record batches are compressed; send them plain, in a body of gzip",
                    "Content-Type",
                )
        elif kind not in (0, 1):
            raise Problem(415, f"the stream holds dictionaries; {_PLAIN}", "Content-Type")
        if body < 0:
            return
        at += 8 + size + body


def _root(data: bytes) -> int:
    return int(struct.unpack_from("<I", data, 0)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table of flatbuffers lies; 0 where it has its default."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    length = struct.unpack_from("<H", data, vtable)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", data, vtable + at)[0] if at < length else 0
    return table + offset if offset else 0


def _table(data: bytes, table: int, number: int) -> int | None:
    at = _field(data, table, number)
    return at + int(struct.unpack_from("<I", data, at)[0]) if at else None


def _byte(data: bytes, table: int, number: int) -> int:
    at = _field(data, table, number)
    return data[at] if at else 0


def _long(data: bytes, table: int, number: int) -> int:
    at = _field(data, table, number)
    return int(struct.unpack_from("<q", data, at)[0]) if at else 0
