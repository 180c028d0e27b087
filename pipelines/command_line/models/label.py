"""The command that names a topic."""

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
from streaming_moments.pipelines.option_types import Whole
from streaming_moments.storage.operations.labels import label as label_topic
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments label store 3 'Taxes and courts'",
        "streaming-moments label store 3 --remove",
    ),
)
@store_argument
@click.argument("topic", type=Whole(0))
@click.argument("text", required=False)
@click.option("--model", metavar="NAME", help="Name or tag of the model [the latest].")
@click.option("--remove", is_flag=True, help="Remove the label of TOPIC.")
@click.option("--message", default="", help="Message for the log of the store.")
@storage_option
@json_option
def label(
    store: str,
    topic: int,
    text: str | None,
    model: str | None,
    remove: bool,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Name a topic of a model of STORE: TOPIC is shown as TEXT from then on.

    Models that are fitted later use the label for the topic that matches this one.
    """
    if (text is None) != remove:
        raise click.UsageError("give a TEXT, or --remove to remove the label.")
    opened = MomentStore.open(store, storage_options=storage_options)
    after = label_topic(opened, topic, text or "", model, message)
    called = "has no label" if remove else f"is called {text}"
    print_version(after, f"topic {topic} {called}", json_output)
