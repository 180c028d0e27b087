"""Shard outputs: one file for each shard that a model reads, written by a task each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.memory import ReadingPlan, plan_reading
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.column_files import read_columns
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FOREIGN_BELOW = 0.2  # share of known words
_COPIES = 2  # of the model, one on its way


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How a model reads shards and what is written of them; arguments as of `transform`.

    `replace` says whether files of another model in the output are deleted first.
    """

    method: str = ""
    seed: int | None = None
    id_column: str | None = None
    passages: bool = False
    top_documents: int = 0
    foreign_below: float = FOREIGN_BELOW
    name: str = ""
    labels: Mapping[int, str] = field(default_factory=dict)
    views: tuple[str, ...] = ()
    replace: bool = False


@dataclass(frozen=True)
class Written:
    """What a model without topics wrote; its facts, such as `documents`, are attributes too.

    facts : all numbers by name, and the `files`
    said : a line for people
    more : further lines
    storage_options : by which the files are read
    """

    facts: dict[str, Any]
    said: str
    more: tuple[str, ...] = ()
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    __repr__ = short_repr

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("facts", ()):
            return self.facts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def to_table(self) -> pa.Table:
        """All rows of the files as one Arrow table; raises StoreError if a file is gone."""
        return read_columns(self.files, self.storage_options)

    def to_frame(self) -> pd.DataFrame:
        """As `to_table`, as a pandas frame."""
        return self.to_table().to_pandas()

    def lines(self, output: str) -> list[str]:
        """Lines for people, with the folder of the files."""
        return [f"{self.said}; {len(self.files)} files in {output}", *self.more]

    def as_json(self) -> dict[str, Any]:
        """All facts by name."""
        # rows and documents within facts become dictionaries too
        facts = asdict(replace(self, storage_options=None))["facts"]
        return {**facts, "files": list(self.files)}


@dataclass(frozen=True, eq=False)
class OutputJob:
    """A model that reads shards, where its files go and how; fields as of `transform`."""

    store: MomentStore
    model: Any
    shards: Sequence[Shard]
    output: str
    run: Run
    options: OutputOptions

    @property
    def room(self) -> tuple[int, int, ReadLimits]:
        """Threads and memory of a worker, and how much is read at a time."""
        return self.run.cluster.threads, self.run.cluster.memory, self.run.limits

    def plan(self, job: str, made: str, nbytes: int) -> ReadingPlan:
        """Plan the memory of workers whose tasks hold `nbytes` of `made` beside what they read."""
        held = {"the model": _COPIES * held_bytes(self.model)}
        return plan_reading(*self.room, job, held=held, beside={made: nbytes})


@dataclass(frozen=True, eq=False)
class OutputContext:
    """All a task needs beside its shard; `asked` are `OutputOptions`, or a `Provenance`."""

    reading: ReadingContext
    model: Any
    output: OutputFolder
    asked: Any

    __sizeof__ = held_bytes


def write_each(
    job: OutputJob,
    step: str,
    plan: ReadingPlan,
    write: Callable[[Shard, int, OutputContext], Any],
    folder: OutputFolder,
    asked: Any,
) -> Generator[tuple[int, Any], None, None]:
    """Yield place and `write(shard, place, context)` of each shard as it is done.

    Errors as of `transform`.
    """
    # Dask is loaded by who has something to compute
    from streaming_moments.pipelines.cluster.tasks import run_in_turn

    run, cluster = job.run, job.run.cluster
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    # made by tasks, so that they outlive any worker
    submit = cluster.client.submit
    reading = submit(ReadingContext.of, job.store, limits, run.storage_options, pure=False)
    held = submit(OutputContext, reading, job.model, folder, asked, pure=False)
    calls = [(shard, place, held) for place, shard in enumerate(job.shards)]
    in_flight = cluster.workers * plan.in_flight
    yield from run_in_turn(cluster, write, calls, in_flight, run.progress, step)


def require_seed(method: str, seed: int | None) -> None:
    """Refuse to sample without a seed."""
    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed; give --seed")


def drawn(options: OutputOptions) -> tuple[str, ...]:
    """The option `seed` where proportions are drawn by it."""
    return ("seed",) if options.method == "gibbs" else ()


def seed_of_batch(seeds: Sequence[int], number: int) -> int | None:
    """Seed of a batch, by the seed of the run and the place of its shard; None without them."""
    if not seeds:
        return None
    return int(np.random.SeedSequence([*seeds, number]).generate_state(1)[0])
