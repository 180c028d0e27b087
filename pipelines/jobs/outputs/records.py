"""Records: a Parquet file for each shard, with the output of a model for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.pipelines.cluster.memory import ReadingPlan
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputJob,
    drawn,
    seed_of_batch,
    write_each,
)
from streaming_moments.storage.column_files import write_columns
from streaming_moments.storage.counting.named import with_names
from streaming_moments.storage.documents import ids_of
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.shards import Shard

# Part of the output for a shard: columns for some rows, and totals by name, which are added up over
# the shard.
Part = tuple[Mapping[str, Any], Mapping[str, Any]]
ReadShard = Callable[[Shard, int, OutputContext], Iterator[Part]]


@dataclass(frozen=True, eq=False)
class ShardFiles:
    """Files of a model's output, one for each shard in order, with the totals of each shard."""

    folder: OutputFolder
    urls: tuple[str, ...]
    totals: list[Mapping[str, Any]]

    def added(self, name: str) -> Any:
        """Add up the total `name` over all shards."""
        return sum(one[name] for one in self.totals)


def write_records(
    job: OutputJob,
    step: str,
    plan: ReadingPlan,
    read: ReadShard,
    content: Sequence[str] = (),
    names_shard: bool = False,
) -> ShardFiles:
    """Write a file for each shard from the parts that `read` yields; errors as in `transform`.

    step : name of the step
    plan : how much memory a worker may use for reading
    content : names of the options that affect what is written
    names_shard : whether the metadata of a file names its shard
    """
    folder = claim_output(job, (*content, *drawn(job.options)))
    # copy the labels to a plain dictionary, because the labels of a commit cannot be pickled
    asked = replace(job.options, labels=dict(job.options.labels))
    write = partial(_write_shard, read, names_shard)
    each = sorted(write_each(job, step, plan, write, folder, asked), key=lambda one: one[0])
    files, totals = zip(*(found for _, found in each), strict=True)
    return ShardFiles(folder, files, [*totals])


def _write_shard(
    read: ReadShard, names_shard: bool, shard: Shard, place: int, context: OutputContext
) -> tuple[str, dict[str, Any]]:
    totals: dict[str, Any] = {}

    def parts() -> Iterator[Mapping[str, Any]]:
        for columns, numbers in read(shard, place, context):
            for name, number in numbers.items():
                totals[name] = totals[name] + number if name in totals else number
            yield columns

    metadata = {b"shard": shard.url.encode()} if names_shard else None
    url = write_columns(context.output, proportions_file(shard.url), parts(), metadata)
    return url, totals


def read_records(shard: Shard, place: int, context: OutputContext) -> Iterator[Part]:
    """Yield a row for each record: its name, its place in the shard, and the model's output."""
    for _, columns, numbers in each_record(shard, place, context):
        yield columns, numbers


def each_record(
    shard: Shard, place: int, context: OutputContext
) -> Iterator[tuple[Any, Mapping[str, Any], dict[str, Any]]]:
    """Yield each batch of a shard with its output and totals; left-out records get null rows."""
    model, asked, first = context.model, context.asked, 0
    seeds = () if asked.seed is None else (asked.seed, place)
    for number, (read, ids) in enumerate(_named(shard, context)):
        said = model.read(read.batch, asked.method, seed_of_batch(seeds, number))
        records = _records(read)
        numbers = {"documents": records, "outside": read.outside}
        if "length" in said:
            numbers["empty"] = int((said["length"].array == 0).sum())
        if "log_likelihood" in said:
            numbers["log_likelihood"] = float(said["log_likelihood"].array.sum())
        every = said if said.number == records else said.among(read.kept)
        yield read, {**ids, **origins(shard, first, records), **every}, numbers
        first += records


def _named(shard: Shard, context: OutputContext) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield batches of a shard, with a column of record names if option `id_column` is given."""
    reading, asked = context.reading, context.asked
    reader: Any = reading.reader
    if asked.views:
        reader = replace(reader, given=asked.views)
    batches = reader.read(shard)
    if asked.id_column is None:
        yield from ((read, {}) for read in batches)
        return
    form, limits = reading.store.form, reading.limits
    given = ids_of(shard, form, asked.id_column, limits, reading.storage_options)
    named = with_names(batches, _records, given, shard.url)
    yield from ((read, {"id": ids}) for read, _, ids in named)


def _records(read: Any) -> int:
    """Count the records of a batch, including left-out ones."""
    return int(read.kept.size if hasattr(read, "kept") else read.batch.documents)


def origins(shard: Shard, first: int, number: int) -> dict[str, pa.Array]:
    """Make columns `source` and `row` for consecutive records of a shard."""
    rows = np.arange(first, first + number, dtype=np.int64)
    return {"source": pa.repeat(pa.scalar(shard.url), number), "row": pa.array(rows)}
