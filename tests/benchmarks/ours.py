"""This project: from Parquet to topics by the pipelines, and from counts by the Python API."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

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
    polished,
)
from streaming_moments.decompositions.svtd import Rotation
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.pipelines.aggregation.aggregation import plan_of
from streaming_moments.pipelines.cluster.cluster import Cluster, connect
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.refit_memory import plan_refit
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.lengths.weights import Weighting
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore

IDS = ShardFormat("parquet", ids_column="ids", counts_column="counts")
PILOT_DOCUMENTS = 20_000
LEAST_PILOT = 2000
OURS = "this project"
_BATCH_DOCUMENTS = 20_000


@dataclass(frozen=True)
class FromCounts:
    """Basis.from_pilot on a tenth of the documents, statistics by row blocks, fit, and passes.

    Parameters
    ----------
    refine : int
        Rounds by the pairs of words.
    passes : int or "auto"
        Over the documents; they learn alpha where it is not known.
    length_weights : str
        Of the basis.
    rotation, alpha : str
        Of the fit.
    alpha0 : str or float
        Of a planted corpus "given" is the true one, of others the default; "auto", or a number.
    """

    refine: int = ROUNDS
    passes: int | Literal["auto"] = 0
    length_weights: Weighting = "even"
    rotation: Rotation = "joint"
    alpha: Literal["given", "auto"] = "given"
    alpha0: float | Literal["given", "auto"] = "given"
    seed: None = None

    @property
    def name(self) -> str:
        """Differences from the defaults."""
        parts = [self.length_weights] if self.length_weights != "even" else []
        parts += [self.rotation] if self.rotation != "joint" else []
        parts += [f"refine {self.refine}"] if self.refine != ROUNDS else []
        parts += [f"polish {self.passes}"] if self.passes else []
        parts += [f"alpha {self.alpha}"] if self.alpha != "given" else []
        parts += [f"alpha0 {self.alpha0}"] if self.alpha0 != "given" else []
        return f"{OURS}, {', '.join(parts) or 'defaults'}"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        return batch, n_topics, prior

    def fit(self, prepared: Any) -> TopicModel:
        batch, k, prior = prepared
        # of a corpus that is not known: a basis and an alpha0 as by default
        max_topics = max(k, PilotOptions().max_topics) if prior.alpha0 is None else k
        default = TopicOptions(topics=k).alpha0
        given = default if prior.alpha0 is None else prior.alpha0
        alpha0 = given if self.alpha0 == "given" else self.alpha0
        statistics = gather(batch, max_topics, self.length_weights)
        model = fit(statistics, k, alpha0, self.rotation, self.refine, self.alpha)
        del statistics
        known = prior.alpha0 is not None and self.alpha0 == "given"
        # a model of one topic a document has no alpha
        learned = not known and model.alpha_sum > 0
        return polished(model, batch, self.passes, alpha=learned, threads=CORES)

    def result(self, fitted: TopicModel, prepared: Any) -> Fitted:
        return Fitted(fitted.topics, fitted.alpha, weights=fitted.weights)

    def proportions(self, fitted: TopicModel, prepared: Any) -> NDArray[np.float64]:
        return fitted.transform(prepared[0])


def gather(
    batch: CountBatch, max_topics: int, length_weights: Weighting = "even"
) -> MomentStatistics:
    """Statistics of a batch: one row block for each core, the blocks in threads."""
    basis = Basis.from_pilot(pilot_of(batch), max_topics, length_weights=length_weights)
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


def pilot_of(batch: CountBatch) -> CountBatch:
    """A tenth of the documents, evenly taken; 2,000 at least."""
    places = np.linspace(0, batch.documents, pilot_size(batch.documents), endpoint=False)
    return CountBatch.from_csr(batch.to_csr()[places.astype(np.int64)])


def pilot_size(documents: int) -> int:
    return min(max(documents // 10, LEAST_PILOT), documents)


def pilot_options(max_topics: int, pilot: int = PILOT_DOCUMENTS) -> PilotOptions:
    """All words of a planted corpus are words of the vocabulary."""
    return PilotOptions(
        vocabulary_size=N_WORDS,
        max_topics=max_topics,
        min_documents=1,
        max_document_fraction=1.0,
        pilot_documents=pilot,
    )


def new_store(
    place: Path,
    shards: list[Shard],
    max_topics: int,
    cluster: Cluster,
    pilot: int = PILOT_DOCUMENTS,
) -> MomentStore:
    """An empty store for a planted corpus."""
    return create(str(place), shards, IDS, None, pilot_options(max_topics, pilot), Run(cluster))


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
                store = new_store(place / "store", shards, k, cluster, pilot_size(corpus.documents))
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
    options = TopicOptions(topics=n_topics, refine=0)
    shape = cluster.workers, cluster.threads, cluster.memory
    return max(
        plan_reading(cluster.threads, cluster.memory).peak_bytes,
        plan_of(store, Run(cluster)).peak_bytes,
        plan_refit(store.layout, TopicModel, options, *shape).peak_bytes,
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
