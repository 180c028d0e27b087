"""The command that lets a tag stand for a model."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_line.shared_options import (
    json_option,
    print_version,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.option_types import StoreName
from streaming_moments.storage.operations.history import tag as tag_model
from streaming_moments.storage.store.store import MomentStore


@click.command()
@store_argument
@click.argument("name", type=StoreName())
@click.argument("model", type=StoreName())
@storage_option
@json_option
def tag(
    store: str, name: str, model: str, storage_options: dict[str, Any] | None, json_output: bool
) -> None:
    """Let the tag NAME stand for MODEL of STORE, wherever it stood before."""
    tagged = tag_model(MomentStore.open(store, storage_options=storage_options), name, model)
    print_version(tagged, f"{name} is model {tagged.commit.tags[name]}", json_output)
