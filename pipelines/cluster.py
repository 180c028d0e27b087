"""The Dask cluster a job runs on: embedded threads, local processes, or one by address."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from distributed.system import MEMORY_LIMIT
from threadpoolctl import threadpool_limits

from streaming_moments.errors import InvalidInput

# What is left of a machine for the operating system, the page cache and the scheduler.
_SHARE_OF_MEMORY = 0.6

WORKER_TIMEOUT = 300.0  # seconds: a cluster that scales from zero may take minutes


@dataclass(frozen=True)
class Cluster:
    """A running cluster, its size and the memory a worker may use.

    Parameters
    ----------
    client : distributed.Client
        Connected.
    workers : int
        Worker processes.
    threads : int
        Threads of a worker, those of the largest.
    memory : int
        Budget of a worker process, in bytes.
    embedded : bool
        Whether the worker lives in this process, whose memory:// it then shares.
    worker_timeout : float
        Seconds without any worker after which a job gives up.
    """

    client: Client
    workers: int
    threads: int
    memory: int
    embedded: bool
    worker_timeout: float = WORKER_TIMEOUT


@contextmanager
def connect(
    scheduler: str | None = None, workers: int = 0, memory: int | None = None
) -> Iterator[Cluster]:
    """Start a cluster or join one, and leave it as it was found.

    Parameters
    ----------
    scheduler : str, optional
        Address of a running scheduler, such as tcp://host:8786.
    workers : int
        Without a scheduler: so many local worker processes; 0 runs threads in this process.
    memory : int, optional
        Budget of a worker process in bytes; by default 60% of what the worker may use.

    Raises
    ------
    InvalidInput
        Both a scheduler and workers, a negative number, or an address nobody answers.
    """
    if workers < 0 or (scheduler and workers):
        raise InvalidInput(
            f"{workers} workers asked for{' of a running scheduler' if scheduler else ''}; give "
            "either --scheduler or a positive --workers"
        )
    if scheduler:
        with _joined(scheduler) as client:
            yield _described(client, memory, embedded=False)
        return
    cores = CPU_COUNT
    # a failing task is reported by us in one line; the worker's own account would repeat it
    quiet = {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.limit": "1 hour",
        # a death is blamed on all that waited on the worker too
        "distributed.scheduler.allowed-failures": 10,
    }
    with dask.config.set(quiet), _quiet_logs():
        if workers:
            local = LocalCluster(
                n_workers=workers,
                threads_per_worker=max(1, cores // workers),
                dashboard_address=":0",
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
            with local, Client(local) as client:
                yield _described(client, memory, embedded=False, machine_workers=workers)
            return
        local = LocalCluster(
            n_workers=1,
            threads_per_worker=cores,
            processes=False,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
        # Dask fills the cores with threads of its own; those of BLAS would fight with them
        with threadpool_limits(1), local, Client(local) as client:
            yield _described(client, memory, embedded=True, machine_workers=1)


@contextmanager
def _joined(scheduler: str) -> Iterator[Client]:
    try:
        client = Client(scheduler, timeout="20s")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"no scheduler answers at {scheduler}; start one with `dask scheduler` and give its "
            "tcp:// address"
        ) from error
    with _quiet_logs(), client:
        yield client


@contextmanager
def _quiet_logs() -> Iterator[None]:
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _described(
    client: Client, memory: int | None, embedded: bool, machine_workers: int = 0
) -> Cluster:
    info: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    if not info:
        raise InvalidInput("the cluster has no workers; start some with `dask worker`")
    threads = max(int(worker["nthreads"]) for worker in info.values())
    limits = [int(worker["memory_limit"]) for worker in info.values() if worker["memory_limit"]]
    available = MEMORY_LIMIT // max(machine_workers, 1)
    allowed = int(_SHARE_OF_MEMORY * (min(limits) if limits else available))
    return Cluster(client, len(info), threads, allowed if memory is None else memory, embedded)
