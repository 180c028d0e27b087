"""The command line, third part: the topics of a store's models."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.history_cli import cli
from streaming_moments.pipelines.options import console, json_option, print_json, storage_option
from streaming_moments.pipelines.report import as_json, print_topics, topic_lines
from streaming_moments.storage.models import model_called
from streaming_moments.storage.store import MomentStore

__all__ = ["cli"]  # with the commands of all parts


@cli.command()
@click.argument("store")
@click.option("--model", "name", help="Name of the model [the latest].")
@click.option(
    "--words",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Words shown of each topic.",
)
@storage_option
@json_option
def topics(
    store: str,
    name: str | None,
    words: int,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show the topics of a model of STORE."""
    opened = MomentStore.open(store, storage_options=storage_options)
    model = opened.load_model(name)
    chosen = model_called(opened.commit, name)
    lines = topic_lines(model, opened.vocabulary, words)
    if json_output:
        print_json(
            {
                "store": opened.url,
                "model": chosen,
                "documents": model.documents,
                "alpha0": model.alpha0,
                "topics": [as_json(line) for line in lines],
            }
        )
        return
    print_topics(console(), lines, f"model {chosen} of {model.documents:,} documents")
