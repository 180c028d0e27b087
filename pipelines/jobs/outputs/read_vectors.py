"""Read vectors: write as Parquet the component or the factor values of each numeric record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.mixtures.passes import shape_of
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.jobs.outputs.records import (
    Part,
    ShardFiles,
    each_record,
    read_records,
    write_records,
)
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputJob,
    Written,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.quality.representatives import NearRow
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.top_documents import ModelRead, write_near_rows

STEP = "reading rows of numbers"
NAMED = ("id_column",)
_LARGEST = np.finfo(np.float64).max


@dataclass(frozen=True)
class _Nearest:
    """For each component, at most `number` rows nearest to its mean; `+` merges two objects."""

    number: int
    rows: tuple[tuple[NearRow, ...], ...]

    def __add__(self, other: _Nearest) -> _Nearest:
        pairs = zip(self.rows, other.rows, strict=True)
        return _Nearest(
            self.number, tuple(tuple(sorted(chain(*pair))[: self.number]) for pair in pairs)
        )


def read_components(job: OutputJob) -> Written:
    """Write one Parquet file for each shard, with a row for each record.

    The row of a record that is not numeric is null. If option `top_documents` is above 0, a
    separate file lists, for each component, this many rows nearest to its mean. The names of the
    records come from column `id_column`. Errors as in `transform`.
    """
    options, number = job.options, job.options.top_documents
    rows, k = shape_of(job.model)
    plan = plan_transform(rows, k, *job.room)
    found = write_records(job, STEP, plan, _with_nearest if number else read_records, NAMED)
    if not number:
        return rows_written(found)
    nearest = reduce(add, (one["nearest"] for one in found.totals)).rows
    of = ModelRead(job.store.url, options.name, options.labels)
    write_near_rows(found.folder, number, nearest, of)
    return rows_written(found, nearest)


def read_factors(job: OutputJob) -> Written:
    """Write the values of the factors as `read_components` does, but without `top_documents`."""
    plan = plan_transform(job.model.dimension, job.model.n_topics, *job.room)
    return rows_written(write_records(job, STEP, plan, read_records, NAMED))


def rows_written(found: ShardFiles, nearest: tuple[tuple[NearRow, ...], ...] = ()) -> Written:
    """Make the result for numeric records; add their mean log-likelihood if the model gives it."""
    documents, without = found.added("documents"), found.added("outside")
    left_out = f" ({without:,} of them not numeric)" if without else ""
    likely, told = None, tuple[str, ...]()
    if documents > without and "log_likelihood" in found.totals[0]:
        likely = found.added("log_likelihood") / (documents - without)
        told = (f"Mean log-likelihood of a row: {likely:.4f}.",)
    facts = {"files": found.urls, "documents": documents, "without": without}
    near = tuple(
        f"component {number}: {one.id + ', ' if one.id else ''}row {one.row} of {one.source}, "
        f"distance {one.distance:.4g}"
        for number, rows in enumerate(nearest)
        for one in rows
    )
    facts |= {"log_likelihood": likely, "nearest": nearest}
    return Written(facts, f"{of_number(documents, 'record')}{left_out}", (*told, *near))


def _with_nearest(shard: Shard, place: int, context: OutputContext) -> Iterator[Part]:
    """Do the same as `read_records`, and collect the rows nearest to the mean of each component."""
    means, number, first = context.model.means, context.asked.top_documents, 0
    for read, columns, numbers in each_record(shard, place, context):
        kept, ids = np.flatnonzero(read.kept), columns.get("id")
        near = []
        for mean in means:
            chosen, distances = _nearest(read.batch.values, mean, number)
            places = zip(distances, kept[chosen].tolist(), strict=True)
            near.append(
                tuple(
                    NearRow(away, shard.url, first + row, "" if ids is None else ids[row].as_py())
                    for away, row in places
                )
            )
        yield columns, {**numbers, "nearest": _Nearest(number, tuple(near))}
        first += read.kept.size


def _nearest(
    values: NDArray[Any], mean: NDArray[np.float64], number: int
) -> tuple[NDArray[np.intp], list[float]]:
    """Find the rows nearest to a mean, and their distances.

    Rows at equal distances stay in their order.
    """
    away = values - mean
    with np.errstate(over="ignore"):
        distances = np.linalg.norm(away, axis=1)
        far = np.isinf(distances)
        # Where squares overflowed, compute the distance again by `hypot`, which is slower but
        # squares no number. Clip the result, because JSON cannot hold infinity.
        distances[far] = np.minimum(np.hypot.reduce(away[far], axis=1), _LARGEST)
    chosen = np.argsort(distances, kind="stable")[:number]
    return chosen, distances[chosen].tolist()
