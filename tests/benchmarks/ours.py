"""This project: from Parquet to topics by the pipelines, and from counts by the Python API."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from corpora import ALPHA0, N_WORDS, Addresses, Planted
from measure import Clock
from methods import CORES, Fitted, Prior
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from streaming_moments import (
    Basis,
    CountBatch,
    MomentStatistics,
    RowBlock,
    TopicModel,
    fit,
    merge_blocks,
)
from streaming_moments.decompositions.svtd import Rotation
from streaming_moments.pipelines.cluster.cluster import Cluster, connect
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.gathering import plan_of
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore

IDS = ShardFormat("parquet", ids_column="ids", counts_column="counts")
PILOT_DOCUMENTS = 20_000
_BATCH_DOCUMENTS = 20_000


@dataclass(frozen=True)
class FromCounts:
    """Basis.from_pilot on the first 20,000 documents, statistics by row blocks, fit."""

    rotation: Rotation

    @property
    def name(self) -> str:
        return f"this project from counts, {self.rotation}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        return batch, n_topics, prior

    def fit(self, prepared: Any) -> TopicModel:
        batch, k, prior = prepared
        return fit(gather(batch, k), k, prior.alpha0, self.rotation)

    def result(self, fitted: TopicModel, n_words: int) -> Fitted:
        return Fitted(fitted.topics, fitted.alpha)


def gather(batch: CountBatch, max_topics: int) -> MomentStatistics:
    """Statistics of a batch: one row block for each core, the blocks in threads."""
    basis = Basis.from_pilot(batch.select(0, min(PILOT_DOCUMENTS, batch.documents)), max_topics)
    edges = [*range(0, batch.documents, _BATCH_DOCUMENTS), batch.documents]

    def block(index: int) -> MomentStatistics:
        return MomentStatistics.of_projected(
            projected, basis, RowBlock(index, CORES), codocuments=False
        )

    with threadpool_limits(1), ThreadPoolExecutor(CORES) as pool:
        parts = [batch.select(a, b) for a, b in pairwise(edges)]
        projected = list(pool.map(lambda part: ProjectedBatch.of(part, basis), parts))
        blocks = list(pool.map(block, range(CORES)))
    return merge_blocks(blocks)


def pilot_options(max_topics: int) -> PilotOptions:
    """All words of a planted corpus are words of the vocabulary."""
    return PilotOptions(
        vocabulary_size=N_WORDS,
        max_topics=max_topics,
        min_documents=1,
        max_document_fraction=1.0,
        pilot_documents=PILOT_DOCUMENTS,
    )


def new_store(place: Path, shards: list[Shard], max_topics: int, cluster: Cluster) -> MomentStore:
    """An empty store for a planted corpus."""
    return create(str(place), shards, IDS, None, pilot_options(max_topics), Run(cluster))


@dataclass(frozen=True, eq=False)
class PipelineRun:
    """What the pipelines made of a planted corpus.

    Parameters
    ----------
    topics : (n, k) float64
        Over all words of the corpus; those the vocabulary lacks have probability 0.
    projected_bytes : int
        The largest of the memory plans of create, update and refit, for one worker process.
    """

    topics: NDArray[np.float64]
    projected_bytes: int


def from_parquet(corpus: Planted, workers: int, clock: Clock) -> PipelineRun:
    """create, update and refit; the start of the cluster is inside the clock."""
    k = corpus.n_topics
    # pyarrow imports pandas with its first array, where a peer has brought it: an import
    pa.array([""])
    with scratch(corpus) as place:
        with clock.running("cluster"):
            entered = connect(workers=workers)
            cluster = entered.__enter__()
        try:
            with clock.running("create"):
                shards = list_shards([str(corpus.shards)])
                store = new_store(place / "store", shards, k, cluster)
            with clock.running("update"):
                store = update(store, shards, Run(cluster)).store
            with clock.running("refit"):
                model = refit(store, k, ALPHA0, Run(cluster))
            projected = projected_bytes(store, k, cluster)
        finally:
            entered.__exit__(None, None, None)
        topics = np.zeros((N_WORDS, k))
        topics[list(store.vocabulary.token_ids or ())] = model.topics
    clock.note_costs()
    return PipelineRun(topics, projected)


def projected_bytes(store: MomentStore, n_topics: int, cluster: Cluster) -> int:
    """What a worker process was planned to hold at most."""
    shape = n_topics, cluster.workers, cluster.threads, cluster.memory
    return max(
        plan_reading(cluster.threads, cluster.memory).peak_bytes,
        plan_of(store, Run(cluster)).peak_bytes,
        plan_refit(store.layout, store.basis, *shape).peak_bytes,
    )


@contextmanager
def scratch(corpus: Planted | Addresses) -> Iterator[Path]:
    """A folder for a store, beside the corpus, removed afterwards."""
    place = Path(corpus.cache) / f".store-{corpus.name}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
