"""Select: how good the topics of many models are, from one pass over the state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from streaming_moments.basis import Basis
from streaming_moments.decompositions import Directions, Evidence, Method, require_method
from streaming_moments.errors import (
    BoundExceeded,
    InvalidInput,
    NotIdentifiable,
    StreamingMomentsError,
)
from streaming_moments.lengths import Lengths
from streaming_moments.pipelines.candidates import Candidate, Fitted, Selection
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import RefitPlan, StateSize, evidence_bytes, plan_refit
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.refit import (
    WordPairs,
    alone,
    blocks_held,
    core_rows,
    count_pairs,
    counted_lengths,
    joined_core,
    slice_evidence,
)
from streaming_moments.pipelines.row_blocks import (
    BlockAddress,
    StatisticsSource,
    block_sources,
    loaded,
    strips,
)
from streaming_moments.pipelines.tasks import result_of, run_bounded
from streaming_moments.row_lengths import RowLengths
from streaming_moments.rows import RowBlock
from streaming_moments.svtd import finish
from streaming_moments.weighted import Statistics
from streaming_moments.whitening import (
    Whitening,
    positive_eigenvalues,
    require_columns,
    require_eigenvalues,
    require_topics,
    whiten,
)

_ROW_COPIES = 3  # of the topic rows: the parts, joined, and the topics made of them


@dataclass(frozen=True, eq=False)
class _Sweep:
    """What all candidates share."""

    store: StatisticsSource
    lengths: RowLengths[Lengths]
    blocks: list[BlockAddress | Future[Any]]
    cluster: Cluster
    plan: RefitPlan
    method: Method
    seed: int
    progress: StepProgress

    @property
    def in_flight(self) -> int:
        return self.cluster.workers * self.plan.in_flight


@dataclass(frozen=True, eq=False)
class Solved:
    """Directions of the topics of a candidate, or why there are none; seconds it took."""

    directions: Directions | None
    refusal: str
    seconds: float


def select(
    store: StatisticsSource,
    topics: Sequence[int],
    alphas: Sequence[float],
    cluster: Cluster,
    method: Method = "joint",
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Selection:
    """Fit models of many numbers of topics and alpha0 to a version of a store; keep none.

    What the numbers of topics share is done once: the core moments; for each alpha0 the whitening
    for the most topics, whose leading columns whiten for fewer, and the evidence of the slices,
    whose leading part is that for fewer topics (not for "feature"); the rows of many models in one
    sweep over the blocks, as many as memory allows; the co-document counts of all top words. The
    same models as of `refit`.

    Parameters
    ----------
    store : MomentStore or WindowedStore
        The version to fit, or a window of it.
    topics : sequence of int
        Numbers of topics.
    alphas : sequence of float
        Sums of the Dirichlet parameters.
    cluster : Cluster
        Where to run.
    method : str
        Decomposition, as in `streaming_moments.fit_by`.
    seed : int
        Of the random directions and starts of some methods.
    progress : StepProgress, optional
        Told of each step.

    Returns
    -------
    Selection
        What cannot be fitted says why.

    Raises
    ------
    NotIdentifiable, BoundExceeded
        None can be fitted.
    InvalidInput
        No number of topics, or one below 1; no alpha0, or one out of range.
    """
    started = time.perf_counter()
    require_method(method, seed)
    numbers, alphas = sorted(set(topics)), list(dict.fromkeys(alphas))
    if not numbers or not alphas:
        raise InvalidInput("nothing to fit; give numbers of topics and an alpha0")
    for k, alpha0 in product(numbers, alphas):
        require_topics(k, alpha0)
    lengths = counted_lengths(store)
    plan, too_large = _planned(store, numbers, cluster, method, blocks_held(lengths.whole))
    possible = [k for k in numbers if k not in too_large]
    blocks = block_sources(cluster.client, store, plan.keep_blocks)
    sweep = _Sweep(store, lengths, blocks, cluster, plan, method, seed, progress or Silent())
    found: dict[tuple[float, int], Fitted | StreamingMomentsError] = {
        (alpha0, k): error for alpha0 in alphas for k, error in too_large.items()
    }
    spaces = _whitened(sweep, possible, alphas)
    for alpha0, (whitened, whitening, positive) in zip(alphas, spaces, strict=True):
        for k in possible:
            try:
                require_eigenvalues(k, positive, alpha0)
            except NotIdentifiable as error:
                found[alpha0, k] = error
        if whitening is not None:
            fitting = [k for k in possible if k <= positive]
            found |= {(alpha0, k): one for k, one in _models(sweep, fitting, whitened, whitening)}
    ordered = {(alpha0, k): found[alpha0, k] for alpha0 in alphas for k in numbers}
    models = [one for one in ordered.values() if isinstance(one, Fitted)]
    if not models:
        raise next(one for one in ordered.values() if isinstance(one, StreamingMomentsError))
    pairs = _pairs(sweep, models)
    candidates = tuple(
        one.candidate(k, alpha0, pairs)
        if isinstance(one, Fitted)
        else Candidate(k, alpha0, refusal=str(one))
        for (alpha0, k), one in ordered.items()
    )
    return Selection(candidates, time.perf_counter() - started)


def whiten_most(
    parts: Sequence[tuple[int, NDArray[Any]]],
    histogram: Lengths,
    basis: Basis,
    topics: Sequence[int],
    alpha0: float,
) -> tuple[Whitening | None, int]:
    """Whitening for the most of some rising numbers of topics, and the positive eigenvalues."""
    core = joined_core(parts, histogram, basis)
    positive = positive_eigenvalues(core, basis, alpha0)
    fitting = [k for k in topics if k <= positive]
    return (whiten(core, basis, fitting[-1], alpha0) if fitting else None), positive


def leading_evidence(
    sources: Sequence[BlockAddress | Statistics],
    whitening: Whitening,
    n_topics: int,
    method: Method,
) -> Evidence:
    """Evidence of some blocks by the leading columns of a whitening."""
    return slice_evidence(sources, whitening.leading(n_topics), method)


def added_evidence(parts: Sequence[Evidence]) -> Evidence:
    """Evidence of all strips, added in their order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def solve_leading(evidence: Evidence, whitening: Whitening, n_topics: int, seed: int) -> Solved:
    """Directions of so many topics from evidence for as many or more."""
    started = time.perf_counter()
    if evidence.n_topics > n_topics:
        evidence = evidence.leading(n_topics)
    try:
        directions = evidence.directions(whitening.leading(n_topics), seed)
    except NotIdentifiable as error:
        return Solved(None, str(error), time.perf_counter() - started)
    return Solved(directions, "", time.perf_counter() - started)


def leading_rows(
    source: BlockAddress | Statistics, whitening: Whitening, models: Sequence[Directions]
) -> tuple[list[NDArray[np.float64]], list[float], NDArray[Any]]:
    """(r, k) topic rows of each model, the seconds each took, and (r,) word counts of a block."""
    statistics = loaded(source)
    rows, seconds = [], []
    for directions in models:
        started = time.perf_counter()
        k = directions.vectors.shape[0]
        rows.append(directions.rows(statistics, whitening.leading(k)))
        seconds.append(time.perf_counter() - started)
    return rows, seconds, statistics.word_counts


def _planned(
    store: StatisticsSource, numbers: Sequence[int], cluster: Cluster, method: Method, held: int
) -> tuple[RefitPlan, dict[int, StreamingMomentsError]]:
    """The plan for the most topics that basis and memory allow, and what the others lack."""
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    plans: list[RefitPlan] = []
    refused: dict[int, StreamingMomentsError] = {}
    for k in numbers:
        try:
            require_columns(k, store.basis)
            shape = (size, k, cluster.workers, cluster.threads, cluster.memory)
            plans.append(plan_refit(*shape, method, held))
        except (NotIdentifiable, BoundExceeded) as error:
            refused[k] = error
    if not plans:
        raise refused[numbers[0]]
    return plans[-1], refused


def _whitened(
    sweep: _Sweep, numbers: Sequence[int], alphas: Sequence[float]
) -> list[tuple[Future[Any], Whitening | None, int]]:
    """For each alpha0 the whitening, on the workers and here, and the positive eigenvalues."""
    cores = run_bounded(
        sweep.cluster,
        core_rows,
        [(block,) for block in sweep.blocks],
        sweep.in_flight,
        sweep.progress,
        "reading row blocks",
        True,
    )
    client, shared = sweep.cluster.client, (sweep.lengths.whole, sweep.store.basis)
    spaces = []
    # one after another: each holds the core moments twice
    for alpha0 in alphas:
        arguments = (whiten_most, cores, *shared, numbers, alpha0)
        most = client.submit(alone, sweep.cluster.threads, *arguments, pure=False)
        whitening, positive = result_of(sweep.cluster, most, "whitening")
        spaces.append((client.submit(itemgetter(0), most, pure=False), whitening, positive))
    return spaces


def _models(
    sweep: _Sweep, numbers: Sequence[int], whitened: Future[Any], whitening: Whitening
) -> Iterator[tuple[int, Fitted | StreamingMomentsError]]:
    """The models of one alpha0, of rising numbers of topics."""
    most, method = numbers[-1], sweep.method
    # the slice of the widest gap is another one for each number of topics
    gathered = {
        k: _evidence(sweep, whitened, k) for k in (numbers if method == "feature" else [most])
    }
    # the largest first: they take longest
    falling = numbers[::-1]
    solved: list[Solved] = run_bounded(
        sweep.cluster,
        solve_leading,
        [(gathered.get(k, gathered[most]), whitened, k, sweep.seed) for k in falling],
        sweep.cluster.workers * sweep.plan.solves_in_flight,
        sweep.progress,
        "rotations",
    )
    del gathered
    for k, one in zip(falling, solved, strict=True):
        if one.directions is None:
            yield k, NotIdentifiable(one.refusal)
    ready = {
        k: (one.directions, one.seconds)
        for k, one in zip(falling, solved, strict=True)
        if one.directions is not None
    }
    for group in _groups(sweep, sorted(ready)):
        parts = run_bounded(
            sweep.cluster,
            leading_rows,
            [(block, whitened, [ready[k][0] for k in group]) for block in sweep.blocks],
            sweep.in_flight,
            sweep.progress,
            "topic rows",
        )
        word_counts = _joined([part[2] for part in parts])
        for place, k in enumerate(group):
            directions, seconds = ready[k]
            rows = _joined([part[0][place] for part in parts])
            spent = seconds + sum(part[1][place] for part in parts)
            try:
                model = finish(
                    rows,
                    directions.vectors,
                    word_counts,
                    sweep.lengths,
                    sweep.store.basis,
                    whitening.leading(k),
                    method,
                )
            except NotIdentifiable as error:
                yield k, error
            else:
                yield k, Fitted.of(model, sweep.store.basis.core, spent)


def _evidence(sweep: _Sweep, whitened: Future[Any], n_topics: int) -> Future[Any]:
    each_bytes = evidence_bytes(n_topics)
    parts = run_bounded(
        sweep.cluster,
        leading_evidence,
        [(strip, whitened, n_topics, sweep.method) for strip in strips(sweep.blocks, each_bytes)],
        sweep.in_flight,
        sweep.progress,
        "whitened slices",
        True,
    )
    return sweep.cluster.client.submit(added_evidence, parts, pure=False)


def _groups(sweep: _Sweep, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers of topics whose rows fit into memory together."""
    if not numbers:
        return
    column = 8 * _ROW_COPIES * sweep.store.basis.n_words
    # the plan has room for the rows of the largest model twice; more where memory is left
    room = max(2 * numbers[-1], (sweep.cluster.memory - sweep.plan.peak_bytes) // column)
    group: list[int] = []
    for k in numbers:
        if group and sum(group) + k > room:
            yield group
            group = []
        group.append(k)
    yield group


def _pairs(sweep: _Sweep, models: Sequence[Fitted]) -> WordPairs | None:
    """Counts of all top words of all models; None where the store keeps none."""
    if not sweep.store.codocuments or sweep.store.basis.core < 2:
        return None
    words = np.unique(np.concatenate([model.words for model in models]))
    documents = sweep.lengths.whole.weight
    return count_pairs(
        sweep.blocks, words, documents, sweep.cluster, sweep.in_flight, sweep.progress
    )


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows of all blocks, in the order of the words."""
    joined = np.empty((sum(map(len, parts)), *parts[0].shape[1:]), dtype=parts[0].dtype)
    for index, part in enumerate(parts):
        joined[RowBlock(index, len(parts)).rows] = part
    return joined
