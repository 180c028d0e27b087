"""The command that writes the foundation of a store as a file."""

from __future__ import annotations

from shlex import quote
from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    STORE_URL,
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.terminal import confirm
from streaming_moments.storage.merging.shared_foundation import SharedFoundation
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=("streaming-moments foundation hub --output hub.json",),
)
@store_argument
@click.option("--output", required=True, type=STORE_URL, metavar="FILE", help="JSON file to write.")
@storage_option
@json_option
def foundation(
    store: str, output: str, storage_options: dict[str, Any] | None, json_output: bool
) -> None:
    """Write the words, basis and rules of STORE as a file, for `create --like` at another site.

    The file holds no counts, no models and no names of shards.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    SharedFoundation.of(opened).save(output, storage_options)
    names = opened.foundation.names()
    if json_output:
        print_json({"store": opened.url, "output": output, "kind": opened.kind, **names})
        return
    confirm(
        f"{output} holds the foundation of {opened.url}, of kind {opened.kind}.",
        f"Next: streaming-moments create NEW --like {quote(output)}",
    )
