"""Arrow bodies: read documents from streams of record batches; refuse streams that would expand."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.storage.formats.parquet import is_list

STREAM = "application/vnd.apache.arrow.stream"
# Numbers by which the flatbuffers format of Arrow identifies fields and types of headers.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3  # fields of the table Message
_ENDIANNESS, _COMPRESSION = 0, 3  # fields of the tables Schema and RecordBatch
_SCHEMA, _DICTIONARY, _RECORD_BATCH = 1, 2, 3  # types of the header of a Message
# key of the metadata by which Arrow 0.15 to 0.17 mark compressed batches
_EXPERIMENTAL = b"ARROW:experimental_compression"
_CONTINUATION = 0xFFFFFFFF
_ROWS = 1000  # convert this many rows to Python objects at a time
_FILE = b"ARROW1\0\0"  # first bytes of an Arrow IPC file
_PLAIN = (
    "the columns may be strings, numbers, dates and times, and lists of strings or numbers; send "
    "others as JSON"
)


def documents_of_stream(content: bytes) -> Iterator[object]:
    """Yield the documents of an Arrow IPC stream, one for each row.

    Refuses compressed buffers, shared buffers and dictionaries, because a few bytes of them may
    expand to gigabytes. Everything else takes as much memory as the request. Each array is checked
    before it is read. Raises a Problem 400 for content that is not an Arrow stream, and 415 for
    compression or for columns of other types.
    """
    if content.startswith(_FILE):
        raise Problem(
            400, "the body is an Arrow file; send a stream, as pyarrow.ipc.new_stream writes it"
        )
    try:
        messages = _messages(content)
        schema = pa.ipc.read_schema(next(messages))
        _require_types(schema)
        for message in messages:
            batch = pa.ipc.read_record_batch(message, schema)
            batch.validate(full=True)
            if batch.nbytes > len(content):
                raise Problem(
                    415,
                    f"several columns share a buffer, so they could exceed the memory; {_PLAIN}",
                    "Content-Type",
                )
            # convert few rows at a time: one byte can become a Python object of hundreds of bytes
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
        # do not quote the error of `struct`, because it names a Python function, not the reason
        why = "it is cut off or damaged" if isinstance(error, struct.error) else str(error)[:200]
        raise Problem(
            400, f"the body is not an Arrow stream ({why}); write it by pyarrow.ipc.new_stream"
        ) from error


def _require_types(schema: pa.Schema) -> None:
    twice = [name for name, times in Counter(schema.names).items() if times > 1]
    if twice:
        raise Problem(400, f"column {twice[0][:60]!r} appears twice; name each column once")
    for column in schema:
        kind = column.type
        if is_list(kind) and getattr(kind, "list_size", None) != 0:
            kind = kind.value_type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        number = pa.types.is_integer(kind) or kind in (pa.float32(), pa.float64())
        if not (text or number or _is_time(kind)):
            raise Problem(415, f"column {column.name[:60]!r} is {kind}; {_PLAIN}", "Content-Type")


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _value(value: Any) -> Any:
    """Convert a value for JSON: dates and times become ISO 8601 texts."""
    if isinstance(value, list):
        return [_value(one) for one in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _messages(content: bytes) -> Iterator[pa.Buffer]:
    """Yield the messages of a stream one by one: first its schema, then its record batches.

    Checks the metadata of each message first, because reading a compressed batch would decompress
    it. Yields each message alone, so that Arrow reads none that was not checked. Raises a Problem
    415 for compressed batches, dictionaries and big-endian numbers, and 400 for content after the
    end of the stream. A damaged or truncated stream raises ValueError, IndexError or struct.error.
    """
    at, whole = 0, pa.py_buffer(content)
    while at < len(content):
        (size,) = struct.unpack_from("<I", content, at)
        start = at + 4
        if size == _CONTINUATION:  # skip this mark, which streams from before Arrow 0.15 lack
            (size,) = struct.unpack_from("<I", content, start)
            start += 4
        if size == 0:
            if content[start:].strip(b"\0"):
                raise Problem(
                    400, "the body continues after the end of the stream; send one stream only"
                )
            return
        head = content[start : start + size]
        length = _long(head, _root(head), _BODY_LENGTH)
        stop = start + size + length
        if length < 0 or len(head) < size or stop > len(content):
            raise ValueError("it ends in the middle of a message")
        _require_plain(head, first=at == 0)
        yield whole.slice(at, stop - at)
        at = stop
    if at == 0:
        raise ValueError("it is empty")


def _require_plain(head: bytes, first: bool) -> None:
    """Refuse a message if its metadata show that its body would expand when it is read."""
    message = _root(head)
    kind, table = _byte(head, message, _HEADER_TYPE), _table(head, message, _HEADER)
    if kind == _DICTIONARY:
        raise Problem(415, f"the stream holds dictionaries; {_PLAIN}", "Content-Type")
    if table is None or kind != (_SCHEMA if first else _RECORD_BATCH):
        raise ValueError("a message of the stream is neither a schema nor a record batch")
    if first:
        if _byte(head, table, _ENDIANNESS):
            raise Problem(415, "the numbers are big-endian; send little-endian", "Content-Type")
    elif _field(head, table, _COMPRESSION) or _EXPERIMENTAL in head:
        raise Problem(
            415,
            "the record batches are compressed; send them uncompressed, and compress the body "
            "with gzip",
            "Content-Type",
        )


def _root(data: bytes) -> int:
    return int(struct.unpack_from("<I", data, 0)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Return the position of a field in a table of flatbuffers; 0 if the field is not stored."""
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
