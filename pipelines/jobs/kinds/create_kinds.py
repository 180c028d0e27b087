"""Create a store of any kind: what its records are counted on, from a pilot of shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def create_kind(
    url: str,
    shards: Sequence[Shard],
    shape: KindOptions,
    counting: CountingOptions,
    options: PilotOptions,
    run: Run,
) -> MomentStore:
    """Make an empty store of any kind, whose foundation fits the shards; errors as of `create`.

    ShardError also where shards hold texts and others ids, InvalidInput for options of another
    kind.
    """
    return KIND_JOBS[shape.kind].create(url, shards, shape, counting, options, run)


def require_options_of(
    shape: KindOptions, counting: CountingOptions, options: PilotOptions
) -> None:
    """Raise InvalidInput for options that the kind does not take, and for misfitting columns."""
    own = KIND_JOBS[shape.kind].takes
    others = frozenset[str]().union(*(one.takes for one in KIND_JOBS.values())) - own
    if idle := others & (_changed(shape) | _changed(counting) | _changed(options)):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(idle))
        raise InvalidInput(f"a store of kind {shape.kind} does not use {flags}; remove it")
    form_of(shape)


def form_of(shape: KindOptions) -> Any:
    """Where the records of a kind lie, with their `columns`; None of documents."""
    return KIND_JOBS[shape.kind].form(shape)


def _changed(options: Any) -> set[str]:
    return {
        one.name for one in fields(options) if getattr(options, one.name) not in (one.default, ())
    }
