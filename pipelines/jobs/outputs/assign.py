"""Assign: the states of all records in three views, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence

from streaming_moments.errors import InvalidInput
from streaming_moments.models.views.multi_view import MultiViewMixture
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.records import read_records, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputOptions,
    Written,
    require_seed,
)
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def assign(
    store: MomentStore,
    model: MultiViewMixture,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> Written:
    """Write one Parquet file a shard, a row for each record, whose `topic` is a state.

    Parameters
    ----------
    store, model, shards, output, run
        As of `transform`.
    options : OutputOptions
        `method` and `seed`, as in `MultiViewMixture.transform`; each shard draws from its own
        stream of the seed. `views`: the columns that records are read by; by default all three.

    Raises
    ------
    InvalidInput
        "gibbs" without a seed, a column that is no view, or two shards whose outputs would have one
        name.
    ShardError, StoreError, BoundExceeded
        As of `transform`.
    """
    require_seed(options.method, options.seed)
    if not {*options.views} <= {*model.columns}:
        raise InvalidInput(
            f"views {', '.join(options.views)}; give some of {', '.join(model.columns)}"
        )
    words = sum(map(len, model.tables.values()))
    room = run.cluster.threads, run.cluster.memory
    plan = plan_transform(words, model.n_topics, *room, run.limits)
    job = store, model, shards, output, run, options
    found = write_records(*job, "assigning records", plan, read_records, ("method", "views"))
    facts = {name: found.added(name) for name in ("documents", "empty", "outside")}
    empty = f", {facts['empty']:,} of them without a known word" if facts["empty"] else ""
    return Written({"files": found.urls, **facts}, f"{facts['documents']:,} records{empty}")
