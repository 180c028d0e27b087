"""A Dask cluster and coordinators that are made to be killed: their processes start by a fork."""

import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from select import select

import dask
import psutil
from distributed import Client, LocalCluster, Status, WorkerPlugin
from forking import PATIENCE, forking, forking_again, running, serving

from streaming_moments.pipelines.aggregation import group_runner
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.reduction import Reduction
from streaming_moments.pipelines.aggregation.sums import ProcessSums
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.store.store import MomentStore


class ReadLog(WorkerPlugin):
    """Each worker leaves a line for each shard it reads."""

    name = "read-log"

    def __init__(self, folder):
        self.folder = Path(folder)

    def setup(self, worker):
        read = ReadingContext.read

        def logged(context, shard, *arguments):
            with open(self.folder / "reads", "a") as log:
                log.write(f"{shard.url}\n")
            return read(context, shard, *arguments)

        ReadingContext.read = logged


class CloseSteps(WorkerPlugin):
    """Each worker counts the steps of the closes; whoever takes one that was ordered dies of it.

    So does whoever writes the row block that is deadly.
    """

    name = "close-steps"

    def __init__(self, folder):
        self.folder = Path(folder)

    def setup(self, worker):
        watch(self.take, (ProcessSums, "freeze"), (ProcessSums, "rows"), (Folder, "write"))
        write, deadly = SegmentWriter.write_block, self.folder / "deadly"

        def dying(writer, statistics):
            with suppress(FileNotFoundError):
                if statistics.block.index == int(deadly.read_text()):
                    (self.folder / f"died-{os.getpid()}").touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            return write(writer, statistics)

        SegmentWriter.write_block = dying

    def take(self):
        log = os.open(self.folder / "steps", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, b".")
        step = os.lseek(log, 0, os.SEEK_CUR)
        os.close(log)
        # one alone takes the order
        with suppress(FileNotFoundError):
            if step >= int((self.folder / "order").read_text()):
                (self.folder / "order").rename(self.folder / f"died-{os.getpid()}")
                os.kill(os.getpid(), signal.SIGKILL)


def watch(take, *steps):
    """Take a step before and after each call of these functions."""
    for owner, name in steps:
        setattr(owner, name, _watched(getattr(owner, name), take))


def _watched(function, take):
    def called(*arguments, **named):
        take()
        result = function(*arguments, **named)
        take()
        return result

    return called


@dataclass(frozen=True)
class KillableCluster:
    """A running cluster whose workers come back when they are killed."""

    address: str
    folder: Path
    killed: set[str] = field(default_factory=set)

    def reads(self):
        """URLs of the shards read so far, in order, as often as they were read."""
        log = self.folder / "reads"
        return log.read_text().splitlines() if log.exists() else []

    def workers(self):
        """Names of the workers that were not killed: process id and start, as ids come again."""
        names = sorted(path.name for path in (self.folder / "workers").iterdir())
        return [worker for worker in names if worker not in self.killed]

    def order_death(self, steps):
        """One worker is to die in so many steps of a close; the order before is taken back."""
        log, order = self.folder / "steps", self.folder / "order"
        taken = log.stat().st_size if log.exists() else 0
        order.with_name("new").write_text(str(taken + steps))
        order.with_name("new").rename(order)

    def make_deadly(self, block):
        """Whoever writes this row block is to die."""
        (self.folder / "deadly").write_text(str(block))

    def call_off(self):
        """Nobody is to die."""
        for order in ("order", "deadly"):
            (self.folder / order).unlink(missing_ok=True)

    def died(self):
        """How many have died of an order since this was asked last."""
        dead = [path.name.partition("-")[2] for path in self.folder.glob("died-*")]
        for process in dead:
            self.killed.update(one for one in self.workers() if one.startswith(f"{process}@"))
            (self.folder / f"died-{process}").unlink()
        return len(dead)

    def kill_worker(self, rng):
        """SIGKILL to one of the workers, as soon as there is one."""
        while True:
            wait_for(self.workers)
            worker = rng.choice(self.workers())
            self.killed.add(worker)
            process = running(*worker.split("@"))
            if process is None:
                continue  # it left by itself: another is to be killed
            with suppress(psutil.NoSuchProcess):
                process.kill()
                return


def wait_for(condition):
    """Wait until a condition holds; an error if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{condition} did not come true"
        time.sleep(0.005)


@contextmanager
def killable_cluster(folder, workers=2):
    """Start one, in a process of its own."""
    (folder / "workers").mkdir(parents=True)
    with serving(_serve, str(folder), workers) as (_, address):
        cluster = KillableCluster(address, folder)
        wait_for(lambda: len(cluster.workers()) == workers)
        yield cluster


def coordinate(address, store, shards, plan):
    """Update a store on a cluster: what a coordinator process does."""
    with connect(address, worker_timeout=PATIENCE) as cluster:
        update(MomentStore.open(store), list_shards([shards]), Run(cluster), plan=plan)


def die_after(steps, *closing):
    """End this process by SIGKILL after so many steps of these calls and of what it writes."""
    taken = count(1)

    def take():
        if next(taken) > steps:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(take, *closing, (Folder, "write"), (Folder, "create"))


def coordinate_until(steps, *arguments):
    """`coordinate`, killed after so many steps of its closes."""
    closing = (group_runner, "settle"), (Reduction, "run"), (Reduction, "seal")
    die_after(steps, *closing)
    coordinate(*arguments)


def coordinator(*arguments, work=coordinate):
    """A process that coordinates; forked from one that has imported everything."""
    process = forking().Process(target=work, args=arguments)
    process.start()
    return process


def _serve(folder, workers, lifeline, address):
    forking_again()  # the workers, as Dask asks for them
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stderr.fileno())
    dask.config.set(
        {
            "distributed.worker.multiprocessing-method": "forkserver",
            "distributed.worker.profile.enabled": False,
            "distributed.scheduler.allowed-failures": 10,
            # a worker killed again 15 s after its first death would not come back
            "distributed.deploy.lost-worker-timeout": "1 day",
        }
    )
    with (
        LocalCluster(
            workers, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as local,
        Client(local) as client,
    ):
        client.register_plugin(ReadLog(folder))
        client.register_plugin(CloseSteps(folder))
        with open(address.number, "w") as told:
            print(local.scheduler_address, file=told)
        while not select([lifeline.number], [], [], 0.005)[0]:
            # a nanny brings back only workers that it has seen running
            for nanny in list(local.workers.values()):
                if not nanny.process or nanny.process.status != Status.running:
                    continue
                # it may be gone at any moment
                with suppress(psutil.NoSuchProcess, TypeError):
                    worker = int(nanny.process.pid)
                    started = psutil.Process(worker).create_time()
                    (Path(folder) / "workers" / f"{worker}@{started}").touch()
