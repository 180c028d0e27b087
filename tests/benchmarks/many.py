"""Very many documents on one machine: seconds, memory and error."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from corpora import ALPHA0, N_WORDS, draw_documents, planted_topics, write_counts
from distributed import LocalCluster
from measure import Clock, peak_memory
from methods import CORES
from ours import new_store
from scaling import AMPLE_MEMORY, load_kernels

from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.storage.listing import list_shards
from streaming_moments.synthetic.corpora import topic_error

TOPICS, LENGTH = 20, 100
SHARD_DOCUMENTS = 50_000
_FEW = 10  # of the shards are the first tenth


@dataclass(frozen=True)
class ManyDocuments:
    """One worker process with a thread for each core; shards are drawn, counted and removed.

    Shard i is drawn with the seed (`seed`, i), topics with `seed`.
    """

    cache: str
    documents: int
    seed: int = 0

    @property
    def name(self) -> str:
        return f"many, {self.documents:,} documents of {LENGTH} tokens"

    def run(self, clock: Clock) -> Mapping[str, float]:
        place = Path(self.cache) / f".many-{self.documents}"
        shutil.rmtree(place, ignore_errors=True)
        (place / "shards").mkdir(parents=True)
        try:
            self._write(place / "shards")
            return self._count(place, clock)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        numbers = range(max(_FEW, self.documents // SHARD_DOCUMENTS))
        each = self.documents // len(numbers)
        calls = [(str(folder / f"{i:05}.parquet"), each, self.seed, i) for i in numbers]
        with ProcessPoolExecutor(CORES, get_context("spawn")) as pool:
            list(pool.map(_write_shard, calls))

    def _count(self, place: Path, clock: Clock) -> Mapping[str, float]:
        local = LocalCluster(
            n_workers=1,
            threads_per_worker=CORES,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
        shards = list(list_shards([str(place / "shards")]))
        with local, connect(scheduler=local.scheduler_address, memory=AMPLE_MEMORY) as cluster:
            with clock.running("create"):
                store = new_store(place / "store", shards, TOPICS, cluster)
            load_kernels()
            cluster.client.run(load_kernels)
            peaks = []
            few = len(shards) // _FEW
            for stage, some in (("first tenth", shards[:few]), ("others", shards[few:])):
                with clock.running(stage):
                    store = update(store, some, Run(cluster)).store
                peaks.append(max(cluster.client.run(peak_memory).values()))
            projected = plan_of(store, Run(cluster)).peak_bytes
            with clock.running("refit"):
                model = refit(store, TOPICS, ALPHA0, Run(cluster))
            topics = np.zeros((N_WORDS, TOPICS))
            topics[list(store.vocabulary.token_ids or ())] = model.topics
            return {
                "documents": store.commit.documents,
                "segments": len(store.commit.segments),
                "shard_bytes": sum(shard.size for shard in shards),
                "store_bytes": sum(f.stat().st_size for f in (place / "store").rglob("*")),
                "error": topic_error(topics, planted_topics(TOPICS, self.seed)),
                "tenth_peak_bytes": peaks[0],
                "worker_peak_bytes": peaks[1],
                "projected_bytes": projected,
            }


def _write_shard(call: tuple[str, int, int, int]) -> None:
    path, documents, seed, number = call
    rng = np.random.default_rng([seed, number])
    write_counts(draw_documents(planted_topics(TOPICS, seed), documents, rng, LENGTH), Path(path))
