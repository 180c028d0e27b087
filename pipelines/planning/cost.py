"""The cost model: seconds and bytes of create, update and refit, from the costs of single steps."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models.halves import SWEEPS
from streaming_moments.models.refinement import ROUNDS
from streaming_moments.models.rows import number_of_strips, strip_sums_held
from streaming_moments.pipelines.cluster.memory import MEBIBYTE, plan_reading, plan_update
from streaming_moments.pipelines.cluster.refit_memory import RefitPlan, plan_refit
from streaming_moments.pipelines.cluster.rows_on_cluster import RowsHere, rows_for
from streaming_moments.pipelines.jobs.create import PILOT_SHARDS
from streaming_moments.pipelines.planning.job import Job
from streaming_moments.pipelines.planning.step_costs import StepCosts
from streaming_moments.pipelines.planning.update_cost import (
    COMMIT_SECONDS,
    NETWORK_BYTES,
    TASK_SECONDS,
    segments_after,
    update_cost,
)
from streaming_moments.statistics.counts.tensor import tensor_sums_bytes

_BUDGETS = tuple(1024 * MEBIBYTE * half // 2 for half in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64))
_BUDGETS += tuple(1024 * MEBIBYTE * size for size in (48, 64, 96, 128, 192, 256, 384, 512))

_MOST_WORKERS = 1024
_SWEEPS = 6  # how often a fit reads each row block, if the store does not count documents


@dataclass(frozen=True)
class ClusterCost:
    """How long create, update and refit take on a cluster of some number of workers.

    Parameters
    ----------
    workers : int
        Worker processes, each with as many threads as in the measurement.
    create, update, refit : float
        Seconds of each job.
    """

    workers: int
    create: float
    update: float
    refit: float

    @property
    def total(self) -> float:
        """Seconds of create, update and refit together."""
        return self.create + self.update + self.refit


@dataclass(frozen=True)
class MemoryNeed:
    """Memory that one worker process needs at most, within a budget.

    budget : value of `--memory`, in bytes
    create, update, refit : projected peaks of the jobs, in bytes
    """

    budget: int
    create: int
    update: int
    refit: int

    @property
    def peak(self) -> int:
        """Largest of the three peaks, in bytes."""
        return max(self.create, self.update, self.refit)


def memory_need(job: Job, workers: int, threads: int, budget: int) -> MemoryNeed:
    """Project the memory peaks of create, update and refit.

    Raises BoundExceeded if a job does not fit into the budget; the message names what needs memory.
    """
    return MemoryNeed(
        budget,
        plan_reading(threads, budget).peak_bytes,
        plan_update(job.layout, threads, budget).peak_bytes,
        _refit_plan(job, workers, threads, budget).peak_bytes,
    )


def comfortable_budget(job: Job, threads: int) -> int:
    """Return the smallest memory budget with which a worker can create, update and refit.

    An update within this budget reads the shards only once.

    Raises InvalidInput if even 512 GiB are too little.

    Examples
    --------
    >>> import numpy as np
    >>> from streaming_moments import Basis
    >>> from streaming_moments.pipelines.planning.job import CorpusSize
    >>> from streaming_moments.statistics.counts.foundation import CountsFoundation
    >>> words = CountsFoundation(Basis(np.eye(1000, 9, dtype=np.int8), 1000), codocuments=True)
    >>> job = Job(CorpusSize(1 << 30, 10, 1 << 27), words, row_blocks=8, n_topics=5,
    ...           pilot_documents=20_000)
    >>> comfortable_budget(job, threads=2) // MEBIBYTE
    1024
    """
    for budget in _BUDGETS:
        try:
            memory_need(job, 1, threads, budget)
            passes = plan_update(job.layout, threads, budget).passes
        except BoundExceeded:
            continue
        if passes == 1:
            return budget
    raise InvalidInput(
        f"a worker with {_BUDGETS[-1] // (1024 * MEBIBYTE)} GiB and {threads} threads cannot hold "
        "row blocks of this store; ask for a smaller --vocabulary-size, --core or --max-topics"
    )


def cluster_cost(
    job: Job, costs: StepCosts, workers: int, budget: int, network: float = NETWORK_BYTES
) -> ClusterCost:
    """Estimate the seconds of create, update and refit on workers like the measured one.

    Update is estimated as in `update_cost`.

    Raises
    ------
    BoundExceeded
        A job does not fit into the budget.
    """
    return ClusterCost(
        workers,
        _create_seconds(job, costs, workers),
        update_cost(job, costs, workers, budget, network).seconds,
        _refit_seconds(job, costs, workers, budget, network),
    )


def store_bytes(job: Job, costs: StepCosts, budget: int) -> float:
    """Estimate the bytes of the store after create, one update and one refit.

    Raises BoundExceeded if the update does not fit into the budget.
    """
    segments = update_cost(job, costs, 1, budget).groups
    segment = job.row_blocks * costs.blocks.disk_bytes
    if not job.of_documents:
        arrays, rows = job.foundation.parts()[0], job.foundation.rows
        words = sum(array.nbytes for array in arrays.values()) + 12 * rows
        model = 8 * rows * job.n_topics * (job.n_topics + 2)
        return float(segments * segment + words + model)
    basis = job.basis
    model = 8 * basis.n_words * (2 * job.n_topics + 1)
    return segments * segment + basis.core * basis.columns + 12 * basis.n_words + model


def recommended(
    job: Job,
    costs: StepCosts,
    budget: int,
    within: float,
    network: float = NETWORK_BYTES,
) -> ClusterCost:
    """Return the cost on the fewest workers that need at most `within` seconds.

    The seconds are those of create, update and refit together. The number of workers is a power of
    two. If no number is enough, the search stops at the number whose doubling would save less than
    a quarter of the time. Raises BoundExceeded if a job does not fit into the budget.
    """
    best = cluster_cost(job, costs, 1, budget, network)
    while best.total > within and best.workers < _MOST_WORKERS:
        doubled = cluster_cost(job, costs, 2 * best.workers, budget, network)
        if doubled.total > 0.75 * best.total:
            break
        best = doubled
    return best


def _create_seconds(job: Job, costs: StepCosts, workers: int) -> float:
    corpus, pilot, reading = job.corpus, costs.pilot, costs.reading
    shards = min(corpus.shards, PILOT_SHARDS)
    passages = reading.passages * corpus.nbytes * shards / corpus.shards
    passing = passages * pilot.read + shards * reading.open_shard
    # only one thread of a worker at a time can split sampled passages, because Python makes strings
    cutting = min(passages, job.pilot_documents) * pilot.cut
    sampling = passing / min(workers * costs.threads, shards) + cutting / min(workers, shards)
    return sampling + pilot.choose + COMMIT_SECONDS


def _refit_plan(job: Job, workers: int, threads: int, budget: int) -> RefitPlan:
    options = job.model.Options(topics=job.n_topics)
    return plan_refit(job.layout, job.model, options, workers, threads, budget)


def _refit_seconds(job: Job, costs: StepCosts, workers: int, budget: int, network: float) -> float:
    blocks, network = costs.blocks, min(network, NETWORK_BYTES)
    plan = _refit_plan(job, workers, costs.threads, budget)
    segments, _ = segments_after(update_cost(job, costs, workers, budget).groups)
    here, task = rows_for(plan.work_bytes) is RowsHere, TASK_SECONDS
    if here:  # the process of the job reads one block after another, without tasks
        workers, task = 1, 0.0
    slots = 1 if here else workers * plan.in_flight
    rounds = ceil(job.row_blocks / slots)
    if not job.of_documents:
        # Each block is read several times: for pair counts, for third moments, and for steps that
        # only some models have. Each time, the sums of all records are read, and the sums of each
        # half.
        sweeps = 1 if plan.keep_blocks else _SWEEPS * (3 if job.foundation.halves else 1)
        reading = rounds * sweeps * segments * blocks.load
        tasks = 3 * _SWEEPS * job.row_blocks
        return reading + blocks.finish + task * tasks + COMMIT_SECONDS
    loads = segments * ((1 if plan.keep_blocks else 3) + (1 if job.foundation.codocuments else 0))
    sums = tensor_sums_bytes(job.basis.columns, job.n_topics)
    strips = number_of_strips(job.row_blocks, sums)
    strip_rounds = ceil(strips / slots) * ceil(job.row_blocks / strips)
    # Sums that workers send. Row blocks are added up in strips: each worker sends a sum for each of
    # its strips, and one for each level of the tree that adds up the strips.
    moved = ceil(strips / workers) + strip_sums_held(job.row_blocks, sums)
    gathered = 8 * job.basis.core**2 + moved * sums
    return (
        rounds * (loads * blocks.load + blocks.core_rows + blocks.topic_rows)
        + strip_rounds * blocks.evidence
        + blocks.whitening
        + blocks.rotation
        + blocks.finish
        + gathered * (workers - 1) / workers / network
        + task * 5 * job.row_blocks
        + COMMIT_SECONDS
        + _refinement_seconds(job, costs, plan, rounds, segments, network, task)
    )


def _refinement_seconds(
    job: Job,
    costs: StepCosts,
    plan: RefitPlan,
    rounds: int,
    segments: int,
    network: float,
    task: float,
) -> float:
    """Return the seconds of refinement, including the sweeps over halves.

    In each sweep, a thread works on up to `rounds` blocks, one after another. A sweep over halves
    takes as long as one over all documents.
    """
    blocks = costs.blocks
    reading = 0.0 if plan.keep_blocks else segments * blocks.load
    made, sweeps = 1 if plan.keep_pairs else ROUNDS, ROUNDS
    if job.foundation.halves:
        made += 2 if plan.kept_pairs >= 2 else 4 if plan.keep_pairs else SWEEPS
        sweeps += SWEEPS
    topics = sweeps * 8 * job.basis.n_words * job.n_topics
    return (
        rounds * (made * (reading + blocks.pairs) + sweeps * blocks.refinement)
        + sweeps * (blocks.renewal + task * (job.row_blocks + 1))
        + topics / network
    )
