"""The command that estimates time, memory and disk for a corpus, before counting."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import click
from dask.system import CPU_COUNT
from distributed.system import MEMORY_LIMIT
from rich.console import Console
from rich.table import Table

from streaming_moments.pipelines.cluster.cluster import limit_for
from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    console,
    json_option,
    print_json,
    shards_argument,
    storage_option,
)
from streaming_moments.pipelines.command_line.stores.create import with_kind
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.option_types import COUNT, Bytes, Duration, Whole, declared_options
from streaming_moments.pipelines.planning.cost import (
    ClusterCost,
    MemoryNeed,
    cluster_cost,
    comfortable_budget,
    memory_need,
    recommended,
    store_bytes,
)
from streaming_moments.pipelines.planning.job import Job
from streaming_moments.pipelines.planning.kind_trial import try_out_any
from streaming_moments.pipelines.planning.merging import MergeCost, merge_cost
from streaming_moments.pipelines.planning.step_costs import StepCosts
from streaming_moments.pipelines.planning.update_cost import NETWORK_BYTES, UpdateCost, update_cost
from streaming_moments.pipelines.quantities import size_text
from streaming_moments.pipelines.reports.kinds.registry import KIND_REPORTS
from streaming_moments.pipelines.reports.outside_words import fewer_topics
from streaming_moments.pipelines.reports.status import print_facts
from streaming_moments.pipelines.terminal import DETAILED, asked_for, note, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.listing import list_shards

_WORKERS = (1, 2, 4, 8, 16, 32)
_MORE_WORKERS = (1, 2, 4, 16, 64, 256, 1000)
_MEGABYTE = 1e6
_STEPS = ("create", "update", "refit")


@dataclass(frozen=True)
class Plan:
    """Costs of a corpus.

    costs : costs of single steps, measured on this machine
    memory : memory of one worker
    network : bytes a second that a worker receives
    disk_bytes : bytes of the store on disk
    merge : cost of the first merge of the store into a hub
    clusters : cost of all steps for several numbers of workers
    updates : cost of an update for several numbers of workers, up to a thousand
    best : the recommended cluster
    """

    job: Job
    costs: StepCosts
    memory: MemoryNeed
    network: int
    disk_bytes: float
    merge: MergeCost
    clusters: tuple[ClusterCost, ...]
    updates: tuple[UpdateCost, ...]
    best: ClusterCost

    @property
    def worker_limit(self) -> int:
        """Memory limit that a worker needs; jobs use a part of it as their default budget."""
        return limit_for(self.memory.budget)

    @property
    def fits(self) -> bool:
        """Whether this machine has as much memory as a worker needs."""
        return self.worker_limit <= MEMORY_LIMIT

    @property
    def segments(self) -> int:
        """Number of commits of the first update, if one worker runs it."""
        return update_cost(self.job, self.costs, 1, self.memory.budget).groups


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments plan 'shards/*.parquet'",
        "streaming-moments plan s3://bucket/shards/ --max-topics 64 --workers 8 --within 30m",
    ),
)
@shards_argument
@declared_options(KindOptions, "shape")
@declared_options(PilotOptions, "pilot", without=("seed",))
@click.option(
    "--topics",
    "n_topics",
    type=COUNT,
    help="Number of topics or states that a refit will have [value of --max-topics, or 10 states].",
)
@declared_options(
    CountingOptions, "counting", without=("stop_words", "date_column", "date_pattern")
)
@click.option(
    "--workers", type=Whole(1), multiple=True, help="Number of workers to estimate for; repeatable."
)
@click.option(
    "--memory", type=Bytes(), help="Memory budget of a worker, such as 4GB [chosen for speed]."
)
@click.option(
    "--network",
    type=Bytes(),
    default=f"{NETWORK_BYTES >> 20}MiB",
    show_default=True,
    help="Bytes that a worker can receive per second. Values above the default do not change the "
    "estimate.",
)
@click.option(
    "--within",
    type=Duration(),
    default="1h",
    show_default=True,
    help="Recommend a cluster that reads the whole corpus in this time.",
)
@storage_option
@json_option
def plan(
    shards: tuple[str, ...],
    shape: KindOptions,
    n_topics: int | None,
    counting: CountingOptions,
    pilot: PilotOptions,
    workers: tuple[int, ...],
    memory: int | None,
    network: int,
    within: timedelta,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Estimate what a store of SHARDS costs: time, memory, disk. Reads a few megabytes.

    The first line says whether this machine has enough memory. --verbose prints sizes, and times
    by number of workers.
    """
    listed = list_shards(shards, storage_options, counting.format, tell=tell)
    shape, counting, _ = with_kind(listed, shape, counting, storage_options, json_output)
    require_options_of(shape, counting, pilot)
    job, costs = try_out_any(listed, shape, counting, pilot, n_topics, CPU_COUNT, storage_options)
    if pilot.max_topics is None and job.of_documents and job.basis.table is None:
        fewer = fewer_topics(job.basis.core)
        if fewer is not None:
            note(str(fewer))
    made = plan_of(job, costs, workers, memory, within.total_seconds(), network)
    if json_output:
        print_json(plan_as_json(made))
    else:
        print_plan(console(), made, asked_for(DETAILED))
        if not asked_for(DETAILED):
            note("--verbose prints the details, --json all numbers")


def plan_of(
    job: Job,
    costs: StepCosts,
    workers: tuple[int, ...],
    memory: int | None,
    within: float,
    network: int = NETWORK_BYTES,
) -> Plan:
    """Combine the costs of the single steps into a plan, for each number of workers.

    A memory budget that cannot hold the work raises BoundExceeded.
    """
    budget = memory or comfortable_budget(job, costs.threads)
    return Plan(
        job,
        costs,
        memory_need(job, 1, costs.threads, budget),
        network,
        store_bytes(job, costs, budget),
        merge_cost(job, costs, budget, network),
        tuple(cluster_cost(job, costs, n, budget, network) for n in workers or _WORKERS),
        tuple(update_cost(job, costs, n, budget, network) for n in workers or _MORE_WORKERS),
        recommended(job, costs, budget, within, network=network),
    )


def plan_as_json(made: Plan) -> dict[str, Any]:
    """Return the plan as one JSON object; sizes in bytes, times in seconds."""
    reading, job = made.costs.reading, made.job
    return {
        "corpus": asdict(made.job.corpus),
        "sampled_bytes": reading.sampled_bytes,
        "seconds_per_megabyte": reading.read * _MEGABYTE / made.costs.threads,
        "documents": reading.passages * made.job.corpus.nbytes,
        "tokens": reading.tokens * made.job.corpus.nbytes,
        **KIND_REPORTS[job.foundation.kind].planned(job.foundation),
        "row_blocks": job.row_blocks,
        "documents_that_fit": job.room,
        "segments": made.segments,
        "state_bytes": job.layout.state_bytes,
        "store_bytes": made.disk_bytes,
        "memory": {**asdict(made.memory), "peak": made.memory.peak, "limit": made.worker_limit},
        "merge": asdict(made.merge),
        "machine_bytes": MEMORY_LIMIT,
        "fits": made.fits,
        "threads": made.costs.threads,
        "network": made.network,
        "passes": made.updates[0].passes,
        "clusters": [_cluster_as_json(one) for one in made.clusters],
        "updates": [asdict(one) for one in made.updates],
        "recommended": _cluster_as_json(made.best),
    }


def print_plan(console: Console, made: Plan, details: bool = False) -> None:
    """Print whether this machine has enough memory, and the time, memory and disk of the corpus.

    With `details`, print all numbers.
    """
    job, corpus, memory = made.job, made.job.corpus, made.memory
    reading, threads, best = made.costs.reading, made.costs.threads, made.best
    what = KIND_REPORTS[job.foundation.kind].records
    steps = ", ".join(f"{step} {_time(getattr(best, step))}" for step in _STEPS)
    each = " each" if best.workers > 1 else ""
    print_facts(
        console,
        [
            ("fits here", _fit_text(made)),
            (
                "recommended",
                f"{of_number(best.workers, 'worker')} of {of_number(threads, 'thread')}, "
                f"{mebibytes(made.worker_limit)} of memory{each}",
            ),
            ("time", f"{_time(best.total)}: {steps}"),
            ("memory", f"at most {mebibytes(memory.peak)} in a worker"),
            ("disk", f"{mebibytes(made.disk_bytes)} for the store"),
            (
                "corpus",
                f"{of_number(corpus.shards, 'shard')}, {mebibytes(corpus.nbytes)} as stored; "
                f"about {reading.passages * corpus.nbytes:,.0f} documents{what}",
            ),
        ],
    )
    if details:
        _print_details(console, made)


def _fit_text(made: Plan) -> str:
    there = f"{mebibytes(MEMORY_LIMIT)} of memory"
    if made.fits:
        return f"yes, this machine has {there}"
    budget = size_text((MEMORY_LIMIT * 3 // 5) >> 20 << 20)
    return f"no, this machine has {there}; --memory {budget} plans for it"


def _print_details(console: Console, made: Plan) -> None:
    """Print all numbers, and the times for each number of workers."""
    job, corpus, memory = made.job, made.job.corpus, made.memory
    reading, threads = made.costs.reading, made.costs.threads
    rows = [
        (
            "measured",
            f"{reading.sampled_bytes / _MEGABYTE:.1f} MB read on {of_number(threads, 'thread')}: "
            f"{reading.read * _MEGABYTE / threads:.3f} s a MB",
        ),
        ("tokens", f"{reading.tokens * corpus.nbytes:,.0f} in the vocabulary"),
        *_state_rows(job),
        (
            "store on disk",
            f"{mebibytes(made.disk_bytes)} in {of_number(made.segments, 'segment')} after the "
            "first update",
        ),
        (
            "memory of a worker",
            f"--memory {size_text(memory.budget)}, which is 60% of its limit: create "
            f"{mebibytes(memory.create)}, update {mebibytes(memory.update)}, refit "
            f"{mebibytes(memory.refit)} at most; an update reads the shards "
            f"{_times(made.updates[0].passes)}",
        ),
    ]
    rows.append(("merge into a hub", _merge_text(made.merge)))
    console.print()
    print_facts(console, rows)
    console.print()
    times = Table(show_edge=False, pad_edge=False)
    for name in (f"workers of {of_number(threads, 'thread')}", *_STEPS):
        times.add_column(name, justify="right")
    for one in made.clusters:
        times.add_row(str(one.workers), *(_time(getattr(one, step)) for step in _STEPS))
    console.print(times)
    _print_updates(console, made)


def _merge_text(cost: MergeCost) -> str:
    return (
        f"{mebibytes(cost.copied_bytes)} copied in {cost.requests:,} requests: "
        f"{_time(cost.seconds)}, {mebibytes(cost.memory)} of files in memory; later merges copy "
        "only new segments"
    )


def _state_rows(job: Job) -> list[tuple[str, str]]:
    state, blocks = mebibytes(job.layout.state_bytes), of_number(job.row_blocks, "row block")
    return KIND_REPORTS[job.foundation.kind].planned_rows(job.foundation, state, blocks, job.room)


def _print_updates(console: Console, made: Plan) -> None:
    """Print the estimated speed of an update, for each number of workers.

    The estimate assumes enough shards for all workers.
    """
    console.print(
        f"\nestimate of an update with enough shards for all workers, each receiving "
        f"{mebibytes(made.network)} a second, from the measured costs of one worker:"
    )
    table = Table(show_edge=False, pad_edge=False)
    for name in ("workers", "documents/s", "a commit each", "its close", "received", "limit"):
        table.add_column(name, justify="right")
    for one in made.updates:
        table.add_row(
            f"{one.workers:,}",
            f"{one.documents_per_second:,.0f}",
            _time(one.group_seconds),
            _time(one.close_seconds),
            mebibytes(one.received_bytes),
            one.limit,
        )
    console.print(table)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times, as memory is short"


def _cluster_as_json(one: ClusterCost) -> dict[str, float]:
    return {**asdict(one), "total": one.total}


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
