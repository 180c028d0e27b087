"""Complete: fill in missing values of tables by a latent tree model, and write Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.pipelines.jobs.outputs.records import Part, write_records
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputJob,
    Written,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.shards import Shard

SCORES = ("log_probability", "chow_liu_log_probability")
# Complete this many rows of a table at a time: each node of the tree needs arrays with as many
# rows.
_ROWS = 2048
# A worker holds this many arrays for each node of the tree: beliefs, messages, distributions, and
# the message that is being computed.
_NODE_ARRAYS = 4


def complete(job: OutputJob) -> Written:
    """Write one Parquet file for each shard, with one row for each row of the shard.

    The options of the job have no effect here. Errors as in `transform`.
    """
    model = job.model
    states = sum(table.shape[1] for tree in (model.tree, model.dependence) for table in tree.tables)
    nbytes = _NODE_ARRAYS * 8 * _ROWS * states
    plan = job.plan("a completion", f"{states} states of nodes", nbytes)
    found = write_records(job, "completing rows", plan, _read, names_shard=True)
    rows = found.added("documents")
    means = {name: found.added(name) / max(rows, 1) for name in SCORES}
    own, other = means.values()
    better = "" if own >= other else ", which fits these rows better"
    score = (
        f"Mean log-probability of the known values of a row: {own:.4f} nats; with Chow-Liu's tree "
        f"{other:.4f}{better}."
    )
    facts = {"documents": rows, "files": found.urls, **means}
    return Written(facts, of_number(rows, "row"), (score,))


def _read(shard: Shard, place: int, context: OutputContext) -> Iterator[Part]:
    """Yield the columns of the table, then the columns of results, whose names begin with "_"."""
    first = 0
    for read in context.reading.read(shard):
        batch: Any = read.batch
        for begin in range(0, batch.documents, _ROWS):
            said = context.model.read(batch.select(begin, min(begin + _ROWS, batch.documents)))
            scores = said["log_likelihood"].array, said["chow_liu_log_likelihood"].array
            columns = {
                **said["completed"],
                "_document": pa.array(np.arange(first, first + said.number)),
                "_missing": said["missing"],
                "_probabilities": said["probabilities"],
                **{f"_{name}": pa.array(one) for name, one in zip(SCORES, scores, strict=True)},
            }
            sums = (float(one.sum()) for one in scores)
            yield columns, {"documents": said.number, **dict(zip(SCORES, sums, strict=True))}
            first += said.number
