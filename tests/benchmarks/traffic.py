"""Bytes that each worker receives in an update: they must not grow with the documents.

`python tests/benchmarks/traffic.py` prints a JSON line for each number of processes and shards.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import LocalCluster, Worker, WorkerPlugin
from distributed.comm import tcp

from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.gathering import plan_of
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import ShardFormat

DOCUMENTS, LENGTH, WORDS, TOPICS = 2000, 60, 4000, 12
MEMORY = 2 << 30
SEED = 15


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


def received(dask_worker: Worker) -> int:
    """Bytes that came to this process since the plugin is there."""
    plugin: Any = dask_worker.plugins[Received.name]
    return int(plugin.total)


def measured(processes: int, shards: list[Any], folder: Path) -> dict[str, float]:
    """One update on so many processes of one thread."""
    local = LocalCluster(
        n_workers=processes,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit=0,
        silence_logs=logging.CRITICAL,
    )
    with local, connect(scheduler=local.scheduler_address, memory=MEMORY) as cluster:
        options = PilotOptions(vocabulary_size=WORDS, core=1024, max_topics=TOPICS)
        form = ShardFormat(ids_column="ids")
        store = create(str(folder), shards, form, None, options, Run(cluster))
        cluster.client.register_plugin(Received())
        before: Any = cluster.client.run(received)
        start = time.perf_counter()
        result = update(store, shards, Run(cluster))
        seconds = time.perf_counter() - start
        after: Any = cluster.client.run(received)
        files = sum(shard.size for shard in shards)
        most = max(after[address] - before[address] for address in before)
        state, groups = store.layout.state_bytes, result.store.version
        bound = 1.2 * state * (processes - 1) / processes * groups
    return {
        "processes": processes,
        "shards": len(shards),
        "received_bytes_most": most,
        "shard_bytes": files,
        "state_bytes": state,
        "passes": plan_of(store, Run(cluster)).passes,
        "bound_bytes": bound,
        "seconds": seconds,
    }


def main() -> None:
    rng = np.random.default_rng(SEED)
    weights = 1 / np.arange(1, WORDS + 1)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "shards"
        folder.mkdir()
        for number in range(40):
            ids = rng.choice(WORDS, (DOCUMENTS, LENGTH), p=weights / weights.sum())
            table = pa.table({"ids": pa.array(list(ids.astype(np.int32)), pa.list_(pa.int32()))})
            pq.write_table(table, folder / f"{number:02}.parquet")
        shards = list_shards([str(folder)])
        for processes in map(int, sys.argv[1:] or ("2", "4")):
            for number in (20, 40):
                store = Path(place) / f"store-{processes}-{number}"
                print(json.dumps(measured(processes, shards[:number], store)), flush=True)


if __name__ == "__main__":
    main()
