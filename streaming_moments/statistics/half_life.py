"""Half-life: weights of documents by their age, and the parsing and printing of half-lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streaming_moments.errors import InvalidInput

LONGEST_HALF_LIFE = 3_652_059  # largest half-life in days: from the year 1 to the year 9999


def half_life_weights(ages: Sequence[float], half_life: float) -> tuple[float, ...]:
    """Return the weight `2^(-age / half_life)` of each age, in days; the half-life is above 0.

    Examples
    --------
    >>> half_life_weights([0, 7, 14], half_life=7)
    (1.0, 0.5, 0.25)
    """
    if not half_life > 0:
        raise InvalidInput(f"the half-life is {half_life} days; it must be above 0")
    return tuple(2.0 ** (-age / half_life) for age in ages)


def half_life_of(value: Any) -> float:
    """Parse a half-life in days, above 0 and at most `LONGEST_HALF_LIFE`."""
    try:
        days = float(value)
    except (ValueError, OverflowError):
        days = 0.0
    if not 0 < days <= LONGEST_HALF_LIFE:
        raise InvalidInput(
            f"{str(value)[:40]!r} is not a number of days above 0 and below 10,000 years; give for "
            "example 30"
        )
    return days


def half_life_suffix(half_life: float | None) -> str:
    """Return the suffix that a half-life adds to the name of a model; empty without a half-life.

    Examples
    --------
    >>> half_life_suffix(7)
    '-half7'
    """
    return "" if half_life is None else f"-half{half_life:g}"


def half_life_text(half_life: float | None) -> str:
    """Return the text about a half-life that is printed after a number of documents.

    The text is empty without a half-life.

    Examples
    --------
    >>> half_life_text(7.0)
    ', half as much after every 7 days (in floating point)'
    """
    if half_life is None:
        return ""
    return f", half as much after every {half_life:g} days (in floating point)"
