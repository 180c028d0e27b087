"""Refit: topics from the stored statistics, row block by row block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from distributed import Client, Future
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.errors import NotIdentifiable
from streaming_moments.lengths import Lengths, WeightedLengths
from streaming_moments.packing import packed_size
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import MEBIBYTE, StateSize, plan_refit
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.tasks import result_of, run_bounded
from streaming_moments.quality import npmi_coherence, top_words, umass_coherence
from streaming_moments.rows import RowBlock
from streaming_moments.slices import rotated_diagonals
from streaming_moments.storage.windows import Window, WindowedStore
from streaming_moments.svtd import Rotation, RotationEvidence, finish
from streaming_moments.topic_model import TopicModel
from streaming_moments.weighted import Statistics
from streaming_moments.whitening import CoreMoments, Whitening, whiten

COHERENCE_WORDS = 10
GRAM_BYTES = 512 * MEBIBYTE


class StatisticsSource(Protocol):
    """A version of a store, or a window of it: statistics to be read by row block."""

    @property
    def basis(self) -> Basis: ...
    @property
    def row_blocks(self) -> int: ...
    @property
    def codocuments(self) -> bool: ...
    @property
    def version(self) -> int: ...

    def length_histogram(self) -> Lengths:
        """Documents by length."""

    def load_block(self, index: int) -> Statistics:
        """Statistics of one row block."""


@dataclass(frozen=True, eq=False)
class BlockAddress:
    """A row block of a version of a store, for tasks that read it themselves."""

    store: StatisticsSource
    index: int


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


def refit(
    store: StatisticsSource,
    n_topics: int,
    alpha0: float,
    cluster: Cluster,
    rotation: Rotation = "joint",
    progress: StepProgress | None = None,
) -> TopicModel:
    """Fit a model to a version of a store; the documents are not needed.

    Three sweeps over the row blocks: the core for whitening, the slices for the rotation, the
    diagonals for the topics. Same answer as `streaming_moments.fit`.

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
    rotation : {"joint", "feature"}
        As in `streaming_moments.fit`.
    progress : StepProgress, optional
        Told of each block.

    Raises
    ------
    NotIdentifiable
        An empty store, or fewer than k columns or positive eigenvalues.
    BoundExceeded
        The memory budget cannot hold the work.
    """
    progress = progress or Silent()
    RotationEvidence.zero(1, rotation)
    histogram = store.length_histogram()
    if not histogram.C3:
        raise NotIdentifiable(
            f"version {store.version} of the store counts no document of three vocabulary words; "
            "run `streaming-moments update` first"
        )
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    k_at_least_one = max(n_topics, 1)
    # a weighted block is a sum of floats, one of integers, and what is read
    held = 3 if isinstance(histogram, WeightedLengths) else 2
    plan = plan_refit(size, k_at_least_one, cluster.workers, cluster.threads, cluster.memory, held)
    client, in_flight = cluster.client, cluster.workers * plan.in_flight
    blocks = _blocks(client, store, plan.keep_blocks)

    cores = run_bounded(
        cluster, core_rows, [(b,) for b in blocks], in_flight, progress, "reading row blocks", True
    )
    whitened = client.submit(
        whiten_rows, cores, histogram, store.basis, n_topics, alpha0, pure=False
    )
    del cores
    whitening: Whitening = result_of(cluster, whitened, "whitening")
    strips = _strips(blocks, n_topics)
    evidence = run_bounded(
        cluster,
        rotation_evidence,
        [(strip, whitened, rotation) for strip in strips],
        in_flight,
        progress,
        "whitened slices",
        True,
    )
    solved = client.submit(solve_rotation, evidence, pure=False)
    del evidence
    turn: NDArray[np.float64] = result_of(cluster, solved, "rotation")
    parts = run_bounded(
        cluster,
        topic_rows,
        [(block, whitened, turn) for block in blocks],
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
    model = finish(rows, turn, word_counts, histogram, store.basis, whitening, rotation)
    return _of_window(model, store.window) if isinstance(store, WindowedStore) else model


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
    calls = [(BlockAddress(store, index), words) for index in range(store.row_blocks)]
    in_flight = cluster.workers * cluster.threads
    parts = run_bounded(
        cluster, word_codocuments, calls, in_flight, progress or Silent(), "coherence"
    )
    frequencies = np.zeros(words.size)
    together = np.zeros((words.size, words.size))
    for places, block_frequencies, block_together in parts:
        frequencies[places], together[places] = block_frequencies, block_together
    topics = model.topics[words]
    documents = store.length_histogram().weight
    return Coherence(
        umass_coherence(topics, frequencies, together, number),
        npmi_coherence(topics, frequencies, together, documents, number),
    )


def load_block(address: BlockAddress) -> Statistics:
    """Sum of a row block over the segments of the version."""
    return address.store.load_block(address.index)


def core_rows(source: BlockAddress | Statistics) -> tuple[int, NDArray[Any]]:
    """Index of the block, and (core rows, core + 1): pair counts and word counts."""
    statistics = _loaded(source)
    core = statistics.basis.core
    rows = statistics.block.size(core)
    counts = statistics.word_counts[:rows, None]
    return statistics.block.index, np.hstack([statistics.pair_counts[:rows], counts])


def whiten_rows(
    parts: Sequence[tuple[int, NDArray[Any]]],
    histogram: Lengths,
    basis: Basis,
    n_topics: int,
    alpha0: float,
) -> Whitening:
    """Whitening from the core rows of all blocks."""
    joined = np.empty((basis.core, basis.core + 1), dtype=parts[0][1].dtype)
    for index, rows in parts:
        joined[RowBlock(index, len(parts)).rows] = rows
    core = CoreMoments(joined[:, :-1], joined[:, -1], histogram)
    return whiten(core, basis, n_topics, alpha0)


def rotation_evidence(
    sources: Sequence[BlockAddress | Statistics], whitening: Whitening, rotation: Rotation
) -> RotationEvidence:
    """What the slices of some blocks say about the rotation, in the order of the blocks."""
    evidence = RotationEvidence.zero(whitening.n_topics, rotation)
    for source in sources:
        evidence = evidence + RotationEvidence.of(_loaded(source), whitening, rotation)
    return evidence


def solve_rotation(evidence: Sequence[RotationEvidence]) -> NDArray[np.float64]:
    """(k, k) rotation from the evidence of all strips, added in their order."""
    total = evidence[0]
    for part in evidence[1:]:
        total = total + part
    return total.rotation()


def topic_rows(
    source: BlockAddress | Statistics, whitening: Whitening, rotation: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """(r, k) rows of the topic matrix and (r,) word counts of a block."""
    statistics = _loaded(source)
    return rotated_diagonals(statistics, whitening, rotation), statistics.word_counts


def word_codocuments(
    address: BlockAddress, words: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[Any]]:
    """Places of the block's words among `words`, their frequencies and co-document counts."""
    statistics = _loaded(address)
    step = statistics.block.step
    places = np.flatnonzero(words % step == statistics.block.index)
    rows = words[places] // step
    if statistics.codocuments is None:
        raise NotIdentifiable("the statistics hold no co-document counts")
    return places, statistics.document_frequencies[rows], statistics.codocuments[rows][:, words]


def _blocks(
    client: Client, store: StatisticsSource, keep: bool
) -> list[BlockAddress | Future[Any]]:
    addresses = [BlockAddress(store, index) for index in range(store.row_blocks)]
    if not keep:
        return list(addresses)
    return [client.submit(load_block, address, pure=False) for address in addresses]


def _of_window(model: TopicModel, window: Window) -> TopicModel:
    since, until = (
        None if day is None else day.isoformat() for day in (window.since, window.until)
    )
    return replace(model, since=since, until=until, half_life=window.half_life)


def _strips(
    blocks: Sequence[BlockAddress | Future[Any]], n_topics: int
) -> list[list[BlockAddress | Future[Any]]]:
    """Blocks shared out so that the Gram matrices of all strips stay below a bound.

    The number depends on nothing but k and the blocks, so neither does the order of the sums.
    """
    gram_bytes = 8 * packed_size(n_topics) ** 2
    number = max(2, min(len(blocks), GRAM_BYTES // gram_bytes))
    return [list(blocks[start::number]) for start in range(min(number, len(blocks)))]


def _loaded(source: BlockAddress | Statistics) -> Statistics:
    return load_block(source) if isinstance(source, BlockAddress) else source
