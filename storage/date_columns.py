"""Date columns: the days that a shard's documents carry themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streaming_moments.errors import ShardError
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.documents import DEFAULT_LIMITS
from streaming_moments.storage.filesystems import open_file_system, shard_errors
from streaming_moments.storage.lines import read_lines
from streaming_moments.storage.parquet import refuse_large_footer
from streaming_moments.storage.shards import Shard, ShardFormat

_ROWS = 65_536
_DAY_CHARACTERS = 10


def days_of(
    shard: Shard,
    form: ShardFormat,
    source: DateSource,
    storage_options: Mapping[str, object] | None = None,
) -> DateRange | None:
    """Days of a shard's documents: of its column, which is read once, or else of its URL.

    Parameters
    ----------
    shard : Shard
        As `list_shards` gives it.
    form : ShardFormat
        How documents lie in it.
    source : DateSource
        Where the days are.
    storage_options : mapping, optional
        Options of the fsspec file system.

    Raises
    ------
    ShardError
        A column or field that is missing, holds something else than dates, or no date at all; or
        a format without columns.

    Examples
    --------
    >>> fsspec.filesystem("memory").pipe("/dated/a.jsonl", b'{"day": "2026-11-21T08:00"}')
    >>> shard = Shard("memory:///dated/a.jsonl", 28)
    >>> str(days_of(shard, ShardFormat(), DateSource(column="day")))
    '2026-11-21'
    """
    if source.column is None:
        return source.in_url(shard.url)
    kind = form.kind_of(shard.url)
    with shard_errors(shard.url, storage_options):
        fs, path = open_file_system(shard.url, storage_options)
        if kind == "parquet":
            found = list(_parquet_days(fs, path, shard.url, source.column))
        elif kind == "jsonl":
            found = list(_json_days(fs, path, shard.url, source.column))
        else:
            raise ShardError(
                shard.url,
                f"is of format {kind}, which has no column {source.column!r} of dates; create the "
                "store without --date-column",
            )
    if not found:
        raise ShardError(
            shard.url, f"column {source.column!r} holds no date at all; choose another column"
        )
    return DateRange(min(found), max(found))


def _parquet_days(
    fs: fsspec.AbstractFileSystem, path: str, url: str, column: str
) -> Iterator[date]:
    """Earliest and latest day of each batch of rows."""
    with fs.open(path, "rb") as stored:
        refuse_large_footer(stored, DEFAULT_LIMITS.decoded_bytes, url)
        file = pq.ParquetFile(stored)
        if file.schema_arrow.names.count(column) != 1:
            raise ShardError(
                url,
                f"has no column {column!r} of dates, or several; it has "
                f"{file.schema_arrow.names}: choose one by --date-column",
            )
        for batch in file.iter_batches(_ROWS, columns=[column], use_threads=False):
            bounds = pc.min_max(_dates(batch.column(0), url, column)).as_py()
            if bounds["min"] is not None:
                yield from (bounds["min"], bounds["max"])


def _dates(values: pa.Array, url: str, column: str) -> pa.Array:
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # whatever follows the day is not looked at
        values = pc.utf8_slice_codeunits(values, 0, _DAY_CHARACTERS)
    elif pa.types.is_timestamp(kind):
        # a time with a zone is held in UTC: its day is the day there
        values = values.cast(pa.timestamp(kind.unit))
    elif not pa.types.is_date(kind):
        raise ShardError(url, f"column {column!r} is {kind}, expected dates, times or texts")
    try:
        return values.cast(pa.date32(), safe=False)
    except pa.ArrowInvalid as error:
        raise ShardError(
            url, f"column {column!r} does not begin with a date everywhere ({error}); mend it"
        ) from error


def _json_days(fs: fsspec.AbstractFileSystem, path: str, url: str, field: str) -> Iterator[date]:
    for after, line in read_lines(fs, path, url, DEFAULT_LIMITS.document_bytes):
        if not line.strip():
            continue
        place = f"line {after.passed}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ShardError(url, f"{place} is not JSON ({error}); mend or drop it") from error
        value: Any = record.get(field) if isinstance(record, dict) else None
        if value is None:
            continue
        try:
            yield _day(value)
        except (TypeError, ValueError) as error:
            raise ShardError(
                url, f"{place}: field {field!r} does not begin with a date ({error}); mend it"
            ) from error


def _day(value: Any) -> date:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return date.fromisoformat(value[:_DAY_CHARACTERS])
    return (moment.astimezone(UTC) if moment.tzinfo else moment).date()
