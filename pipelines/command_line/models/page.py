"""The command that writes a page of a model."""

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
from streaming_moments.pipelines.option_types import VERSION
from streaming_moments.pipelines.terminal import confirm, tell
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments page store --output topics.html",
        "streaming-moments page store --model published --output s3://bucket/topics.html",
    ),
)
@store_argument
@click.option(
    "--output", required=True, metavar="FILE", type=STORE_URL, help="Path or URL of the page."
)
@click.option("--model", "name", metavar="NAME", help="Name of the model [the latest].")
@click.option("--version", type=VERSION, help="Version to show [the latest].")
@click.option(
    "--documents/--no-documents",
    default=True,
    help="Show the beginning of a typical document of each topic [yes].",
)
@click.option(
    "--top-documents",
    metavar="FOLDER",
    type=STORE_URL,
    help="Show the documents or rows that `transform --top-documents` wrote to this folder.",
)
@storage_option
@json_option
def page(
    store: str,
    output: str,
    name: str | None,
    version: int | None,
    documents: bool,
    top_documents: str | None,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Write a page about a model of STORE: one HTML file that works offline."""
    from streaming_moments.pipelines.reports.headline import headline_of
    from streaming_moments.pipelines.reports.html_report import measured_as_json
    from streaming_moments.pipelines.reports.store_page import write_page

    opened = MomentStore.open(store, version, storage_options)
    written = write_page(opened, output, name, documents, top_documents, storage_options)
    shown = sum(one.sample is not None for one in written.topics)
    if json_output:
        facts = {"store": opened.url, "version": opened.version, "output": output}
        facts |= {"headline": headline_of(written), "topics": len(written.topics)}
        print_json({**facts, "documents": shown, **measured_as_json(written)})
        return
    confirm(f"{output}: {headline_of(written)}")
    if documents and written.what == "topic" and not shown:
        tell("the page shows no documents, as none of the shards can be read here")
