"""Running many tasks with few in flight."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from distributed import Future, KilledWorker

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.progress import StepProgress


class WorkersLost(StreamingMomentsError):
    """The cluster cannot do the work: it has no workers, or a task kills them."""


@dataclass(frozen=True)
class FinishedTasks:
    """Futures in the order in which they finish; it does not wait for ever without workers.

    Parameters
    ----------
    cluster : Cluster
        Where they run.
    """

    cluster: Cluster
    _finished: SimpleQueue[Future[Any]] = field(default_factory=SimpleQueue)

    def add(self, future: Future[Any]) -> None:
        """One more to wait for."""
        future.add_done_callback(self._finished.put)

    def next(self) -> Future[Any]:
        """The next that finishes, or fails.

        Raises
        ------
        WorkersLost
            There was no worker for the cluster's time-out.
        """
        timeout = self.cluster.worker_timeout
        seen = time.monotonic()
        while True:
            try:
                return self._finished.get(timeout=min(1.0, timeout))
            except Empty:
                if self.cluster.client.scheduler_info(n_workers=-1)["workers"]:
                    seen = time.monotonic()
                elif time.monotonic() - seen >= timeout:
                    raise WorkersLost(
                        f"the cluster has had no workers for {timeout:g} seconds; start some and "
                        "run it again, every commit so far is kept (--worker-timeout waits longer)"
                    ) from None


def run_bounded(
    cluster: Cluster,
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
    WorkersLost
        The cluster has no workers, or the task kills them.
    """
    results: list[Any] = [None] * len(calls)
    with closing(completed(cluster, function, calls, in_flight, keep)) as finished:
        for done, (index, value) in enumerate(finished, start=1):
            if isinstance(value, KilledWorker):
                raise WorkersLost(
                    f"the workers died time and again while {step}; give them more memory, or a "
                    "smaller --memory budget, and run it again"
                ) from value
            if isinstance(value, BaseException):
                raise value
            results[index] = value
            progress.advance(step, done, len(calls))
    return results


def completed(
    cluster: Cluster,
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
    client, running = cluster.client, FinishedTasks(cluster)
    try:
        for index, call in _first(waiting, in_flight):
            future = client.submit(function, *call, pure=False)
            places[future] = index
            running.add(future)
        while places:
            future = running.next()
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
