"""Shard outputs: one file for each shard that a model reads, each written by a task."""

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
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.column_files import read_columns
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FOREIGN_BELOW = 0.2  # share of known words below which a document gets no topic
_COPIES = 2  # copies of the model that a worker holds: one in use, one in transit


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Options for reading shards with a model; arguments as in `transform`.

    `replace` deletes files of another model in the output folder first.
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
    """Files that a model without topics wrote. Each of `facts` is also an attribute.

    facts : all numbers by name, and the `files`
    said : what was written, for the first line of the summary, such as "3 rows"
    more : further lines of the summary
    storage_options : options to read the files
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
        """Return all rows of the files as one Arrow table.

        Raises StoreError if a file no longer exists.
        """
        return read_columns(self.files, self.storage_options)

    def to_frame(self) -> pd.DataFrame:
        """Return the content of `to_table` as a pandas frame."""
        return self.to_table().to_pandas()

    def lines(self, output: str) -> list[str]:
        """Return a summary for people, in lines; `output` is the folder of the files."""
        files = of_number(len(self.files), "file")
        return [f"Wrote {self.said} to {output} ({files}).", *self.more]

    def as_json(self) -> dict[str, Any]:
        """Return all facts by name."""
        # use `asdict`, because it also turns rows and documents in the facts into dictionaries
        facts = asdict(replace(self, storage_options=None))["facts"]
        return {**facts, "files": list(self.files)}


@dataclass(frozen=True, eq=False)
class OutputJob:
    """A job in which a model reads shards and writes files; fields are arguments of `transform`."""

    store: MomentStore
    model: Any
    shards: Sequence[Shard]
    output: str
    run: Run
    options: OutputOptions

    @property
    def room(self) -> tuple[int, int, ReadLimits]:
        """Threads of a worker, memory of a worker, and limits on how much it reads at a time."""
        return self.run.cluster.threads, self.run.cluster.memory, self.run.limits

    def plan(self, job: str, made: str, nbytes: int) -> ReadingPlan:
        """Plan the memory of workers.

        Each task holds `nbytes` bytes besides its input. In messages, `made` says what takes these
        bytes.
        """
        held = {"the model": _COPIES * held_bytes(self.model)}
        return plan_reading(*self.room, job, held=held, beside={made: nbytes})


@dataclass(frozen=True, eq=False)
class OutputContext:
    """All that a task needs besides its shard; `asked` are `OutputOptions` or a `Provenance`."""

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
    """Call `write(shard, place, context)` for each shard; yield the shard's place and the result.

    Errors as in `transform`.
    """
    # imported here so that runs without work start faster
    from streaming_moments.pipelines.cluster.tasks import run_in_turn, task_key

    run, cluster = job.run, job.run.cluster
    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    # let tasks make the contexts, so that Dask can make them again if a worker dies
    submit = cluster.client.submit
    reading = submit(
        ReadingContext.of,
        job.store,
        limits,
        run.storage_options,
        pure=False,
        key=task_key("opening the store"),
    )
    held = submit(
        OutputContext,
        reading,
        job.model,
        folder,
        asked,
        pure=False,
        key=task_key("opening the store"),
    )
    calls = [(shard, place, held) for place, shard in enumerate(job.shards)]
    in_flight = cluster.workers * plan.in_flight
    yield from run_in_turn(cluster, write, calls, in_flight, run.progress, step)


def require_seed(method: str, seed: int | None) -> None:
    """Raise InvalidInput for sampling without a seed."""
    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed", "give {option.seed}")


def drawn(options: OutputOptions) -> tuple[str, ...]:
    """Return the name of option `seed` if the method samples proportions, otherwise nothing."""
    return ("seed",) if options.method == "gibbs" else ()


def seed_of_batch(seeds: Sequence[int], number: int) -> int | None:
    """Return the seed of batch `number`; `seeds` are the run's seed and the place of the shard."""
    if not seeds:
        return None
    return int(np.random.SeedSequence([*seeds, number]).generate_state(1)[0])
