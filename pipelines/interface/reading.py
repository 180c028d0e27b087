"""Columns and options for reading records of any kind with their models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import FitOptions, Model
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.kinds.create_kinds import form_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.outputs.registry import output_of
from streaming_moments.pipelines.jobs.outputs.shard_outputs import OutputOptions, Written
from streaming_moments.pipelines.jobs.outputs.transform import TransformResult
from streaming_moments.storage.shards import Shard, ShardFormat
from streaming_moments.storage.store.store import MomentStore


def columns_counted(shape: KindOptions, form: ShardFormat) -> tuple[str, ...]:
    """Return the columns that a store with these options counts; empty for texts.

    Examples
    --------
    >>> columns_counted(KindOptions("views", "title:text,year,author"), ShardFormat())
    ('title', 'year', 'author')
    """
    own = form_of(shape)
    return form.categories if own is None else own.columns


def options_of(model: type[Model], given: Mapping[str, Any]) -> FitOptions:
    """Return options of a model from their names and values.

    Every model calls its number of topics or states `n_topics`.

    Raises InvalidInput for an unknown, missing or invalid option; the message lists the options.
    """
    known = {argument_of(one.name): one for one in fields(model.Options)}
    unknown = [name for name in given if name not in known]
    lacking = [name for name, one in known.items() if one.default is MISSING and name not in given]
    if unknown or lacking:
        problem = (
            f"has no option {unknown[0]!r}" if unknown else f"needs a value for {lacking[0]!r}"
        )
        raise InvalidInput(f"a model {model.name} {problem}; its options are {', '.join(known)}")
    return model.Options(**given)


def argument_of(option: str) -> str:
    """Return the name of the argument in Python for an option of `refit`.

    Examples
    --------
    >>> argument_of("topics"), argument_of("method")
    ('n_topics', 'method')
    """
    return "n_topics" if option == "topics" else option


def require_idle(model: Model, given: Mapping[str, object]) -> None:
    """Raise InvalidInput if arguments are given that apply to documents only."""
    if idle := [name for name, value in given.items() if value]:
        raise InvalidInput(f"the model is of type {model.name}; leave out {', '.join(idle)}")


def read_by(
    store: MomentStore,
    model: Model,
    shards: Sequence[Shard],
    output: str,
    run: Run,
    name: str,
    replace: bool,
) -> Written | TransformResult:
    """Write what a model without topics finds in shards; errors as in the job of the model.

    `name` is the name of the model. Raises InvalidInput for shards that this model cannot read.
    """
    made = output_of(model.name)
    method = next(iter(made.methods), "")
    options = OutputOptions(method=method, name=name, replace=replace)
    written = made.write(store, model, shards, output, run, options)
    if isinstance(written, TransformResult):
        return written
    return dataclasses.replace(written, storage_options=run.storage_options)
