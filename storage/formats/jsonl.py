"""JSON Lines: an object on each line, with the document in one or several of its fields.

Token ids are a list in a field, optionally with their counts in another. Blank lines are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import (
    DEFAULT_LIMITS,
    START,
    Columns,
    Format,
    Holds,
    Position,
    ReadLimits,
    Source,
    decoded,
    table_chunks,
)
from streaming_moments.storage.formats.columns.dates import day_of
from streaming_moments.storage.formats.cutting import bounded
from streaming_moments.storage.formats.id_chunks import (
    IdChunk,
    IdDocument,
    join_ids,
    require_counts,
    without_zeros,
)
from streaming_moments.storage.formats.lines import read_lines
from streaming_moments.storage.formats.text_chunks import encoded_in_chunks

_IDS = 4096
_PIECE_BYTES = 1 << 20  # bytes of lines that are converted to Python values at a time


class JsonLines(Format):
    """One JSON object on each line."""

    name = "jsonl"
    suffixes = (".jsonl", ".ndjson")
    options = ("text_column", "ids_column", "counts_column", "categories")
    grows = True

    def holds(self, columns: Columns) -> Holds:
        if columns.ids_column is not None:
            return "ids"
        return "categories" if columns.categories else "texts"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Array | pa.Table | IdChunk, Position]]:
        held = self.holds(source.columns)
        if held == "ids":
            documents = _id_documents(source, limits.document_bytes, start)
            chunks = bounded(documents, limits)
            return ((without_zeros(join_ids(chunk)), after) for chunk, after in chunks)
        if held == "categories":
            return self.tables(source, source.columns.categories, limits, start)
        return encoded_in_chunks(_texts(source, limits.document_bytes, start), limits)

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        return table_chunks(_tables(source, columns, limits, start), limits)

    def days(self, source: Source, column: str, zones: bool = True) -> Iterator[date]:
        # ignore `zones`: for JSON Lines, all versions of the package have used the day in UTC
        for after, _, record in _records(source, DEFAULT_LIMITS.document_bytes, START):
            value = record.get(column) if isinstance(record, dict) else None
            if value is None:
                continue
            try:
                yield day_of(value)
            except (TypeError, ValueError) as error:
                raise ShardError(
                    source.url,
                    f"line {after.passed}: field {column!r} does not begin with a date ({error}); "
                    "give a date such as 2026-11-21",
                ) from error

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        return None if column is None else _ids(source, column, limits.document_bytes)


def _ids(source: Source, field: str, document_bytes: int) -> Iterator[pa.Array]:
    records = _records(source, document_bytes, START)
    while some := list(islice(records, _IDS)):
        yield pa.array(
            [_id_of(after, record, field, source.url) for after, _, record in some], pa.string()
        )


def _id_of(after: Position, record: Any, field: str, url: str) -> str | None:
    place = f"line {after.passed}"
    if not isinstance(record, dict) or field not in record:
        raise ShardError(
            url,
            f"{place} has no field {field!r}",
            "choose another with {transform.id_column}",
        )
    value = record[field]
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        kind = type(value).__name__
        raise ShardError(
            url, f"{place}: field {field!r} is {kind}, expected a string or a whole number"
        )
    # write ? for half of a surrogate pair, which is not a character
    return None if value is None else str(value).encode(errors="replace").decode()


def _records(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[Position, bytes, Any]]:
    for after, line in read_lines(source, document_bytes, start):
        if not line.strip():
            continue
        place = f"line {after.passed}"
        try:
            record = json.loads(decoded(line, place, source.url))
        except json.JSONDecodeError as error:
            # leave out the error's line number: it is always 1, as each line is parsed alone
            reason = f"{error.msg.removesuffix(' starting at')} at column {error.colno}"
            raise ShardError(
                source.url, f"{place} is not JSON ({reason}); correct or delete it"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ShardError(
                source.url, f"{place} is not JSON ({error}); correct or delete it"
            ) from error
        yield after, line, record


def _id_documents(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[IdDocument, int, Position]]:
    columns, url = source.columns, source.url
    for after, _, record in _records(source, document_bytes, start):
        place = f"line {after.passed}"
        ids = _whole_numbers(record, str(columns.ids_column), place, url)
        counts = None
        if columns.counts_column is not None:
            counts = _whole_numbers(record, columns.counts_column, place, url)
            if counts.size != ids.size:
                raise ShardError(
                    url, f"{place} does not have one count for each id; correct or delete it"
                )
        require_counts(ids, counts, place, url)
        yield (ids, counts), ids.nbytes * (1 if counts is None else 2), after


def _whole_numbers(record: Any, field: str, place: str, url: str) -> NDArray[np.int64]:
    value = record.get(field) if isinstance(record, dict) else None
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise ShardError(
            url,
            f"{place} has no list of whole numbers in a field {field!r}",
            "name the field with {create.ids_column}, and the field of its counts with "
            "{create.counts_column}",
        )
    try:
        return np.array(value, dtype=np.int64)
    except OverflowError as error:
        raise ShardError(
            url, f"{place}: field {field!r} has a number of more than 64 bits; correct or delete it"
        ) from error


def _tables(
    source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
) -> Iterator[tuple[pa.Table, Position]]:
    """Read fields of the records as texts or lists of texts; null means missing."""
    held: list[list[Any]] = [[] for _ in columns]
    kinds: dict[str, bool] = {}  # for each field, whether its first value is a list
    size, after = 0, start
    for after, line, record in _records(source, limits.document_bytes, start):
        place = f"line {after.passed}"
        if not isinstance(record, dict):
            raise ShardError(
                source.url,
                f"{place} is not a JSON object; write an object with the named fields on each line",
            )
        if b"\\u" in line:
            _refuse_surrogates(json.dumps(record, ensure_ascii=False), place, source.url)
        for own, name in zip(held, columns, strict=True):
            if name not in record:
                raise ShardError(
                    source.url,
                    f"{place} has no field {name!r}; its fields are {sorted(record)}; choose "
                    "others, or write null for a missing value",
                )
            value = _value(record[name], name, place, source.url)
            of_lists = isinstance(value, list)
            if value is not None and kinds.setdefault(name, of_lists) != of_lists:
                raise ShardError(
                    source.url,
                    f"field {name!r} holds both lists and single values before line "
                    f"{after.passed + 1}; write all as lists",
                )
            own.append(value)
        size += len(line)
        if size >= _PIECE_BYTES or len(held[0]) >= _IDS:
            yield _table(held, columns), after
            held, size = [[] for _ in columns], 0
    if held[0]:
        yield _table(held, columns), after


def _value(value: Any, name: str, place: str, url: str) -> str | list[str | None] | None:
    if isinstance(value, list):
        return [_scalar(one, name, place, url) for one in value]
    return _scalar(value, name, place, url)


def _scalar(value: Any, name: str, place: str, url: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ShardError(
        url,
        f"{place}: field {name!r} holds a {type(value).__name__}; give a value or a list",
    )


def _table(held: list[list[Any]], columns: Sequence[str]) -> pa.Table:
    arrays = []
    for own in held:
        kinds = {type(value) for value in own if value is not None}
        # leave a column of nulls without a type; it gets its type from the tables it is joined with
        kind = pa.large_string() if kinds else pa.null()
        arrays.append(pa.array(own, pa.list_(kind) if kinds == {list} else kind))
    return pa.table(arrays, list(columns))


def _texts(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[str, int, Position]]:
    field, url = source.columns.text_column, source.url
    for after, line, record in _records(source, document_bytes, start):
        place = f"line {after.passed}"
        if not isinstance(record, dict):
            raise ShardError(
                url, f"{place} is not a JSON object; write an object with the text on each line"
            )
        if field not in record:
            raise ShardError(
                url,
                f"{place} has no field {field!r}; its fields are {sorted(record)}",
                "rename a field, or choose another with {create.text_column}",
            )
        text = record[field]
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ShardError(url, f"{place}: field {field!r} is {kind}, expected a string")
        if b"\\u" in line:
            _refuse_surrogates(text, place, url)
        yield text, len(line), after


def _refuse_surrogates(text: str, place: str, url: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ShardError(
            url, f"{place} holds half of a surrogate pair, not a character; correct or delete it"
        ) from error
