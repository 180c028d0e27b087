"""Read sets: write as Parquet the mixture component of each record, a set of features."""

from __future__ import annotations

from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.jobs.outputs.records import read_records, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputJob, Written
from streaming_moments.printing.plural import of_number


def read_sets(job: OutputJob) -> Written:
    """Write one Parquet file for each shard, with the component of each record in a row.

    The names of the records come from column `id_column`. Errors as in `transform`.
    """
    plan = plan_transform(job.model.n_features, job.model.n_topics, *job.room)
    found = write_records(job, "reading sets", plan, read_records, ("id_column",))
    facts = {name: found.added(name) for name in ("documents", "empty", "outside")}
    likely = found.added("log_likelihood") / facts["documents"]
    empty = f" ({facts['empty']:,} of them without a known feature)" if facts["empty"] else ""
    return Written(
        {"files": found.urls, **facts, "log_likelihood": likely},
        f"{of_number(facts['documents'], 'record')}{empty}",
        (f"Mean log-likelihood of a row: {likely:.4f}.",),
    )
