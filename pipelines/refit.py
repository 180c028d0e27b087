"""Refit: topics from the stored statistics, row block by row block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from streaming_moments.basis import Basis
from streaming_moments.decompositions import Directions, Evidence, Method, require_method
from streaming_moments.errors import NotIdentifiable
from streaming_moments.lengths import Lengths, WeightedLengths
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import StateSize, evidence_bytes, plan_refit
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.row_blocks import (
    BlockAddress,
    StatisticsSource,
    block_sources,
    loaded,
    strips,
)
from streaming_moments.pipelines.tasks import result_of, run_bounded
from streaming_moments.quality import npmi_coherence, top_words, umass_coherence
from streaming_moments.row_lengths import RowLengths
from streaming_moments.rows import RowBlock
from streaming_moments.storage.windows import Window, WindowedStore
from streaming_moments.svtd import finish
from streaming_moments.topic_model import TopicModel
from streaming_moments.weighted import Statistics
from streaming_moments.whitening import CoreMoments, Whitening, whiten

COHERENCE_WORDS = 10


@dataclass(frozen=True, eq=False)
class Coherence:
    """Coherence of each topic from the stored co-document counts.

    Parameters
    ----------
    umass : (k,) float64
        UMass over the top 10 words; nearer to 0 is better.
    npmi : (k,) float64
        Mean NPMI over documents of the top 10 words, -1 to 1.
    """

    umass: NDArray[np.float64]
    npmi: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordPairs:
    """In how many documents some words stand, alone and together.

    Parameters
    ----------
    words : (m,) int64
        Core words, rising.
    frequencies : (m,) float64
        Documents with the word, or the sum of their weights; so the others too.
    together : (m, m) float64
        Documents with both.
    documents : float
        All of them.
    """

    words: NDArray[np.int64]
    frequencies: NDArray[np.float64]
    together: NDArray[np.float64]
    documents: float

    def umass(
        self, words: NDArray[np.int64], topics: NDArray[np.float64], number: int
    ) -> NDArray[np.float64]:
        """(k,) UMass of topics, given by their rows at `words`, that hold all their top words."""
        return umass_coherence(topics, *self._of(words), number)

    def npmi(
        self, words: NDArray[np.int64], topics: NDArray[np.float64], number: int
    ) -> NDArray[np.float64]:
        """(k,) NPMI; arguments as `umass`."""
        return npmi_coherence(topics, *self._of(words), self.documents, number)

    def _of(self, words: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        places = np.searchsorted(self.words, words)
        return self.frequencies[places], self.together[np.ix_(places, places)]


def refit(
    store: StatisticsSource,
    n_topics: int,
    alpha0: float,
    cluster: Cluster,
    method: Method = "joint",
    seed: int = 0,
    progress: StepProgress | None = None,
) -> TopicModel:
    """Fit a model to a version of a store; the documents are not needed.

    Three sweeps over the row blocks: the core for whitening, the slices for the rotation or the
    whitened tensor, and the rows of the topics. Same answer as `streaming_moments.fit_by`.

    Parameters
    ----------
    store : MomentStore or WindowedStore
        The version to fit, or a window of it.
    n_topics : int
        k.
    alpha0 : float
        Sum of the Dirichlet parameters; 0 is the single-topic model.
    cluster : Cluster
        Where to run.
    method : str
        Decomposition, as in `streaming_moments.fit_by`.
    seed : int
        Of the random directions and starts of some methods.
    progress : StepProgress, optional
        Told of each block.

    Raises
    ------
    NotIdentifiable
        An empty store, fewer than k columns or positive eigenvalues, or a method that cannot tell
        the topics apart.
    BoundExceeded
        The memory budget cannot hold the work.
    """
    progress = progress or Silent()
    require_method(method, seed)
    lengths = counted_lengths(store)
    histogram = lengths.whole
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    k_at_least_one = max(n_topics, 1)
    plan = plan_refit(
        size,
        k_at_least_one,
        cluster.workers,
        cluster.threads,
        cluster.memory,
        method,
        blocks_held(histogram),
    )
    client, in_flight = cluster.client, cluster.workers * plan.in_flight
    blocks = block_sources(client, store, plan.keep_blocks)

    cores = run_bounded(
        cluster, core_rows, [(b,) for b in blocks], in_flight, progress, "reading row blocks", True
    )
    whitening_of = (whiten_rows, cores, histogram, store.basis, n_topics, alpha0)
    whitened = client.submit(alone, cluster.threads, *whitening_of, pure=False)
    del cores, whitening_of
    whitening: Whitening = result_of(cluster, whitened, "whitening")
    evidence = run_bounded(
        cluster,
        slice_evidence,
        [(strip, whitened, method) for strip in strips(blocks, evidence_bytes(n_topics))],
        in_flight,
        progress,
        "whitened slices",
        True,
    )
    solving = (solve_rotation, evidence, whitened, seed)
    solved = client.submit(alone, cluster.threads, *solving, pure=False)
    del evidence, solving
    directions: Directions = result_of(cluster, solved, "rotation")
    parts = run_bounded(
        cluster,
        topic_rows,
        [(block, whitened, directions) for block in blocks],
        in_flight,
        progress,
        "topic rows",
    )
    n_words = store.basis.n_words
    rows = np.empty((n_words, n_topics))
    word_counts = np.empty(n_words)  # sums below 2^53 are exact in it
    for index, (part, counts) in enumerate(parts):
        block = RowBlock(index, store.row_blocks)
        rows[block.rows], word_counts[block.rows] = part, counts
    model = finish(rows, directions.vectors, word_counts, lengths, store.basis, whitening, method)
    return _of_window(model, store.window) if isinstance(store, WindowedStore) else model


def counted_lengths(store: StatisticsSource) -> RowLengths[Lengths]:
    """Lengths of the documents of a version or a window of it, row by row.

    Raises
    ------
    NotIdentifiable
        None of them has three words.
    """
    lengths = store.row_lengths()
    if not lengths.whole.C3:
        raise NotIdentifiable(
            f"version {store.version} of the store counts no document of three vocabulary words; "
            "run `streaming-moments update` first"
        )
    return lengths


def blocks_held(histogram: Lengths) -> int:
    """Row blocks that reading one holds: a sum and what is read, or of floats one of integers too.

    Examples
    --------
    >>> blocks_held(WeightedLengths(()))
    3
    """
    return 3 if isinstance(histogram, WeightedLengths) else 2


def coherence(
    store: StatisticsSource,
    model: TopicModel,
    cluster: Cluster,
    progress: StepProgress | None = None,
) -> Coherence | None:
    """Coherence of a model's topics on a version of a store; None without co-document counts."""
    if not store.codocuments:
        return None
    number = min(COHERENCE_WORDS, store.basis.core)
    if number < 2:
        return None
    words = np.unique(top_words(model.topics[: store.basis.core], number))
    sources = [BlockAddress(store, index) for index in range(store.row_blocks)]
    in_flight = cluster.workers * cluster.threads
    documents = store.length_histogram().weight
    pairs = count_pairs(sources, words, documents, cluster, in_flight, progress or Silent())
    return Coherence(
        pairs.umass(words, model.topics[words], number),
        pairs.npmi(words, model.topics[words], number),
    )


def count_pairs(
    sources: Sequence[BlockAddress | Future[Any]],
    words: NDArray[np.int64],
    documents: float,
    cluster: Cluster,
    in_flight: int,
    progress: StepProgress,
) -> WordPairs:
    """Document and co-document counts of some rising core words, from all row blocks."""
    calls = [(source, words) for source in sources]
    parts = run_bounded(cluster, word_codocuments, calls, in_flight, progress, "coherence")
    frequencies = np.zeros(words.size)
    together = np.zeros((words.size, words.size))
    for places, block_frequencies, block_together in parts:
        frequencies[places], together[places] = block_frequencies, block_together
    return WordPairs(words, frequencies, together, documents)


def core_rows(source: BlockAddress | Statistics) -> tuple[int, NDArray[Any]]:
    """Index of the block, and (core rows, core + 1): pair counts and word counts."""
    statistics = loaded(source)
    core = statistics.basis.core
    rows = statistics.block.size(core)
    counts = statistics.word_counts[:rows, None]
    return statistics.block.index, np.hstack([statistics.pair_counts[:rows], counts])


def alone(threads: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with all threads of a worker: no other task runs beside it."""
    with threadpool_limits(threads):
        return function(*arguments)


def whiten_rows(
    parts: Sequence[tuple[int, NDArray[Any]]],
    histogram: Lengths,
    basis: Basis,
    n_topics: int,
    alpha0: float,
) -> Whitening:
    """Whitening from the core rows of all blocks."""
    core = joined_core(parts, histogram, basis)
    return whiten(core, basis, n_topics, alpha0)


def joined_core(
    parts: Sequence[tuple[int, NDArray[Any]]], histogram: Lengths, basis: Basis
) -> CoreMoments:
    """Core moments from the core rows of all blocks."""
    joined = np.empty((basis.core, basis.core + 1), dtype=parts[0][1].dtype)
    for index, rows in parts:
        joined[RowBlock(index, len(parts)).rows] = rows
    return CoreMoments(joined[:, :-1], joined[:, -1], histogram)


def slice_evidence(
    sources: Sequence[BlockAddress | Statistics], whitening: Whitening, method: Method
) -> Evidence:
    """What the slices of some blocks say about the topics, in the order of the blocks."""
    evidence = Evidence.zero(whitening.n_topics, method)
    for source in sources:
        evidence = evidence + Evidence.of(loaded(source), whitening, method)
    return evidence


def solve_rotation(evidence: Sequence[Evidence], whitening: Whitening, seed: int) -> Directions:
    """Directions of the topics from the evidence of all strips, added in their order."""
    total = evidence[0]
    for part in evidence[1:]:
        total = total + part
    return total.directions(whitening, seed)


def topic_rows(
    source: BlockAddress | Statistics, whitening: Whitening, directions: Directions
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """(r, k) rows of the topic matrix and (r,) word counts of a block."""
    statistics = loaded(source)
    return directions.rows(statistics, whitening), statistics.word_counts


def word_codocuments(
    source: BlockAddress | Statistics, words: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Places of the block's words among `words`, their frequencies and co-document counts."""
    statistics = loaded(source)
    step = statistics.block.step
    places = np.flatnonzero(words % step == statistics.block.index)
    rows = words[places] // step
    if statistics.codocuments is None:
        raise NotIdentifiable("the statistics hold no co-document counts")
    return places, statistics.document_frequencies[rows], statistics.codocuments[rows][:, words]


def _of_window(model: TopicModel, window: Window) -> TopicModel:
    since, until = (
        None if day is None else day.isoformat() for day in (window.since, window.until)
    )
    return replace(model, since=since, until=until, half_life=window.half_life)
