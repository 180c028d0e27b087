"""Days of the documents of a shard or a segment, and where they are found."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Literal, get_args

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr

NO_PATTERN = "none"
_UTC = "UTC"
_ISO = ("%Y-%m-%d", "%Y/%m/%d")
_DIGITS = {"%Y": r"(?P<year>\d{4})", "%m": r"(?P<month>\d{2})", "%d": r"(?P<day>\d{2})"}

Bucket = Literal["day", "month", "year", "all"]
Period = Literal["day", "week", "month"]
PERIODS: tuple[Period, ...] = get_args(Period)


@dataclass(frozen=True, order=True)
class DateRange:
    """Days from `first` to `last`, including both.

    Raises
    ------
    InvalidInput
        The last day is before the first.

    Examples
    --------
    >>> days = DateRange(date(2026, 11, 20), date(2026, 11, 21))
    >>> days | DateRange(date(2026, 11, 30), date(2026, 11, 30))
    DateRange(first=datetime.date(2026, 11, 20), last=datetime.date(2026, 11, 30))
    >>> str(days), days.middle.isoformat()
    ('2026-11-20 to 2026-11-21', '2026-11-20')
    """

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise InvalidInput(f"{self.last} is before {self.first}; give the earlier day first")

    def __or__(self, other: DateRange) -> DateRange:
        return DateRange(min(self.first, other.first), max(self.last, other.last))

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def middle(self) -> date:
        """The day in the middle; of two middle days, the earlier one."""
        return self.first + (self.last - self.first) // timedelta(days=2) * timedelta(days=1)

    def to_json(self) -> list[str]:
        """Return the first and last day in ISO 8601."""
        return [self.first.isoformat(), self.last.isoformat()]

    @classmethod
    def from_json(cls, content: Any) -> DateRange:
        """Decode a range that `to_json` encoded.

        Raises
        ------
        InvalidInput
            The content is not two days.
        """
        try:
            first, last = content
            return cls(date.fromisoformat(first), date.fromisoformat(last))
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f'{content!r:.80} are not two days; write for example ["2026-11-20", "2026-11-21"]'
            ) from error

    def period(self, by: Period) -> DateRange:
        """Extend the range to whole days, weeks or months; weeks begin on Monday.

        Examples
        --------
        >>> str(DateRange(date(2026, 11, 20), date(2026, 11, 20)).period("week"))
        '2026-11-16 to 2026-11-22'
        """
        return DateRange(_period(self.first, by)[0], _period(self.last, by)[1])

    def bucket(self, by: Bucket) -> tuple[date, date]:
        """Round the first and the last day down to the beginning of their day, month or year.

        Examples
        --------
        >>> one = DateRange(date(2026, 11, 20), date(2026, 11, 20))
        >>> two = DateRange(date(2026, 11, 1), date(2026, 11, 9))
        >>> one.bucket("month") == two.bucket("month"), one.bucket("day") == two.bucket("day")
        (True, False)
        """
        return _rounded(self.first, by), _rounded(self.last, by)


@dataclass(frozen=True)
class DateSource:
    """Where the day of a document is found: in a column, or in the URL of its shard.

    Parameters
    ----------
    column : str, optional
        Parquet column, or field of JSON Lines, with dates, times or texts that begin with a date.
    pattern : str, optional
        Pattern of the day in a shard's URL, with %Y, %m and %d, such as "%Y%m%d"; "none" if URLs
        have no day. By default ISO dates are found, "2026-11-21" and "2026/11/21".
    zones : bool
        Whether a text with a time zone belongs to its day in UTC in every format. It is False for
        stores of version 0.2.0: there only JSON Lines use UTC, and Parquet and CSV use the day as
        it is written. Documents must be subtracted by the rule that counted them.

    Raises
    ------
    InvalidInput
        Both column and pattern are given, or the pattern lacks %Y, %m or %d.

    Examples
    --------
    >>> str(DateSource().in_url("s3://corpus/2026/11/21/part-1.parquet"))
    '2026-11-21'
    >>> DateSource(pattern="day-%Y%m%d").in_url("s3://corpus/day-20261121.txt").first.day
    21
    >>> DateSource().in_url("s3://corpus/part-1.parquet") is None
    True
    """

    __repr__ = short_repr

    column: str | None = None
    pattern: str | None = None
    zones: bool = True

    def __post_init__(self) -> None:
        if self.pattern is None or self.pattern == NO_PATTERN:
            return
        if self.column is not None:
            raise InvalidInput(
                "dates are read from a column or from the URLs; give a date column or a date "
                "pattern, not both"
            )
        for part in _DIGITS:
            if self.pattern.count(part) != 1:
                raise InvalidInput(
                    f"the date pattern {self.pattern!r} needs %Y, %m and %d once each, as in "
                    f'"%Y-%m-%d"; or "{NO_PATTERN}" for URLs without dates'
                )

    def in_url(self, url: str) -> DateRange | None:
        """Return the day in a URL, or the last one if it has several; None if it has no day."""
        if self.pattern == NO_PATTERN:
            return None
        found: list[tuple[int, date]] = []
        for expression in self._expressions:
            for match in expression.finditer(url):
                year, month, day = (int(match[name]) for name in ("year", "month", "day"))
                try:
                    found.append((match.start(), date(year, month, day)))
                except ValueError:
                    continue  # skip digits that are not a date, such as a part number
        if not found:
            return None
        day_named = max(found)[1]
        return DateRange(day_named, day_named)

    @cached_property
    def _expressions(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(_expression, _ISO if self.pattern is None else (self.pattern,)))

    def to_json(self) -> dict[str, str | None]:
        """Convert the source to an object for JSON."""
        told = {"column": self.column, "pattern": self.pattern}
        return {**told, "zones": _UTC} if self.column is not None and self.zones else told

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> DateSource:
        """Decode a source that `to_json` encoded."""
        column = content.get("column")
        zones = column is None or content.get("zones") == _UTC
        return cls(column, content.get("pattern"), zones)


def _expression(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(%[Ymd])", pattern)
    inner = "".join(_DIGITS.get(part) or re.escape(part) for part in parts)
    return re.compile(rf"(?<!\d){inner}(?!\d)")


def _rounded(day: date, by: Bucket) -> date:
    if by == "all":
        return date.min
    if by == "year":
        return day.replace(month=1, day=1)
    return day.replace(day=1) if by == "month" else day


def _period(day: date, by: Period) -> tuple[date, date]:
    if by == "week":
        first = day - timedelta(days=day.weekday())
        return first, first + timedelta(days=6)
    if by == "month":
        return day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1])
    return day, day
