"""Stopwatch: the seconds of a piece of work, without those that other programs took from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_NANOSECOND = 1e-9


def timed(work: Callable[[], _Result]) -> tuple[float, _Result]:
    """Seconds of this thread on some work, and what came of it.

    Seconds in which the thread could have run, but other programs had the processors, do not
    count; Linux says how many these are. Elsewhere they count.

    Examples
    --------
    >>> seconds, result = timed(lambda: sum(range(1000)))
    >>> seconds > 0, result
    (True, 499500)
    """
    start, queued = time.perf_counter(), _queued()
    result = work()
    passed = time.perf_counter() - start
    # the two clocks do not tick together
    return max(passed - (_queued() - queued), passed / 1000), result


def timed_on_all(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> tuple[float, list[_Result]]:
    """Seconds of the slowest of some pieces of work done at once, and what came of them."""
    pairs = list(pool.map(lambda item: timed(lambda: work(item)), items))
    return max(seconds for seconds, _ in pairs), [result for _, result in pairs]


def _queued() -> float:
    """Seconds that this thread has waited for a processor so far."""
    with suppress(OSError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * _NANOSECOND
    return 0.0
