"""Running many tasks with few in flight."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any

from distributed import CancelledError, Future, KilledWorker

from streaming_moments.pipelines.cluster import silent_workers
from streaming_moments.pipelines.cluster.cluster import Cluster, SchedulerLost, identity_of
from streaming_moments.pipelines.cluster.progress import StepProgress
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost, why_nobody_works
from streaming_moments.pipelines.cluster.worker_rpc import place_stranded

_BEGUN = ("waiting", "fetch", "flight", "ready")  # states of a worker's tasks


@dataclass(frozen=True)
class FinishedTasks:
    """Futures in the order in which they finish; without workers it does not wait for ever."""

    cluster: Cluster
    _finished: SimpleQueue[Future[Any]] = field(default_factory=SimpleQueue)

    def add(self, future: Future[Any]) -> None:
        """One more to wait for."""

        # Dask's own callbacks take a turn of another thread
        async def wait() -> None:
            with suppress(CancelledError):
                await future.exception()
            self._finished.put(future)

        loop: Any = self.cluster.client.loop
        loop.add_callback(wait)

    def next(self) -> Future[Any]:
        """Return the next future that finishes or fails.

        WorkersLost if no worker ran anything for the cluster's timeout (there was none, or Dask
        paused them), and SchedulerLost if the scheduler is gone.
        """
        patience = _Patience(self.cluster)
        while True:
            try:
                return self._finished.get(timeout=patience.step)
            except Empty:
                patience.look()


@dataclass
class _Patience:
    """How long no worker has been at work."""

    cluster: Cluster
    seen: float = field(default_factory=time.monotonic)

    @property
    def step(self) -> float:
        """Seconds between two looks."""
        return min(1.0, self.cluster.worker_timeout)

    def look(self) -> None:
        client, timeout = self.cluster.client, self.cluster.worker_timeout
        if client.status != "running":
            raise SchedulerLost(self.cluster.address)
        try:
            workers = identity_of(client)["workers"]
            place_stranded(client)
        except OSError:
            return  # the client knows of it in a moment
        paused = sum(worker["status"] == "paused" for worker in workers.values())
        if any(_at_work(worker, bool(paused)) for worker in workers.values()):
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen >= timeout:
            raise WorkersLost(why_nobody_works(paused, len(workers), timeout))


def _at_work(worker: Mapping[str, Any], some_paused: bool) -> bool:
    """Whether a worker, as the scheduler knows it, runs tasks, or is there to run some."""
    tasks = worker["metrics"].get("task_counts", {})
    if tasks.get("executing"):
        return True  # one that is paused ends what it has begun
    # beside a paused one it may be idle because that one holds what is left
    there = not some_paused or any(tasks.get(state) for state in _BEGUN)
    return bool(there and worker["status"] == "running")


def outcome_of(cluster: Cluster, future: Future[Any], keep: bool = False) -> Any:
    """Return a task's result, or with `keep` its future; or the exception that it raised.

    Raises WorkersLost and SchedulerLost as `FinishedTasks.next`.
    """
    patience = _Patience(cluster)
    begun, wait = time.monotonic(), patience.step
    while True:
        try:
            # one that has ended well needs no turn of the client's loop to say so
            if future.status != "finished":
                failure = _asked(cluster, future.exception, wait)
                if failure is not None:
                    return failure
            if keep and not future.cancelled():
                return future
            return _asked(cluster, future.result, wait)
        except CancelledError as error:
            # nobody waits for a task that we cancelled
            raise SchedulerLost(cluster.address) from error
        except TimeoutError:
            patience.look()
            wait *= 2  # a large result needs a longer turn
            if future.done() and time.monotonic() - begun >= silent_workers.ANSWER_SECONDS:
                # who has made it and hangs will not send it: another makes it again
                silent_workers.restart_silent(cluster.client)
                begun = time.monotonic()
        except Exception:
            # it had ended: its result went with its worker, and it failed when made again
            if future.status != "error":
                raise


def _asked(cluster: Cluster, ask: Callable[[], Any], seconds: float) -> Any:
    """What a future says within so many seconds.

    It is asked in the client's own loop: Dask would make the coroutine before it begins to wait for
    it, and Ctrl-C in between would print that it was never awaited.
    """

    async def answer() -> Any:
        return await asyncio.wait_for(ask(), seconds)

    return cluster.client.sync(answer)


def result_of(cluster: Cluster, future: Future[Any], step: str, keep: bool = False) -> Any:
    """Result of a task that runs alone, or with `keep` its future; errors as `run_bounded`."""
    return required(outcome_of(cluster, future, keep), step)


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
    SchedulerLost
        The scheduler is gone.
    """
    results: list[Any] = [None] * len(calls)
    with closing(
        run_in_turn(cluster, function, calls, in_flight, progress, step, keep)
    ) as finished:
        for index, value in finished:
            results[index] = value
    return results


def run_in_turn(
    cluster: Cluster,
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    in_flight: int,
    progress: StepProgress,
    step: str,
    keep: bool = False,
) -> Generator[tuple[int, Any], None, None]:
    """(index, result) of each call, as they finish; otherwise as `run_bounded`."""
    with closing(completed(cluster, function, calls, in_flight, keep)) as finished:
        done = count(1)
        for index, value in finished:
            result = required(value, step)
            progress.advance(step, next(done), len(calls))
            yield index, result
            del value, result  # who took it says how long it is kept


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
    running = FinishedTasks(cluster)

    def start(number: int) -> None:
        for index, call in _first(waiting, number):
            future = cluster.client.submit(function, *call, pure=False)
            places[future] = index
            running.add(future)

    try:
        start(in_flight)
        while places:
            future = running.next()
            index = places.pop(future)
            result = outcome_of(cluster, future, keep)
            start(1)
            yield index, result
            del future, result  # who took it says how long it is kept
    finally:
        cancel(cluster, places)


def cancel(cluster: Cluster, futures: Iterable[Future[Any]]) -> None:
    """Give up tasks; a scheduler that is gone has given them up."""
    given_up = list(futures)
    if given_up and cluster.client.status == "running":
        cluster.client.cancel(given_up)


def required(outcome: Any, step: str) -> Any:
    """What a task gave, as `outcome_of` says it; its exception is raised."""
    if isinstance(outcome, KilledWorker):
        raise WorkersLost(
            f"the workers died time and again while {step}; give them more memory, or a "
            "smaller --memory budget, and run it again"
        ) from outcome
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _first(items: Iterator[Any], number: int) -> Iterator[Any]:
    for _ in range(number):
        try:
            yield next(items)
        except StopIteration:
            return
