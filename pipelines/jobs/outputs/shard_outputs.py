"""Shard outputs: one file for each shard that a model reads, written by a task each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.memory import plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def write_each(
    store: MomentStore,
    shards: Sequence[Shard],
    run: Run,
    step: str,
    write: Callable[[Shard, int, Any], Any],
    context: Callable[..., Any],
    *told: Any,
) -> list[Any]:
    """`write(shard, place, context(reading, *told))` of every shard, in their order.

    Parameters
    ----------
    store : MomentStore
        By which the shards are read.
    shards, run
        As of `transform`.
    step : str
        What it is called.
    write, context : callable
        What a task does, and what makes all it needs beside its shard, once, on a worker.
    *told
        Of the context, behind its `ReadingContext`.

    Raises
    ------
    InvalidInput
        Two shards whose outputs would have one name.
    ShardError, StoreError, BoundExceeded
        As of `transform`.
    """
    if len({proportions_file(shard.url) for shard in shards}) < len(shards):
        raise InvalidInput("two shards have outputs of one name; transform them separately")
    plan = plan_reading(run.cluster.threads, run.cluster.memory, run.limits)
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    # made by tasks, so that they outlive any worker
    client = run.cluster.client
    reading = client.submit(ReadingContext.of, store, limits, run.storage_options, pure=False)
    held = client.submit(context, reading, *told, pure=False)
    calls = [(shard, place, held) for place, shard in enumerate(shards)]
    return run.calls(step, write, calls, plan.in_flight)
