"""Running many tasks with few in flight."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from distributed import Client, Future, as_completed

from streaming_moments.pipelines.progress import StepProgress


def run_bounded(
    client: Client,
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    in_flight: int,
    progress: StepProgress,
    step: str,
    keep: bool = False,
) -> list[Any]:
    """Results of `function(*call)` for all calls, in order, at most `in_flight` at a time.

    With `keep` the results stay on the workers and their futures are returned.

    Raises
    ------
    Exception
        What the first failing task raised; the tasks still waiting are cancelled.
    """
    results: list[Any] = [None] * len(calls)
    with closing(completed(client, function, calls, in_flight, keep)) as finished:
        for done, (index, value) in enumerate(finished, start=1):
            if isinstance(value, BaseException):
                raise value
            results[index] = value
            progress.advance(step, done, len(calls))
    return results


def completed(
    client: Client,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    in_flight: int,
    keep: bool = False,
) -> Generator[tuple[int, Any], None, None]:
    """(index, result or exception) of each call, as they finish; the next starts when one ends.

    With `keep` a future stands for each result.
    """
    waiting = iter(enumerate(calls))
    places: dict[Future[Any], int] = {}
    running = as_completed(with_results=False)
    try:
        for index, call in _first(waiting, in_flight):
            future = client.submit(function, *call, pure=False)
            places[future] = index
            running.add(future)
        while places:
            future = next(running)
            index = places.pop(future)
            failure = future.exception()
            result = failure
            if failure is None:
                result = future if keep else future.result()
            for following, call in _first(waiting, 1):
                started = client.submit(function, *call, pure=False)
                places[started] = following
                running.add(started)
            yield index, result
    finally:
        client.cancel(list(places))


def _first(items: Iterator[Any], number: int) -> Iterator[Any]:
    for _ in range(number):
        try:
            yield next(items)
        except StopIteration:
            return
