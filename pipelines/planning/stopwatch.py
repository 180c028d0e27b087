"""Stopwatch that leaves out seconds in which other programs had the processor."""

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
    """Return the seconds that this thread needed for some work, and the result of the work.

    On Linux, this excludes the seconds in which other programs had the processors while the thread
    was ready. Other systems do not report these seconds, so they are included.

    Examples
    --------
    >>> seconds, result = timed(lambda: sum(range(1000)))
    >>> seconds > 0, result
    (True, 499500)
    """
    start, queued = time.perf_counter(), _queued()
    result = work()
    passed = time.perf_counter() - start
    # keep the difference above 0, because the two clocks do not advance together
    return max(passed - (_queued() - queued), passed / 1000), result


def timed_on_all(
    pool: ThreadPoolExecutor, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> tuple[float, list[_Result]]:
    """Return the seconds of the slowest piece of parallel work, with the results."""
    pairs = list(pool.map(lambda item: timed(lambda: work(item)), items))
    return max(seconds for seconds, _ in pairs), [result for _, result in pairs]


def _queued() -> float:
    """Return the seconds that this thread has waited for a processor."""
    with suppress(OSError):
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) * _NANOSECOND
    return 0.0
