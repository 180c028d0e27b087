"""Assign: the states of all records in three views, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streaming_moments.errors import InvalidInput
from streaming_moments.models.views.multi_view import MultiViewMixture
from streaming_moments.pipelines.cluster.model_memory import plan_transform
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.outputs.claiming import claim_output
from streaming_moments.pipelines.jobs.outputs.proportions import drawn, require_seed
from streaming_moments.pipelines.jobs.outputs.shard_outputs import (
    OutputContext,
    OutputOptions,
    origins,
    written_each,
)
from streaming_moments.storage.files.outputs import parquet_output
from streaming_moments.storage.proportions import proportions_file
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True)
class AssignResult:
    """What was written of records.

    Parameters
    ----------
    files : tuple of str
        One for each shard.
    documents : int
        Records in all.
    empty : int
        Those without a known word: they have no topic.
    outside : int
        Words that no view knows.
    """

    files: tuple[str, ...]
    documents: int
    empty: int
    outside: int

    def lines(self, output: str) -> list[str]:
        """For people, with the folder where it lies."""
        empty = f", {self.empty:,} of them without a known word" if self.empty else ""
        return [f"{self.documents:,} records{empty}; {len(self.files)} files in {output}"]

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {**asdict(self), "files": list(self.files)}


def assign(
    store: MomentStore,
    model: MultiViewMixture,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    options: OutputOptions,
) -> AssignResult:
    """Write one Parquet file a shard, a row for each record: see `states_schema`.

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
    content = ("method", "views", *drawn(options))
    folder = claim_output(store, model, shards, output, run, options, content)
    found = written_each(
        store, shards, run, "assigning records", plan, assign_shard, model, folder, options
    )
    files, *numbers = zip(*found, strict=True)
    return AssignResult(files, *map(sum, numbers))


def assign_shard(shard: Shard, place: int, context: OutputContext) -> tuple[str, int, int, int]:
    """Write the states of one shard: URL, records, those without a word, words outside."""
    model, reading, options = context.model, context.reading, context.options
    reader: Any = reading.reader
    name, schema = proportions_file(shard.url), states_schema(model.n_topics)
    documents = empty = outside = 0
    records = replace(reader, given=options.views).read(shard)
    with parquet_output(context.output, name, schema) as (url, writer):
        for number, read in enumerate(records):
            batch = read.batch
            seed = None
            if options.seed is not None:
                stream = np.random.SeedSequence([options.seed, place, number])
                seed = int(stream.generate_state(1)[0])
            proportions = model.transform(batch, options.method, seed)
            lengths = np.asarray(batch.lengths, dtype=np.int64)
            unknown = lengths == 0
            columns = [
                *origins(shard, documents, lengths.size),
                pa.array(lengths),
                pa.array(proportions.argmax(axis=1).astype(np.int32), mask=unknown),
                pa.FixedSizeListArray.from_arrays(
                    pa.array(proportions.ravel()), proportions.shape[1]
                ),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
            documents += lengths.size
            empty += int(unknown.sum())
            outside += read.outside
    return url, documents, empty, outside


def states_schema(k: int) -> pa.Schema:
    """Columns of a file: as of `proportions_schema`, a row a record, whose topic is a state.

    Examples
    --------
    >>> states_schema(2).names
    ['source', 'row', 'length', 'topic', 'proportions']
    """
    return pa.schema(
        [
            ("source", pa.string()),
            ("row", pa.int64()),
            ("length", pa.int64()),
            ("topic", pa.int32()),
            ("proportions", pa.list_(pa.float64(), k)),
        ]
    )
