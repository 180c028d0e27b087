"""Progress of long steps as lines, for logs, pipes and Python."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming_moments.progress import Report

EVERY = 60.0  # seconds between two lines
_MINUTE, _HOUR = 60.0, 3600.0


@dataclass
class ProgressLines:
    """Reports the progress of a step at intervals of `every` seconds, if the step takes that long.

    With `ends`, a line also reports when each step ends for the first time.

    Examples
    --------
    >>> seconds = iter([0.0, 0.0, 30.0, 90.0, 100.0, 400.0])
    >>> lines = ProgressLines(print, clock=lambda: next(seconds))
    >>> for done in (0, 100, 300, 310, 1200):
    ...     lines.advance("counting shards", done, 1200)
    counting shards: 300 of 1,200 (25%) after 1.5 min, about 4.5 min left
    """

    report: Report
    every: float = EVERY
    clock: Callable[[], float] = time.monotonic
    ends: bool = False
    begun: dict[str, float] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    last: float = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.clock()

    def advance(self, step: str, done: int, total: int) -> None:
        """Report a line if the last one is old enough, or if the step ends."""
        now = self.clock()
        begun = self.begun.setdefault(step, now)
        if done >= total:
            del self.begun[step]
            if self.ends and step not in self.ended:
                self.ended.add(step)
                self.last = now
                self.report(f"{step}: {done:,} of {total:,}")
        elif now - max(begun, self.last) >= self.every:
            self.last = now
            left = f", about {_time((now - begun) * (total - done) / done)} left" if done else ""
            self.report(
                f"{step}: {done:,} of {total:,} ({done / total:.0%}) after {_time(now - begun)}"
                f"{left}"
            )


def _time(seconds: float) -> str:
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < _HOUR:
        return f"{seconds / _MINUTE:.2g} min"
    return f"{seconds / _HOUR:.2g} h"
