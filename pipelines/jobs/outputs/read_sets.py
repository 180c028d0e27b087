"""Read sets: the components of all rows of features, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.records import read_records, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions, Written
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def read_sets(
    store: MomentStore,
    model: BernoulliMixture,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> Written:
    """Write one Parquet file a shard, a row for each record, whose `topic` is a component.

    Arguments and errors as of `transform`; `id_column`, of what rows are called.
    """
    room = run.cluster.threads, run.cluster.memory
    plan = plan_transform(model.n_features, model.n_topics, *room, run.limits)
    job = store, model, shards, output, run, options
    found = write_records(*job, "reading sets", plan, read_records, ("id_column",))
    facts = {name: found.added(name) for name in ("documents", "empty", "outside")}
    likely = found.added("log_likelihood") / facts["documents"]
    empty = f", {facts['empty']:,} of them without a known feature" if facts["empty"] else ""
    told = f"{facts['documents']:,} records{empty}, log likelihood of a row {likely:.4f}"
    return Written({"files": found.urls, **facts, "log_likelihood": likely}, told)
