"""Quantities: sizes, times and numbers as people write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from numbers import Real
from typing import Annotated, Any, Literal, get_args, get_type_hints

from annotated_types import Interval

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput

_TOO_LARGE = 1 << 63  # smallest number of bytes that int64 cannot hold
_LONGEST = timedelta(days=36_525)
_MOST = 10**12
_BEYOND_PEOPLE = 1e15

Number = Annotated[int, Interval(ge=0, le=_MOST)]
Count = Annotated[int, Interval(ge=1, le=_MOST)]
Seed = Annotated[int, Interval(ge=0, le=(1 << 64) - 1)]
Share = Annotated[float, Interval(ge=0, le=1)]
PositiveShare = Annotated[float, Interval(gt=0, le=1)]


def require_ranges(options: Any) -> None:
    """Raise InvalidInput if a number in a dataclass is outside the range of its type hint."""
    for name, hint in get_type_hints(type(options), include_extras=True).items():
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, Real):
            continue
        for one in (hint, *get_args(hint)):
            for bounds in getattr(one, "__metadata__", ()):
                least = bounds.ge if bounds.gt is None else bounds.gt
                if not least <= value <= bounds.le or value == bounds.gt:
                    at = "at least" if bounds.gt is None else "above"
                    raise InvalidInput(
                        f"{name} of {type(options).__name__} is {value}; give {at} "
                        f"{least} and at most {bounds.le:,}"
                    )


def size_of(value: Any) -> int:
    """Parse a size as Dask does, from 1 to 2^63 - 1 bytes.

    For example, 512MB are 512 * 10^6 bytes, and 2GiB are 2 * 2^30 bytes.
    """
    size = _read(_parse_size, value)
    if size is None or not 1 <= size < _TOO_LARGE:
        raise InvalidInput(
            f"{_shown(value)} is not a size above 0 and below 8 EiB; write for example 512MB "
            "(512 * 10^6 bytes) or 2GiB (2 * 2^30 bytes)"
        )
    return int(size)


def time_of(value: Any) -> timedelta:
    """Parse times as Dask does, such as 7d, 12h, 30m or 90s; up to 100 years."""
    if isinstance(value, timedelta):
        return value
    seconds = _read(_parse_seconds, value) if isinstance(value, str) else None
    if _lacks_unit(value):
        raise InvalidInput(
            f'{value} has no unit of time; write for example "{value}m" for minutes, or s, h or d'
        )
    if seconds is None or not 0 <= seconds <= _LONGEST.total_seconds():
        raise InvalidInput(
            f"{_shown(value)} is not a time of up to 100 years; write for example 7d, 12h, 30m "
            "or 90s"
        )
    return timedelta(seconds=seconds)


def alpha0_of(value: Any) -> float | Literal["auto"]:
    """Parse the sum of the Dirichlet parameters, 0 to 10^6, or "auto".

    0 means one topic for each document, and "auto" lets a fit find the best sum.
    """
    if value == "auto":
        return "auto"
    try:
        alpha0 = float(value)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{_shown(value)} is not a value of alpha0; write auto, a number such as 0.1, or "
            "0,0.1,1 to compare several"
        ) from error
    return form_of(alpha0).alpha0


def size_text(nbytes: int) -> str:
    """Format a size of up to 2^53 bytes so that `size_of` reads the same number of bytes.

    Examples
    --------
    >>> [size_text(size) for size in (1536 << 20, 4 * 10**9, 1001)]
    ['1536MiB', '4GB', '1001B']
    """
    units = (("GB", 10**9), ("GiB", 1 << 30), ("MB", 10**6), ("MiB", 1 << 20), ("B", 1))
    return next(f"{nbytes // size}{unit}" for unit, size in units if nbytes % size == 0)


def about(number: float) -> str:
    """Format a large number for people, to two digits.

    Examples
    --------
    >>> [about(number) for number in (870, 43_900_000_000, 4.6e18)]
    ['about 870', 'about 44 billion', 'more than 1,000 trillion']
    """
    if number >= _BEYOND_PEOPLE:
        return "more than 1,000 trillion"
    for size, name in ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"), (1.0, "")):
        if number >= size:
            return f"about {float(f'{number / size:.2g}'):,.12g}{name}"
    return "0"


def local_time(time: str) -> str:
    """Format an ISO 8601 time in the local time zone, to the second."""
    return f"{datetime.fromisoformat(time).astimezone():%Y-%m-%d %H:%M:%S %Z}"


def _parse_size(value: int | str) -> int:
    if isinstance(value, int):
        return value
    # imported here, because commands with default sizes do not need Dask
    from dask.utils import parse_bytes

    return int(parse_bytes(value))


def _parse_seconds(value: str) -> float:
    from dask.utils import parse_timedelta

    # `default=False` refuses a number without a unit, because the user may mean hours
    return float(parse_timedelta(value, default=False))


def _lacks_unit(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isdecimal()
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _read(parse: Callable[[Any], float], value: Any) -> float | None:
    """Let Dask parse a size or a time; return None for other texts."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    # refuse a text that does not begin with a digit, because Dask would put a 1 before it
    if isinstance(value, str) and not value.strip()[:1].isdigit():
        return None
    try:
        return parse(value)
    except (ValueError, KeyError, OverflowError):
        return None


def _shown(value: Any) -> str:
    return repr(str(value)[:40])
