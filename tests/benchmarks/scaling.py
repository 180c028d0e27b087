"""How this project scales: with worker processes, with documents, and against the machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from corpora import ALPHA0, N_WORDS, Addresses, Planted
from distributed import LocalCluster
from measure import Clock, peak_memory
from ours import PILOT_DOCUMENTS, new_store, projected_bytes, scratch
from threadpoolctl import threadpool_limits

from streaming_moments import Basis, RowBlock
from streaming_moments.numerics.packing import packed_size
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.cluster import connect
from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.cluster.progress import Silent
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import run_bounded
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.kernels import triple_kernels
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore

STORE_TOPICS = 32
AMPLE_MEMORY = 2 << 30
# About the least that an update of a planted corpus asks for: groups of some 30,000 documents.
TIGHT_MEMORY = 720 << 20
TEXT_TOPICS = 20
_MATRIX = 2048
# Long enough that the clock's resolution and a late thread do not matter.
_KERNEL_SECONDS = 2.0


@dataclass(frozen=True)
class UpdateScaling:
    """An update on so many worker processes of one thread each; the cluster stands before it."""

    corpus: Planted
    processes: int
    memory: int = AMPLE_MEMORY

    @property
    def name(self) -> str:
        tight = "" if self.memory == AMPLE_MEMORY else f", {self.memory >> 20} MiB"
        return f"update {self.corpus.name}, {self.processes} x 1 thread{tight}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        local = LocalCluster(
            n_workers=self.processes,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
        )
        shards = list_shards([str(self.corpus.shards)])
        with (
            scratch(self.corpus) as place,
            local,
            connect(scheduler=local.scheduler_address, memory=self.memory) as cluster,
        ):
            store = new_store(place / "store", shards, self.corpus.n_topics, cluster)
            # a process compiles or loads the kernels, and the pandas that pyarrow takes where a
            # peer has brought it, once in its life: not the update's cost
            load_kernels()
            cluster.client.run(load_kernels)
            with clock.running("update"):
                store = update(store, shards, Run(cluster)).store
            peaks = cluster.client.run(peak_memory)
            projected = plan_of(store, Run(cluster)).peak_bytes
        return {"worker_peak_bytes": max(peaks.values()), "projected_bytes": projected}


@dataclass(frozen=True)
class StoreCosts:
    """Update, refit, write and commit with room for 32 topics, embedded."""

    corpus: Planted

    @property
    def name(self) -> str:
        return f"store of {self.corpus.name}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        shards = list_shards([str(self.corpus.shards)])
        with scratch(self.corpus) as place, connect() as cluster:
            store = new_store(place / "store", shards, STORE_TOPICS, cluster)
            empty = new_store(place / "copy", shards, STORE_TOPICS, cluster)
            load_kernels()
            with clock.running("update"):
                store = update(store, shards, Run(cluster)).store
            refits = []
            for _ in range(3):
                with clock.running("refit"):
                    start = time.perf_counter()
                    refit(store, STORE_TOPICS, ALPHA0, Run(cluster))
                    refits.append(time.perf_counter() - start)
            projected = projected_bytes(store, STORE_TOPICS, cluster)
            write, commit = _write_and_commit(store, empty, clock)
        return {
            "refit_first": refits[0],
            "refit_median": float(np.median(refits)),
            "write": write,
            "commit": commit,
            "segments": len(store.commit.segments),
            "projected_bytes": projected,
        }


@dataclass(frozen=True)
class TextReading:
    """Text shards on two threads: reading and counting words alone, or the whole update."""

    corpus: Addresses
    whole: bool

    @property
    def name(self) -> str:
        return f"text of {self.corpus.name}, {'update' if self.whole else 'reading alone'}"

    def run(self, clock: Clock) -> Mapping[str, float]:
        policy = TokenPolicy.for_languages(["english"], passage_words=200)
        shards = list_shards([str(self.corpus.folder / "shards")])
        form, options = ShardFormat("parquet"), PilotOptions(max_topics=TEXT_TOPICS)
        with scratch(self.corpus) as place, connect() as cluster:
            # each shard holds all addresses
            store = create(str(place / "store"), shards[:1], form, policy, options, Run(cluster))
            load_kernels()
            if self.whole:
                with clock.running("update"):
                    tokens = update(store, shards, Run(cluster)).tokens
            else:
                context = cluster.client.submit(ReadingContext.of, store, LIMITS, None)
                calls = [(shard, context) for shard in shards]
                with clock.running("read"):
                    counts = run_bounded(
                        cluster, count_tokens, calls, 2 * cluster.threads, Silent(), "reading"
                    )
                tokens = sum(counts)
        return {"tokens": tokens, "shard_bytes": sum(shard.size for shard in shards)}


@dataclass(frozen=True)
class TripleKernel:
    """Useful GFLOP/s of the triple kernel beside a dense float64 product, same threads.

    Useful: s (s + 1) operations a nonzero, which is one triangle; the kernel computes the whole
    square, 2 s^2.
    """

    corpus: Planted
    threads: int

    @property
    def name(self) -> str:
        return f"triple kernel on {self.corpus.name}, {self.threads} thread" + (
            "s" if self.threads > 1 else ""
        )

    def run(self, clock: Clock) -> Mapping[str, float]:
        counts = self.corpus.counts()
        batch = counts.select(0, min(PILOT_DOCUMENTS, counts.documents))
        basis = Basis.from_pilot(batch, self.corpus.n_topics)
        projected = ProjectedBatch.of(batch, basis)
        packed = packed_size(basis.columns)
        sums = [
            np.zeros((RowBlock(index, self.threads).size(N_WORDS), packed), dtype=np.int64)
            for index in range(self.threads)
        ]

        def triples(index: int) -> None:
            triple_kernels.add_triples(
                index,
                self.threads,
                projected.starts,
                projected.documents,
                projected.values,
                projected.projections,
                projected.long,
                sums[index],
            )

        def all_triples() -> None:
            list(pool.map(triples, range(self.threads)))

        left, right = np.random.default_rng(0).standard_normal((2, _MATRIX, _MATRIX))
        product = np.empty_like(left)

        def dense() -> None:
            np.matmul(left, right, out=product)

        # in turn, so that neither has the quieter machine
        kernel_times, dense_times = [], []
        with ThreadPoolExecutor(self.threads) as pool, clock.running("both"):
            for _ in range(3):
                with threadpool_limits(1):
                    kernel_times.append(_seconds(all_triples))
                with threadpool_limits(self.threads):
                    dense_times.append(_seconds(dense))
        entries, s = batch.words.size, basis.columns
        kernel = entries * s * (s + 1) / min(kernel_times) / 1e9
        return {
            "columns": s,
            "useful_gflops": kernel,
            "done_gflops": entries * 2 * s * s / min(kernel_times) / 1e9,
            "dense_gflops": 2 * _MATRIX**3 / min(dense_times) / 1e9,
        }


def count_tokens(shard: Shard, context: ReadingContext) -> int:
    """Read a shard and count its words; the counts are dropped."""
    return sum(read.batch.tokens for read in context.read(shard))


def load_kernels() -> None:
    """Run every kernel of an update once, on almost nothing."""
    from streaming_moments import MomentStatistics, Vocabulary
    from streaming_moments.storage.counting.ids import IdIndex, count_ids
    from streaming_moments.storage.counting.reading import count_texts
    from streaming_moments.storage.formats import join_ids

    vocabulary = Vocabulary(("3", "5", "9"), core=3, token_ids=(3, 5, 9))
    chunk = join_ids([(np.array([9, 3]), np.array([1, 2]))] * 2)
    batch, _ = count_ids(chunk, IdIndex.of(vocabulary))
    MomentStatistics.of(batch, Basis(np.eye(3, 2, dtype=np.int8), 3, vocabulary.fingerprint))
    policy = TokenPolicy()
    terms = Vocabulary(("law", "sea"), core=1, policy=policy.fingerprint)
    count_texts(["sea and law"], terms, policy)


def _write_and_commit(store: MomentStore, empty: MomentStore, clock: Clock) -> tuple[float, float]:
    """Seconds to write a segment of all rows, and to commit it."""
    statistics = store.load()
    histogram = statistics.length_histogram
    shard = ShardRecord("all.parquet", 1, "sha256:0", histogram.n_documents, histogram.C1)
    with clock.running("write"):
        start = time.perf_counter()
        segment = empty.write_segment(statistics, [shard])
        write = time.perf_counter() - start
    with clock.running("commit"):
        start = time.perf_counter()
        empty.append(segment)
        commit = time.perf_counter() - start
    return write, commit


def _seconds(work: Callable[[], None]) -> float:
    """Mean seconds of a repetition, for about two seconds, after one that does not count."""
    work()
    start = time.perf_counter()
    repetitions = 0
    while time.perf_counter() - start < _KERNEL_SECONDS:
        work()
        repetitions += 1
    return (time.perf_counter() - start) / repetitions
