"""Records: a Parquet file for each shard, with what a model says of each of its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.pipelines.cluster.memory import ReadingPlan
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputOptions,
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
from streaming_moments.storage.store.store import MomentStore

# Columns of some rows, and numbers by name that are added up over a shard.
Part = tuple[Mapping[str, Any], Mapping[str, Any]]
ReadShard = Callable[[Shard, int, OutputContext], Iterator[Part]]


@dataclass(frozen=True, eq=False)
class ShardFiles:
    """Files of shards, in their order, in a folder that was claimed, and what each added up."""

    folder: OutputFolder
    urls: tuple[str, ...]
    totals: list[Mapping[str, Any]]

    def added(self, name: str) -> Any:
        """The sum of the numbers of a name over all shards."""
        return sum(one[name] for one in self.totals)


def write_records(
    store: MomentStore,
    model: Any,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
    step: str,
    plan: ReadingPlan,
    read: ReadShard,
    content: Sequence[str] = (),
    names_shard: bool = False,
) -> ShardFiles:
    """Write all parts that `read` gives of each shard into a file.

    `step` is what it is called, `plan` the memory of a worker, `content` names the options that
    change a file, and `names_shard` says whether its metadata has its shard. Errors as of
    `transform`.
    """
    folder = claim_output(store, model, shards, output, run, options, (*content, *drawn(options)))
    # plain labels: those of a commit do not travel
    own = replace(options, labels=dict(options.labels))
    work = partial(_write_shard, read, names_shard), OutputContext, model, folder, own
    each = sorted(write_each(store, shards, run, step, plan, *work), key=lambda one: one[0])
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
    """A row for each record: what it is called, where it lies, what the model says of it."""
    for _, columns, numbers in each_record(shard, place, context):
        yield columns, numbers


def each_record(
    shard: Shard, place: int, context: OutputContext
) -> Iterator[tuple[Any, Mapping[str, Any], dict[str, Any]]]:
    """The batches of a shard, with the part of each.

    The columns of a record that is left out, as it is no row of numbers, are null.
    """
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
    """Batches of a shard, and what their records are called, where that is asked for."""
    reading, asked = context.reading, context.asked
    reader: Any = reading.reader
    if asked.views:
        reader = replace(reader, given=asked.views)
    batches = reader.read(shard)
    if asked.id_column is None:
        yield from ((read, {}) for read in batches)
        return
    told = reading.store.form, asked.id_column, reading.limits, reading.storage_options
    named = with_names(batches, _records, ids_of(shard, *told), shard.url)
    yield from ((read, {"id": ids}) for read, _, ids in named)


def _records(read: Any) -> int:
    """Records of a batch, those that are left out among them."""
    return int(read.kept.size if hasattr(read, "kept") else read.batch.documents)


def origins(shard: Shard, first: int, number: int) -> dict[str, pa.Array]:
    """Columns `source` and `row` of so many records of a shard, from one of them on."""
    rows = np.arange(first, first + number, dtype=np.int64)
    return {"source": pa.repeat(pa.scalar(shard.url), number), "row": pa.array(rows)}
