"""Shard outputs: one file for each shard that a model reads, written by a task each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.pipelines.cluster.memory import ReadingPlan
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.reading import ReadingContext
from streaming_moments.storage.files.output_folders import OutputFolder
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

FOREIGN_BELOW = 0.2  # share of known words


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


@dataclass(frozen=True, eq=False)
class Written:
    """What a model wrote of some shards; its facts are attributes too, such as `documents`.

    Parameters
    ----------
    facts : dict
        All of it by name, the `files` among it.
    said : str
        Of all, for people.
    more : tuple of str
        Lines that follow.
    """

    facts: dict[str, Any]
    said: str
    more: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name in vars(self).get("facts", ()):
            return self.facts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def lines(self, output: str) -> list[str]:
        """For people, with the folder where it lies."""
        return [f"{self.said}; {len(self.files)} files in {output}", *self.more]

    def as_json(self) -> dict[str, Any]:
        """All of it by name."""
        return {**asdict(self)["facts"], "files": list(self.files)}


def write_each(
    store: MomentStore,
    shards: Sequence[Shard],
    run: Run,
    step: str,
    plan: ReadingPlan,
    write: Callable[[Shard, int, Any], Any],
    context: Callable[..., Any],
    *told: Any,
) -> Generator[tuple[int, Any], None, None]:
    """`write(shard, place, context(reading, *told))` of every shard as it is done, with its place.

    Parameters
    ----------
    store : MomentStore
        By which the shards are read.
    shards, run
        As of `transform`.
    step : str
        What it is called.
    plan : ReadingPlan
        Of the memory of a worker, the model's bytes among it.
    write, context : callable
        What a task does, and what makes all it needs beside its shard, once, on a worker.
    *told
        Of the context, behind its `ReadingContext`.

    Raises
    ------
    ShardError, StoreError, BoundExceeded
        As of `transform`.
    """
    # Dask is loaded by who has something to compute
    from streaming_moments.pipelines.cluster.tasks import run_in_turn

    limits = replace(run.limits, batch_bytes=plan.batch_bytes, row_group_bytes=plan.row_group_bytes)
    # made by tasks, so that they outlive any worker
    cluster = run.cluster
    client = cluster.client
    reading = client.submit(ReadingContext.of, store, limits, run.storage_options, pure=False)
    held = client.submit(context, reading, *told, pure=False)
    calls = [(shard, place, held) for place, shard in enumerate(shards)]
    in_flight = cluster.workers * plan.in_flight
    yield from run_in_turn(cluster, write, calls, in_flight, run.progress, step)


@dataclass(frozen=True, eq=False)
class OutputContext:
    """All a task needs beside its shard; `asked` are `OutputOptions`, or a `Provenance`."""

    reading: ReadingContext
    model: Any
    output: OutputFolder
    asked: Any

    __sizeof__ = held_bytes


def require_seed(method: str, seed: int | None) -> None:
    """Refuse to sample without a seed."""
    if method == "gibbs" and seed is None:
        raise InvalidInput("the Gibbs sampler needs a seed; give --seed")


def drawn(options: OutputOptions) -> tuple[str, ...]:
    """The option `seed` where proportions are drawn by it."""
    return ("seed",) if options.method == "gibbs" else ()


def seed_of_batch(seeds: Sequence[int], number: int) -> int | None:
    """Of a batch, of the seed of all and the place of the shard; None without these."""
    if not seeds:
        return None
    return int(np.random.SeedSequence([*seeds, number]).generate_state(1)[0])
