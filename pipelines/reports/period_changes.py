"""The largest change of the share of a topic over time, if it is beyond noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streaming_moments.quality.differences import bar_of_difference, largest_change

if TYPE_CHECKING:
    from streaming_moments.storage.operations.shares_over_time import PeriodShares


def change_said(periods: Sequence[PeriodShares], names: Sequence[str]) -> str:
    """Describe the largest change of a share from the first to the last period.

    Returns "" if there is only one period.

    Examples
    --------
    >>> from datetime import date
    >>> from streaming_moments.storage.dates import DateRange
    >>> from streaming_moments.storage.operations.shares_over_time import PeriodShares
    >>> days = [DateRange(date(2026, 5, day), date(2026, 5, day)) for day in (1, 2)]
    >>> shares = (0.4, 0.6), (0.5, 0.5)
    >>> change_said([PeriodShares(day, 900, one, (0.02, 0.02))
    ...              for day, one in zip(days, shares)], ["sea", "law"])
    'Largest change from 2026-05-01 to 2026-05-02: topic 0 (sea), +10.0 ± 2.8 points.'
    >>> change_said([PeriodShares(day, 900, one, (0.05, 0.05))
    ...              for day, one in zip(days, shares)], ["sea", "law"])
    'No change beyond noise from 2026-05-01 to 2026-05-02.'
    """
    if len(periods) < 2:
        return ""
    first, last = periods[0], periods[-1]
    steps = [now - before for before, now in zip(first.shares, last.shares, strict=True)]
    bars = [bar_of_difference(*pair) for pair in zip(first.bars, last.bars, strict=True)]
    days = f"from {first.days.first} to {last.days.last}"
    topic = largest_change(steps, bars)
    if topic is None:
        return f"No change beyond noise {days}."
    points = f"{100 * steps[topic]:+.1f} ± {100 * (bars[topic] or 0.0):.1f} points"
    return f"Largest change {days}: topic {topic} ({names[topic]}), {points}."


def changes_said(
    origins: Mapping[str, Sequence[PeriodShares]], names: Sequence[str]
) -> tuple[str, ...]:
    """Describe the largest change at each origin of a hub, if the origin has several periods."""
    found = ((origin or "(own)", change_said(one, names)) for origin, one in origins.items())
    return tuple(f"{origin}: {text[0].lower()}{text[1:]}" for origin, text in found if text)
