"""The command that copies a model of another store."""

from __future__ import annotations

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
from streaming_moments.pipelines.option_types import StoreName
from streaming_moments.pipelines.terminal import confirm
from streaming_moments.storage.merging.model_copies import PulledModel
from streaming_moments.storage.merging.model_copies import pull_model as copy_model
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments pull-model rome s3://hub/store",
        "streaming-moments pull-model rome hub --model k8-joint-v7 --as europe",
    ),
)
@store_argument
@click.argument("hub", type=STORE_URL)
@click.option(
    "--model",
    type=StoreName(),
    help="Name or tag of the model at HUB [the model with tag `published`, else the latest model].",
)
@click.option(
    "--as", "name", type=StoreName(), help="Name of the model in STORE [its name at HUB]."
)
@click.option("--message", default="", help="Message for the log of STORE.")
@storage_option
@json_option
def pull_model(
    store: str,
    hub: str,
    model: str | None,
    name: str | None,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Copy a model of the store HUB to STORE, which has the same foundation.

    STORE then uses the model like its own models. If --model is a tag of HUB, such as published,
    STORE moves its tag of the same name to the copy.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    other = MomentStore.open(hub, storage_options=storage_options, whole=False)
    done = copy_model(opened, other, model, name, message)
    if json_output:
        source = done.source
        print_json(
            {
                "store": done.store.url,
                "version": done.store.version,
                "model": done.name,
                "tag": done.tag,
                "copied": done.is_new,
                "hub": source.url,
                "hub_model": source.name,
                "hub_version": source.version,
            }
        )
        return
    confirm(_line(done))


def _line(done: PulledModel) -> str:
    source = done.source
    also = "" if done.name == source.name else f" as {done.name}"
    what = f"copied model {source.name}{also} from {source.url}"
    if not done.is_new:
        what = f"model {done.name} of {source.url} was already copied"
    tag = f"; tag {done.tag} names it" if done.tag else ""
    return f"version {done.store.version}: {what} (fitted to its version {source.version}){tag}"
