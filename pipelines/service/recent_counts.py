"""Counts of recent events, minute by minute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MINUTES = 60


@dataclass
class Rates:
    """Counts of events of the last minutes, by name of the event.

    Only one thread may use it. `clock` returns seconds.

    Examples
    --------
    >>> now = [0.0]
    >>> rates = Rates(lambda: now[0])
    >>> rates.add("documents", 20)
    >>> now[0] = 90.0
    >>> rates.add("documents", 5)
    >>> rates.last(1)["documents"], rates.last(60)["documents"]
    (5, 25)
    >>> now[0] = 3650.0
    >>> rates.last(60)["documents"]
    5
    """

    clock: Callable[[], float] = time.monotonic
    _minutes: dict[int, Counter[str]] = field(default_factory=dict, repr=False)

    def add(self, name: str, number: int = 1) -> None:
        """Add `number` to the count of an event in the current minute."""
        now = self._now()
        if now not in self._minutes:
            self._minutes = {at: one for at, one in self._minutes.items() if at > now - MINUTES}
            self._minutes[now] = Counter()
        self._minutes[now][name] += number

    def last(self, minutes: int) -> Counter[str]:
        """Return the counts by name in the last `minutes`, including the current minute."""
        now, found = self._now(), Counter[str]()
        for at, one in self._minutes.items():
            if at > now - minutes:
                found += one
        return found

    def _now(self) -> int:
        return int(self.clock() // 60)
