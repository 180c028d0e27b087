"""The Dask cluster of a job: threads of this process, local processes, or a running scheduler."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker
from distributed.comm.core import CommClosedError
from distributed.system import MEMORY_LIMIT
from distributed.versions import get_versions
from threadpoolctl import threadpool_limits

from streaming_moments.arguments import require_fitting
from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.pipelines.cluster.worker_loss import WORKER_TIMEOUT
from streaming_moments.pipelines.cluster.worker_rpc import ask_workers
from streaming_moments.printing.remedies import Spell
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.progress import ROOT
from streaming_moments.storage.files.silence import SAID_AFTER

# Loggers to which Dask writes tracebacks. Python prints their messages even without a handler.
_LOOPS = ("asyncio", "tornado.application")
# Code that each worker process runs first. It ignores Ctrl-C: a terminal also sends Ctrl-C to child
# processes, but only the parent process may end them.
_PRELOAD = (
    "import logging, signal\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    f"for name in {_LOOPS}: logging.getLogger(name).setLevel(logging.CRITICAL)\n"
)
_FAULT = (
    "Dask lost a connection, probably to a worker; other workers do its tasks again. --verbose "
    "prints Dask's own message"
)

_PACKAGE = "streaming-moments"
_LOG = logging.getLogger(f"{ROOT}.pipelines")

_FIRST_ANSWER = 20.0  # seconds to wait for the first answer of a scheduler
_CLOSING = (
    30.0  # seconds to wait for the end of a cluster; a worker usually ends within a few seconds
)


class _SilentScheduler(Scheduler):
    """Scheduler without the HTTP server that Dask always starts."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start no HTTP server."""


class _SilentWorker(Worker):
    """Worker without the HTTP server that Dask always starts."""

    def start_http_server(self, *_: object, **__: object) -> None:
        """Start no HTTP server."""


def budget_of(limit: int) -> int:
    """Return the default budget of a job: 60% of the memory of a worker; caches need the rest.

    Examples
    --------
    >>> budget_of(2560 << 20) == 1536 << 20
    True
    """
    return limit * 3 // 5


def limit_for(budget: int) -> int:
    """Return the smallest memory limit, a multiple of 1 MiB, with at least this default budget.

    Examples
    --------
    >>> limit_for(1536 << 20) >> 20, limit_for(10**9) >> 20
    (2560, 1590)
    """
    return -(-budget * 5 // (3 << 20)) << 20


def most_of(limit: int) -> int:
    """Return the largest budget of a job: 75% of the memory of a worker, which Dask pauses at 80%.

    Examples
    --------
    >>> most_of(2048 << 20) == 1536 << 20
    True
    """
    return limit * 3 // 4


class SchedulerLost(StreamingMomentsError):
    """The scheduler at this address died or restarted while a job ran."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def said(self, spell: Spell) -> str:
        return (
            f"the scheduler at {self.address} died or restarted while the job ran. Start the "
            "scheduler and run the job again; all commits so far are stored"
        )


@dataclass(frozen=True)
class Cluster:
    """A running cluster, its size, and the memory budget of a worker.

    Parameters
    ----------
    client : distributed.Client
        Connected client.
    workers : int
        Number of worker processes.
    threads : int
        Threads of the largest worker.
    memory : int
        Budget of a worker process, in bytes.
    worker_timeout : float
        A job fails after this many seconds without a worker.
    address : str
        Address of the scheduler.
    least_limit : int
        Memory limit of the smallest worker so far, in bytes; 0 if no worker has a limit.
    """

    __repr__ = short_repr

    client: Client
    workers: int
    threads: int
    memory: int
    worker_timeout: float = WORKER_TIMEOUT
    address: str = ""
    least_limit: int = 0

    def addresses(self) -> list[str]:
        """Return the addresses of the workers at this moment."""
        return list(identity_of(self.client)["workers"])

    def now(self, memory: int | None) -> Cluster:
        """Return the cluster as it is now, for the next of several jobs; errors as in `connect`."""
        identity = identity_of(self.client)
        if not identity["workers"]:
            return self  # unchanged, because the job waits until there is a worker
        _require_same_version(self.client, self.address)
        return _described(self.client, identity, memory, self.worker_timeout)


def identity_of(client: Client) -> dict[str, Any]:
    """Ask the scheduler for its identity, which contains the identities of all workers.

    Raises OSError if the scheduler does not answer.
    """
    # Ask the scheduler itself: every 2 seconds the client replaces its copy of the identity by one
    # without the workers.
    scheduler: Any = client.scheduler
    identity: dict[str, Any] = client.sync(scheduler.identity, n_workers=-1)
    return identity


@contextmanager
def connect(
    scheduler: str | None = None,
    workers: int = 0,
    memory: int | None = None,
    worker_timeout: float = WORKER_TIMEOUT,
    on_wait: Callable[[str], None] | None = None,
    dashboard: bool = False,
    detail: Callable[[str], None] = _LOG.info,
) -> Iterator[Cluster]:
    """Start a cluster, or connect to a running one, until the end of the block.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as tcp://host:8786.
    workers : int
        Number of local worker processes if there is no scheduler; 0 runs threads in this process.
    memory : int, optional
        Budget of a worker process in bytes; by default 60% of what the worker may use.
    worker_timeout : float
        Seconds to wait for the first worker of a running scheduler, and later for a new worker if
        all are lost.
    on_wait : callable, optional
        Called with a line of text if the scheduler has not answered after two seconds, if there is
        no worker yet, or if Dask reports a fault, such as a lost worker.
    dashboard : bool
        Whether a new cluster serves the pages of Dask on the loopback interface; otherwise it has
        no HTTP server.
    detail : callable
        Called with messages and tracebacks of Dask; by default they go to the log.

    Raises
    ------
    InvalidInput
        Both a scheduler and workers are given, the number of workers is negative, no scheduler
        answers at the address, no worker joins in time, workers have another version of this
        package, or the budget is above 75% of the memory limit of a worker.
    SchedulerLost
        The scheduler died before the work was done.
    """
    require_fitting(
        connect,
        scheduler=scheduler,
        workers=workers,
        memory=memory,
        worker_timeout=worker_timeout,
        on_wait=on_wait,
    )
    if workers < 0 or (scheduler and workers):
        raise InvalidInput(
            f"{workers} workers are requested{' from a running scheduler' if scheduler else ''}",
            "give either {option.scheduler} or a positive {option.workers}",
        )
    if scheduler:
        with _joined(scheduler, on_wait, detail) as client:
            _wait_for_worker(client, scheduler, worker_timeout, on_wait)
            _require_same_version(client, scheduler)
            yield _described(client, identity_of(client), memory, worker_timeout)
        return
    cores = CPU_COUNT
    # do not profile tasks, and do not warn of a slow event loop
    quiet = {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.limit": "1 hour",
        # allow more failures than by default, because Dask blames the death of a worker also on
        # tasks that only waited there
        "distributed.scheduler.allowed-failures": 10,
        # wait longer than by default for the restart of a killed worker
        "distributed.deploy.lost-worker-timeout": f"{WORKER_TIMEOUT}s",
        # on the loopback interface a live process answers within this time
        "distributed.comm.timeouts.connect": "5s",
    }
    # Without a dashboard, sample the statistics of server and machine rarely: no one sees them, and
    # each sample costs CPU time.
    unseen = {
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "5s",
    }
    with dask.config.set(quiet | ({} if dashboard else unseen)), _quiet_logs(on_wait, detail):
        local = _started(workers, max(1, cores // max(workers, 1)), dashboard)
        if workers:
            with closed_in_time(local), Client(local) as client:
                yield _described(
                    client, identity_of(client), memory, worker_timeout, machine_workers=workers
                )
            return
        # Limit BLAS to one thread, because Dask already runs a thread on each core.
        with threadpool_limits(1), local, Client(local) as client:
            yield _described(client, identity_of(client), memory, worker_timeout, 1)


def _started(workers: int, threads: int, dashboard: bool) -> SpecCluster:
    """Start worker processes on the loopback interface, or threads without a network port."""
    common = {
        "protocol": "tcp://" if workers else "inproc://",
        "host": "127.0.0.1" if workers else None,
    }
    pages = {"dashboard": dashboard, "dashboard_address": "127.0.0.1:0" if dashboard else None}
    worker = {**common, "nthreads": threads, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    one: dict[str, Any] = {"cls": _SilentWorker, "options": worker}
    if workers:
        ours = {"worker_class": _SilentWorker, "preload": [_PRELOAD]}
        one = {"cls": Nanny, "options": {**worker, **ours}}
    return SpecCluster(
        workers=dict.fromkeys(range(max(workers, 1)), one),
        scheduler={
            "cls": Scheduler if dashboard else _SilentScheduler,
            "options": {**common, **pages, "port": 0},
        },
        worker=one,
        silence_logs=logging.CRITICAL,
    )


@contextmanager
def closed_in_time(local: SpecCluster, seconds: float = _CLOSING) -> Iterator[None]:
    """Close the cluster at the end; give up waiting after some seconds."""
    try:
        yield
    finally:
        # Dask waits for ever for a worker that died and is just restarting. The processes that
        # remain end together with this process.
        with suppress(TimeoutError):
            local.close(timeout=seconds)


@contextmanager
def connect_by(
    client: Client, memory: int | None = None, worker_timeout: float = WORKER_TIMEOUT
) -> Iterator[Cluster]:
    """Yield the cluster of a client, and leave the client open; arguments as in `connect`.

    Raises InvalidInput if the client is closed or asynchronous.
    """
    if not isinstance(client, Client):
        raise InvalidInput(
            f"the client is of type {type(client).__name__}; give a distributed.Client, or none "
            "to use threads of this process"
        )
    if client.asynchronous or client.status != "running":
        what = "asynchronous" if client.asynchronous else client.status
        raise InvalidInput(f"the client is {what}; give a connected distributed.Client")
    address = str(identity_of(client)["address"])
    with _watched(client, address):
        _wait_for_worker(client, address, worker_timeout, None)
        _require_same_version(client, address)
        yield _described(client, identity_of(client), memory, worker_timeout)


@contextmanager
def _joined(
    scheduler: str, on_wait: Callable[[str], None] | None, detail: Callable[[str], None]
) -> Iterator[Client]:
    try:
        with _heard_of_silence(scheduler, on_wait):
            client = Client(scheduler, timeout=f"{_FIRST_ANSWER:g}s")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"no scheduler answers at {scheduler}; start one with `dask scheduler` and give its "
            "tcp:// address"
        ) from error
    with _quiet_logs(on_wait, detail), client, _watched(client, scheduler):
        yield client


@contextmanager
def _heard_of_silence(scheduler: str, on_wait: Callable[[str], None] | None) -> Iterator[None]:
    """Call `on_wait` once if the block takes more than two seconds."""
    line = f"no answer yet from {scheduler}; trying for up to {_FIRST_ANSWER:g} s"
    timer = threading.Timer(SAID_AFTER, on_wait or _LOG.info, (line,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _watched(client: Client, scheduler: str) -> Iterator[None]:
    """Raise SchedulerLost if the scheduler is lost while a job runs."""
    try:
        yield
    except StreamingMomentsError:
        raise
    except Exception as error:
        # After a restart of the scheduler the client runs again, but its tasks are lost. So
        # CommClosedError means a lost scheduler, whatever the status of the client.
        if client.status == "running" and not isinstance(error, CommClosedError):
            raise
        # raise one error, because a client without its scheduler raises different ones in each call
        raise SchedulerLost(scheduler) from error


class _Faults(logging.Handler):
    """Logging handler for tracebacks of Dask; explains them once, in one line."""

    def __init__(self, tell: Callable[[str], None] | None, detail: Callable[[str], None]) -> None:
        super().__init__()
        self.tell, self.detail = tell, detail

    def emit(self, record: logging.LogRecord) -> None:
        if self.tell is not None:
            self.tell(_FAULT)
            self.tell = None
        self.detail(self.format(record))


@contextmanager
def _quiet_logs(
    tell: Callable[[str], None] | None, detail: Callable[[str], None]
) -> Iterator[None]:
    # name the logger of the client, too, because Dask gives it a level of its own
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", *_LOOPS)]
    before, faults = [(one.level, one.propagate) for one in loggers], _Faults(tell, detail)
    for logger in loggers[:2]:
        logger.setLevel(logging.CRITICAL)
    for logger in loggers[2:]:
        logger.addHandler(faults)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.setLevel(level)
            logger.propagate = propagate
            logger.removeHandler(faults)


def _wait_for_worker(
    client: Client, address: str, timeout: float, on_wait: Callable[[str], None] | None
) -> None:
    if identity_of(client)["workers"]:
        return
    if on_wait:
        on_wait(f"no worker at {address} yet; waiting up to {timeout:g} seconds")
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        with suppress(TimeoutError):
            # submit a task, because a cluster that scales from zero only starts workers for tasks
            client.submit(int, pure=False).result(timeout=left)
        if identity_of(client)["workers"]:
            return
    raise InvalidInput(
        f"the cluster at {address} has had no workers for {timeout:g} seconds",
        "start some with `dask worker`, or wait longer with {option.worker_timeout}",
    )


def _require_same_version(client: Client, address: str) -> None:
    """Refuse workers that have another version of this package, and so may count differently."""
    ours = get_versions([_PACKAGE])["packages"].get(_PACKAGE)
    answers = ask_workers(client, get_versions, [_PACKAGE])
    # leave out workers that died meanwhile and returned nothing
    theirs = {
        worker: found["packages"].get(_PACKAGE)
        for worker, found in answers.items()
        if isinstance(found, dict)
    }
    others = {worker: version for worker, version in theirs.items() if version != ours}
    if others:
        worker, version = next(iter(others.items()))
        raise InvalidInput(
            f"{len(others)} of {len(theirs)} workers of the cluster at {address} have another "
            f"version of {_PACKAGE}: {worker} has {version or 'none'}, this command is {ours}; "
            "install the same version everywhere"
        )


def _described(
    client: Client,
    identity: dict[str, Any],
    memory: int | None,
    worker_timeout: float,
    machine_workers: int = 0,
) -> Cluster:
    info = identity["workers"]
    threads = max(int(worker["nthreads"]) for worker in info.values())
    limits = [int(worker["memory_limit"]) for worker in info.values() if worker["memory_limit"]]
    least = min(limits, default=MEMORY_LIMIT // max(machine_workers, 1))
    if memory is not None and limits and memory > most_of(least):
        raise InvalidInput(
            f"a memory of {memory:,} bytes is above 75% of the memory limit of a worker "
            f"({most_of(least):,} of {least:,} bytes), and Dask pauses workers at 80%.",
            "Lower {option.memory}, or start workers with a higher --memory-limit",
        )
    budget = budget_of(least) if memory is None else memory
    address = identity["address"]
    smallest = min(limits, default=0)
    return Cluster(client, len(info), threads, budget, worker_timeout, address, smallest)
