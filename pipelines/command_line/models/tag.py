"""The command that moves a tag to a model."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    json_option,
    print_version,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.option_types import StoreName
from streaming_moments.storage.operations.history import tag as tag_model
from streaming_moments.storage.store.store import MomentStore


@click.command(cls=GroupedCommand, examples=("streaming-moments tag store published k20-joint-v7",))
@store_argument
@click.argument("name", type=StoreName())
@click.argument("model", type=StoreName())
@storage_option
@json_option
def tag(
    store: str, name: str, model: str, storage_options: dict[str, Any] | None, json_output: bool
) -> None:
    """Move the tag NAME to MODEL of STORE; creates the tag if it is new."""
    tagged = tag_model(MomentStore.open(store, storage_options=storage_options), name, model)
    print_version(tagged, f"{name} is model {tagged.commit.tags[name]}", json_output)
