"""Date columns: read the days of the values in a column of dates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming_moments.errors import ShardError

_DAY_CHARACTERS = 10
# pattern of a date without a time zone, whose day is used as it is written
_PLAIN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[^Zz+\-]*$"


def bounds_of(values: pa.Array, column: str, url: str, zones: bool = True) -> Iterator[date]:
    """Yield the first and last day of an array of dates, times or texts; nothing if all are null.

    With `zones`, a text with a time zone belongs to its day in UTC, as in `day_of`. Without, it
    belongs to the written day, as in stores of version 0.2.0. Raises ShardError for any other
    value.

    Examples
    --------
    >>> values = pa.array(["2026-11-21", None, "2026-11-19 08:00"])
    >>> [str(day) for day in bounds_of(values, "day", "/corpus/a.parquet")]
    ['2026-11-19', '2026-11-21']
    >>> values = pa.array(["2026-11-21T23:30:00-05:00"])
    >>> [str(day) for day in bounds_of(values, "day", "/corpus/a.parquet")]
    ['2026-11-22']
    """
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if zones and (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        plain = pc.match_substring_regex(values, _PLAIN)
        for text in values.filter(pc.invert(plain)).unique().to_pylist():
            try:
                yield day_of(text)
            except ValueError as error:
                raise _no_date(url, column, error) from error
        values = values.filter(plain)
    bounds = pc.min_max(_dates(values, url, column)).as_py()
    if bounds["min"] is not None:
        yield from (bounds["min"], bounds["max"])


def day_of(value: Any) -> date:
    """Return the day of a text that begins with a date; for a time with a zone the day in UTC.

    Raises TypeError or ValueError for any other value.

    Examples
    --------
    >>> str(day_of("2026-11-21T23:30-05:00"))
    '2026-11-22'
    """
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return date.fromisoformat(value[:_DAY_CHARACTERS])
    try:
        return (moment.astimezone(UTC) if moment.tzinfo else moment).date()
    except OverflowError as error:
        raise ValueError(f"{value!r} is outside the years 1 to 9999 in UTC") from error


def _dates(values: pa.Array, url: str, column: str) -> pa.Array:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # cut off the time of the day, which is not needed
        values = pc.utf8_slice_codeunits(values, 0, _DAY_CHARACTERS)
    elif pa.types.is_timestamp(kind):
        # Arrow stores a time with a zone in UTC, so its day is the day in UTC
        values = values.cast(pa.timestamp(kind.unit))
    elif not pa.types.is_date(kind):
        raise ShardError(
            url, f"column {column!r} is of type {kind}, expected dates, times or texts"
        )
    try:
        return values.cast(pa.date32(), safe=False)
    except pa.ArrowInvalid as error:
        raise _no_date(url, column, error) from error


def _no_date(url: str, column: str, error: Exception) -> ShardError:
    return ShardError(
        url,
        f"column {column!r} has a value that does not begin with a date ({error}); give dates "
        "such as 2026-11-21",
    )
