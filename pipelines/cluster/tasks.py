"""Run many tasks on the cluster, with few at a time."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from distributed import CancelledError, Future, KilledWorker

from streaming_moments.pipelines.cluster import silent_workers
from streaming_moments.pipelines.cluster.cluster import Cluster, SchedulerLost, identity_of
from streaming_moments.pipelines.cluster.progress import StepProgress
from streaming_moments.pipelines.cluster.worker_loss import (
    MORE_MEMORY,
    WorkersLost,
    why_nobody_works,
)
from streaming_moments.pipelines.cluster.worker_rpc import place_stranded

# States of tasks that a worker has received, but does not run yet.
_BEGUN = ("waiting", "fetch", "flight", "ready")


@dataclass(frozen=True)
class FinishedTasks:
    """Returns futures in the order in which they finish, unless the cluster loses its workers."""

    cluster: Cluster
    _finished: SimpleQueue[Future[Any]] = field(default_factory=SimpleQueue)

    def add(self, future: Future[Any]) -> None:
        """Add a future."""

        # Wait in the loop of the client, because callbacks of Dask run in another thread, which may
        # be late.
        async def wait() -> None:
            with suppress(CancelledError):
                await future.exception()
            self._finished.put(future)

        loop: Any = self.cluster.client.loop
        loop.add_callback(wait)

    def next(self) -> Future[Any]:
        """Return the next future that finishes or fails.

        Raises WorkersLost if no worker ran anything within the timeout of the cluster, because
        there was no worker or Dask paused all workers. Raises SchedulerLost if the scheduler died.
        """
        patience = _Patience(self.cluster)
        while True:
            try:
                return self._finished.get(timeout=patience.step)
            except Empty:
                patience.look()


@dataclass
class _Patience:
    """Measures how long no worker has run a task, and raises an error after the timeout."""

    cluster: Cluster
    seen: float = field(default_factory=time.monotonic)

    @property
    def step(self) -> float:
        """Seconds between two checks."""
        return min(1.0, self.cluster.worker_timeout)

    def look(self) -> None:
        client, timeout = self.cluster.client, self.cluster.worker_timeout
        if client.status != "running":
            raise SchedulerLost(self.cluster.address)
        try:
            workers = identity_of(client)["workers"]
            place_stranded(client)
        except OSError:
            return  # ignore a dead scheduler here, because the client itself soon reports it
        paused = sum(worker["status"] == "paused" for worker in workers.values())
        if any(_at_work(worker, bool(paused)) for worker in workers.values()):
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen >= timeout:
            raise why_nobody_works(paused, len(workers), timeout)


def _at_work(worker: Mapping[str, Any], some_paused: bool) -> bool:
    """Whether a worker, as the scheduler sees it, runs tasks or is ready to run some."""
    tasks = worker["metrics"].get("task_counts", {})
    if tasks.get("executing"):
        return True  # a paused worker finishes its running tasks
    # While some workers are paused, an idle worker is not at work: a paused worker may hold all
    # remaining tasks.
    there = not some_paused or any(tasks.get(state) for state in _BEGUN)
    return bool(there and worker["status"] == "running")


def outcome_of(cluster: Cluster, future: Future[Any], keep: bool = False) -> Any:
    """Return the result of a task, or with `keep` its future; return its exception if it failed.

    Raises WorkersLost and SchedulerLost as in `FinishedTasks.next`.
    """
    patience = _Patience(cluster)
    begun, wait = time.monotonic(), patience.step
    while True:
        try:
            # Skip this call, which waits for the loop of the client, if the future itself shows
            # that its task succeeded.
            if future.status != "finished":
                failure = _asked(cluster, future.exception, wait)
                if failure is not None:
                    return failure
            if keep and not future.cancelled():
                return future
            return _asked(cluster, future.result, wait)
        except CancelledError as error:
            # this job does not wait for tasks that it cancelled, so the scheduler lost the task
            raise SchedulerLost(cluster.address) from error
        except TimeoutError:
            patience.look()
            wait *= 2  # a large result takes longer to fetch
            if future.done() and time.monotonic() - begun >= silent_workers.ANSWER_SECONDS:
                # the worker with the result hangs, so another worker has to compute it again
                silent_workers.restart_silent(cluster.client)
                begun = time.monotonic()
        except Exception:
            # Continue the loop, which returns the exception of the task, if the worker with the
            # result died and the task failed when it ran again.
            if future.status != "error":
                raise


def _asked(cluster: Cluster, ask: Callable[[], Any], seconds: float) -> Any:
    """Return what a future reports within this many seconds.

    `ask` is called in the loop of the client. If it were called here, Ctrl-C before the wait would
    print that its coroutine was never awaited.
    """

    async def answer() -> Any:
        return await asyncio.wait_for(ask(), seconds)

    return cluster.client.sync(answer)


def result_of(cluster: Cluster, future: Future[Any], step: str, keep: bool = False) -> Any:
    """Return the result of a task that runs alone, or with `keep` its future."""
    return required(outcome_of(cluster, future, keep), step)


def task_key(step: str) -> str:
    """Return a key for a task; dashboards of Dask group tasks by the words of their step.

    Examples
    --------
    >>> from dask.utils import key_split
    >>> task_key("polishing, pass 1 of 3").rpartition("-")[0], key_split(task_key("topic rows"))
    ('polishing', 'topic-rows')
    """
    words = re.findall("[a-z]+", step.partition(",")[0].lower())
    # Begin the last part with 0, because Dask would take a part of only letters for a word of the
    # step.
    return "-".join([*words, f"0{uuid4().hex}"])


def run_bounded(
    cluster: Cluster,
    function: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    in_flight: int,
    progress: StepProgress,
    step: str,
    keep: bool = False,
) -> list[Any]:
    """Return results of `function(*call)` for all calls, in order, `in_flight` at a time.

    With `keep` the results stay on the workers and their futures are returned. Raises the
    exception of the first failing task; the other tasks are cancelled. Raises WorkersLost if
    the cluster has no workers, or if a task kills its workers. Raises SchedulerLost if the
    scheduler died.
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
    """Yield (index, result) of each call as it finishes; otherwise as in `run_bounded`."""
    with closing(completed(cluster, function, calls, in_flight, step, keep)) as finished:
        done = count(1)
        for index, value in finished:
            result = required(value, step)
            progress.advance(step, next(done), len(calls))
            yield index, result
            del value, result  # only the caller should hold the result, to free its memory early


def completed(
    cluster: Cluster,
    function: Callable[..., Any],
    calls: Iterable[tuple[Any, ...]],
    in_flight: int,
    step: str,
    keep: bool = False,
) -> Generator[tuple[int, Any], None, None]:
    """Yield (index, result or exception) of each call as it finishes; the next call then starts.

    With `keep` each result is a future.
    """
    waiting = iter(enumerate(calls))
    places: dict[Future[Any], int] = {}
    running = FinishedTasks(cluster)

    def start(number: int) -> None:
        for index, call in _first(waiting, number):
            future = cluster.client.submit(function, *call, pure=False, key=task_key(step))
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
            del future, result  # only the caller should hold the result, to free its memory early
    finally:
        cancel(cluster, places)


def cancel(cluster: Cluster, futures: Iterable[Future[Any]]) -> None:
    """Cancel tasks; a dead scheduler has no tasks left to cancel."""
    given_up = list(futures)
    if given_up and cluster.client.status == "running":
        cluster.client.cancel(given_up)


def required(outcome: Any, step: str) -> Any:
    """Return an outcome of `outcome_of` if it is a result; raise it if it is an exception."""
    if isinstance(outcome, KilledWorker):
        raise WorkersLost(f"the workers died repeatedly while {step}.", MORE_MEMORY) from outcome
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _first(items: Iterator[Any], number: int) -> Iterator[Any]:
    for _ in range(number):
        try:
            yield next(items)
        except StopIteration:
            return
