"""What an update moves and repeats: bytes to each worker, the close, the coordinator, deaths.

Processes beside one another say what they receive and add up; on a machine of fewer cores their
seconds say nothing.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import LocalCluster, Worker, WorkerPlugin
from distributed.comm import tcp
from measure import Clock, peak_memory
from scaling import AMPLE_MEMORY, load_kernels

from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.cluster import Cluster, connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.counting import reading
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.segments.segments import SegmentWriter
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore

WORDS, CORE, TOPICS, LENGTH = 4000, 1024, 12, 60
DOCUMENTS, FEW_DOCUMENTS = 2000, 1000
SEED = 15
_POLL = 0.01
_PATIENCE = 300.0
_IDLE = 5.0


@dataclass(frozen=True)
class Traffic:
    """Bytes that come to each worker; they must not grow with the shards."""

    processes: int
    shards: int
    threads: int = 1

    @property
    def name(self) -> str:
        threads = "thread" if self.threads == 1 else "threads"
        return f"traffic, {self.shards} shards, {self.processes} x {self.threads} {threads}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        with (
            TemporaryDirectory() as place,
            _processes(self.processes, self.threads) as cluster,
        ):
            shards = written(Path(place) / "shards", self.shards, DOCUMENTS)
            store = _new_store(Path(place) / "store", shards, cluster)
            shutil.copytree(store.url, f"{place}/copy")
            _warmed(cluster)
            cluster.client.register_plugin(Received())
            before: Any = cluster.client.run(received)
            steps = Steps()
            with clock.running("update"):
                updated = update(store, shards, Run(cluster, steps)).store
            after: Any = cluster.client.run(received)
            peaks: Any = cluster.client.run(peak_memory)
            plan = plan_of(store, Run(cluster))
            state, groups = store.layout.state_bytes, updated.version - store.version
            others = (self.processes - 1) / self.processes
            with connect(memory=AMPLE_MEMORY) as alone:
                again = update(MomentStore.open(f"{place}/copy"), shards, Run(alone)).store
            return {
                "received_bytes": max(after[address] - before[address] for address in before),
                "bound_bytes": 1.2 * state * others * groups,
                "state_bytes": state,
                "close_seconds": steps.close,
                "passes": plan.passes,
                "same_bits": _same(updated, again),
                "worker_peak_bytes": max(peaks.values()),
                "projected_bytes": plan.peak_bytes,
            }


@dataclass(frozen=True)
class SmallShards:
    """Processor time of client and scheduler, which share a process, for shards that are small."""

    shards: int
    processes: int = 2

    @property
    def name(self) -> str:
        return f"small shards, {self.shards:,} of {FEW_DOCUMENTS:,} documents"

    def run(self, clock: Clock) -> Mapping[str, float]:
        with TemporaryDirectory() as place, _processes(self.processes, 1) as cluster:
            shards = written(Path(place) / "shards", self.shards, FEW_DOCUMENTS)
            store = _new_store(Path(place) / "store", shards, cluster)
            _warmed(cluster)
            # heartbeats go on whatever there is to do
            idle = _processor_time(lambda: time.sleep(_IDLE)) / _IDLE
            start = time.perf_counter()
            with clock.running("update"):
                spent = _processor_time(lambda: update(store, shards, Run(cluster)))
            beyond = spent - idle * (time.perf_counter() - start)
        return {
            "cpu_ms_a_shard": 1000 * spent / self.shards,
            "cpu_ms_a_shard_beyond_idle": 1000 * beyond / self.shards,
            "idle_cpu_a_second": idle,
        }


@dataclass(frozen=True)
class Killed:
    """Shards read once more after a worker was killed: half of them read, or in the close."""

    processes: int
    shards: int = 60
    in_close: bool = False

    @property
    def name(self) -> str:
        when = " in the close" if self.in_close else ""
        return f"killed{when}, one of {self.processes} processes, {self.shards} shards"

    def run(self, clock: Clock) -> Mapping[str, float]:
        with TemporaryDirectory() as place, _processes(self.processes, 1) as cluster:
            shards = written(Path(place) / "shards", self.shards, DOCUMENTS)
            store = _new_store(Path(place) / "store", shards, cluster)
            shutil.copytree(store.url, f"{place}/copy")
            _warmed(cluster)
            with clock.running("undisturbed"):
                undisturbed = update(MomentStore.open(f"{place}/copy"), shards, Run(cluster)).store
            log, writes = Path(place) / "reads", Path(place) / "writes"
            log.touch()
            writes.touch()
            cluster.client.register_plugin(WorkLog(str(log), str(writes)))
            # half of the shards begun, or the second row block added up
            moment = (writes, 2) if self.in_close else (log, self.shards // 2)
            killer = _Killer(log, *moment)
            killer.start()
            with clock.running("killed"):
                updated = update(store, shards, Run(cluster)).store
            killer.join()
            read = log.read_text().splitlines()
            # what it was reading as it died is not among what it held
            return {
                "repeated": len(read) - self.shards,
                "read_by_the_dead": killer.held,
                "same_bits": _same(updated, undisturbed),
            }


class Received(WorkerPlugin):
    """Counts the bytes of all messages that come to the process."""

    name = "received"

    def setup(self, worker: Worker) -> None:
        self.total = 0
        from_frames = tcp.from_frames

        async def counted(frames: Any, *arguments: Any, **named: Any) -> Any:
            self.total += sum(memoryview(frame).nbytes for frame in frames)
            return await from_frames(frames, *arguments, **named)

        tcp.from_frames = counted


class WorkLog(WorkerPlugin):
    """Each worker leaves a line with its process for each shard, and row block, that it begins."""

    name = "work-log"

    def __init__(self, reads: str, writes: str) -> None:
        self.reads, self.writes = reads, writes

    def setup(self, worker: Worker) -> None:
        read, write = reading.read_indexed, SegmentWriter.write_block

        def reading_logged(shard: Shard, *arguments: Any) -> Any:
            self._note(self.reads, shard.url)
            return read(shard, *arguments)

        def writing_logged(writer: SegmentWriter, statistics: Any) -> Any:
            self._note(self.writes, str(statistics.block.index))
            return write(writer, statistics)

        reading.read_indexed = reading_logged
        patched: Any = SegmentWriter
        patched.write_block = writing_logged

    def _note(self, path: str, what: str) -> None:
        with open(path, "a") as log:
            log.write(f"{os.getpid()} {what}\n")


@dataclass
class Steps:
    """When shards were read, and when row blocks were written."""

    read: float = 0.0
    written: float = 0.0

    def advance(self, step: str, done: int, total: int) -> None:
        if step == "reading shards":
            self.read = time.perf_counter()
        else:
            self.written = time.perf_counter()

    @property
    def close(self) -> float:
        """Seconds from the last shard read to the last row block written."""
        return self.written - self.read


@dataclass
class _Killer:
    """Ends the process that began the last of so many pieces of work; counts what it had read."""

    log: Path
    watched: Path
    after: int
    held: int = 0
    _thread: Thread = field(init=False)

    def start(self) -> None:
        self._thread = Thread(target=self._kill, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _kill(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        lines: list[str] = []
        while len(lines) < self.after and time.monotonic() < deadline:
            time.sleep(_POLL)
            lines = self.watched.read_text().splitlines()
        process = lines[-1].split()[0]
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
        lines = self.log.read_text().splitlines()
        self.held = sum(line.split()[0] == process for line in lines)


def _processor_time(work: Callable[[], object]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def received(dask_worker: Worker) -> int:
    """Bytes that came to this process since the plugin is there."""
    plugin: Any = dask_worker.plugins[Received.name]
    return int(plugin.total)


def written(folder: Path, shards: int, documents: int) -> list[Shard]:
    """Shards of token ids by Zipf's law."""
    folder.mkdir()
    rng = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, WORDS + 1)
    offsets = pa.array(np.arange(0, documents * LENGTH + 1, LENGTH), pa.int32())
    for number in range(shards):
        ids = rng.choice(WORDS, documents * LENGTH, p=weights / weights.sum()).astype(np.int32)
        table = pa.table({"ids": pa.ListArray.from_arrays(offsets, pa.array(ids))})
        pq.write_table(table, folder / f"{number:04}.parquet")
    return list(list_shards([str(folder)]))


@contextmanager
def _processes(number: int, threads: int) -> Iterator[Cluster]:
    """A cluster whose scheduler is in this process."""
    local = LocalCluster(
        n_workers=number,
        threads_per_worker=threads,
        dashboard_address=":0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    with local, connect(scheduler=local.scheduler_address, memory=AMPLE_MEMORY) as cluster:
        yield cluster


def _new_store(place: Path, shards: list[Shard], cluster: Cluster) -> MomentStore:
    options = PilotOptions(vocabulary_size=WORDS, core=CORE, max_topics=TOPICS)
    form = ShardFormat(ids_column="ids")
    return create(str(place), shards, form, None, options, Run(cluster))


def _warmed(cluster: Cluster) -> None:
    """What a process loads once in its life is not the update's."""
    load_kernels()
    cluster.client.run(load_kernels)


def _same(one: MomentStore, other: MomentStore) -> bool:
    arrays, others = one.load().arrays(), other.load().arrays()
    return all(np.array_equal(array, others[name]) for name, array in arrays.items())
