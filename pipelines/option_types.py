"""Types of options: sizes, times, numbers and names, refused where they are read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from math import isnan
from typing import Any

import click
from dask.utils import parse_bytes, parse_timedelta

from streaming_moments.errors import InvalidInput
from streaming_moments.forms import form_of
from streaming_moments.storage.layout import require_name

_TOO_LARGE = 1 << 63  # bytes
_LONGEST = timedelta(days=36_525)
_MOST = 1 << 53  # up to there every integer is a float
NUMBER = click.IntRange(0, _MOST)
COUNT = click.IntRange(1, _MOST)
SEED = click.IntRange(0, (1 << 64) - 1)


class Bytes(click.ParamType[int]):
    """Sizes as Dask reads them: 512MB are 512 * 10^6 bytes, 2GiB 2 * 2^30."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes as an integer, 1 to 2^63 - 1."""
        size = _read(parse_bytes, value)
        if size is None or not 1 <= size < _TOO_LARGE:
            self.fail(
                f"{_shown(value)} is no size above 0 and below 8 EiB; write for example 512MB "
                "(10^6 bytes each) or 2GiB (2^30)",
                param,
                ctx,
            )
        return int(size)


class Duration(click.ParamType[timedelta]):
    """Times as Dask reads them, such as 7d, 12h, 30m or 90s."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Time as a difference of times, up to 100 years."""
        if isinstance(value, timedelta):
            return value
        seconds = _read(_parse_seconds, value) if isinstance(value, str) else None
        if seconds is None or not 0 <= seconds <= _LONGEST.total_seconds():
            self.fail(
                f"{_shown(value)} is no time of up to 100 years; write for example 7d, 12h, 30m "
                "or 90s",
                param,
                ctx,
            )
        return timedelta(seconds=seconds)


class Alpha(click.ParamType[float]):
    """Sums of the Dirichlet parameters, 0 for one topic a document."""

    name = "alpha0"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """A number that a model may have as its alpha0."""
        try:
            return form_of(float(value)).alpha0
        except InvalidInput as error:
            self.fail(str(error), param, ctx)
        except (ValueError, OverflowError):
            self.fail(
                f"{_shown(value)} is no alpha0; write for example 0.1 or 0,0.1,1 where several "
                "are asked for",
                param,
                ctx,
            )


class HalfLife(click.ParamType[float]):
    """Days after which a document counts half."""

    name = "days"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Days above 0, and no more than the calendar has."""
        try:
            days = float(value)
        except (ValueError, OverflowError):
            days = 0.0
        if not 0 < days <= date.max.toordinal():
            self.fail(
                f"{_shown(value)} is no number of days above 0 and below 10,000 years; write for "
                "example 30",
                param,
                ctx,
            )
        return days


class Share(click.FloatRange):
    """Shares of a whole, 0 to 1; for click nan is in every range."""

    def __init__(self, min_open: bool = False) -> None:
        super().__init__(0, 1, min_open=min_open)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The share as it is."""
        share: float = super().convert(value, param, ctx)
        if isnan(share):
            self.fail(f"{_shown(value)} is no number of 0 to 1", param, ctx)
        return share


class StoreName(click.ParamType[str]):
    """Names of models and tags."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """A name that a store takes."""
        try:
            return require_name(str(value))
        except InvalidInput as error:
            self.fail(f"{error}.", param, ctx)


def size_text(nbytes: int) -> str:
    """A size of up to 2^53 bytes as `Bytes` reads it, to the byte.

    Examples
    --------
    >>> [size_text(size) for size in (1536 << 20, 4 * 10**9, 1001)]
    ['1536MiB', '4GB', '1001B']
    """
    units = (("GB", 10**9), ("GiB", 1 << 30), ("MB", 10**6), ("MiB", 1 << 20), ("B", 1))
    return next(f"{nbytes // size}{unit}" for unit, size in units if nbytes % size == 0)


def _parse_seconds(value: str) -> float:
    # without a unit it may be meant as hours
    return float(parse_timedelta(value, default=False))


def _read(parse: Callable[[Any], float], value: Any) -> float | None:
    """What Dask makes of a size or a time; None of what is neither."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    # Dask would put a 1 before a text that does not begin with a digit
    if isinstance(value, str) and not value.strip()[:1].isdigit():
        return None
    try:
        return parse(value)
    except (ValueError, KeyError, OverflowError):
        return None


def _shown(value: Any) -> str:
    return repr(str(value)[:40])
