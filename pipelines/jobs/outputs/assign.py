"""Assign: infer the state of each record from up to three columns, and write it as Parquet."""

from __future__ import annotations

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.jobs.outputs.records import read_records, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputJob, Written, require_seed
from streaming_moments.printing.plural import of_number


def assign(job: OutputJob) -> Written:
    """Write one Parquet file for each shard, with the state of each record in column `topic`.

    Options are `method`, `seed` and `views`, the columns from which the model infers the state.
    Methods and seeds are as in `MultiViewMixture.transform`; the random numbers of a shard depend
    only on the seed and on its place among the shards. Raises InvalidInput if "gibbs" has no seed,
    a column is not a view, or two shards would write the same file. Raises ShardError, StoreError,
    BoundExceeded as `transform` does.
    """
    options, model = job.options, job.model
    require_seed(options.method, options.seed)
    if not {*options.views} <= {*model.columns}:
        raise InvalidInput(
            f"the given views are {', '.join(options.views)}, but the views of the model are "
            f"{', '.join(model.columns)}; give some of these"
        )
    words = sum(map(len, model.tables.values()))
    plan = plan_transform(words, model.n_topics, *job.room)
    found = write_records(job, "assigning records", plan, read_records, ("method", "views"))
    facts = {name: found.added(name) for name in ("documents", "empty", "outside")}
    empty = f" ({facts['empty']:,} of them without a known word)" if facts["empty"] else ""
    return Written(
        {"files": found.urls, **facts}, f"{of_number(facts['documents'], 'record')}{empty}"
    )
