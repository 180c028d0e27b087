"""Create a store of any kind, with a foundation from a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.options import KindOptions, option_of
from streaming_moments.pipelines.jobs.kinds.registry import KIND_JOBS
from streaming_moments.printing.remedies import remedy
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
    """Create an empty store of any kind, with a foundation that fits the shards.

    Errors as in `create`. Raises ShardError also if shards mix texts and ids, and InvalidInput for
    options of another kind.
    """
    return KIND_JOBS[shape.kind].create(url, shards, shape, counting, options, run)


def require_options_of(
    shape: KindOptions, counting: CountingOptions, options: PilotOptions
) -> None:
    """Raise InvalidInput for options or columns that do not fit the kind."""
    own = KIND_JOBS[shape.kind].takes
    others = frozenset[str]().union(*(one.takes for one in KIND_JOBS.values())) - own
    if idle := others & (
        changed_options(shape) | changed_options(counting) | changed_options(options)
    ):
        every = [own for one in (shape, counting, options) for own in fields(one)]
        flags = sorted(option_of(own) for own in every if own.name in idle)
        named = remedy(", ".join(f"{{create.{flag}}}" for flag in flags))
        text = "a store of kind {kind} does not use {named}; remove it"
        raise InvalidInput(remedy(text, kind=shape.kind, named=named))
    form_of(shape)


def form_of(shape: KindOptions) -> Any:
    """Return where the records of a kind are, with their `columns`; None for documents."""
    return KIND_JOBS[shape.kind].form(shape)


def changed_options(options: Any) -> set[str]:
    """Return the names of the options that differ from their defaults."""
    return {
        one.name for one in fields(options) if getattr(options, one.name) not in (one.default, ())
    }
