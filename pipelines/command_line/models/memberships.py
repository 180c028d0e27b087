"""The command that writes the memberships of nodes."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    STORE_URL,
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.jobs.outputs.claiming import claimed, written_by
from streaming_moments.pipelines.jobs.outputs.memberships import write_memberships
from streaming_moments.pipelines.reports.status import stale_as_json, stale_line
from streaming_moments.pipelines.terminal import confirm, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand, examples=("streaming-moments memberships store --output memberships",)
)
@store_argument
@click.option("--output", required=True, type=STORE_URL, help="Folder for the file of memberships.")
@click.option("--model", "name", metavar="NAME", help="Name of the model [the latest].")
@click.option(
    "--replace", is_flag=True, help="First delete files of another model in the output folder."
)
@storage_option
@json_option
def memberships(
    store: str,
    output: str,
    name: str | None,
    replace: bool,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Write the community memberships of all nodes of a graph, by a model of STORE, as Parquet.

    Each row is a node: its name, number of edges, community, memberships and their expected L1
    error.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    model, chosen = opened.load_any_model(name), model_called(opened.commit, name)
    if not isinstance(model, Blockmodel):
        raise click.UsageError(
            f"model {chosen} is of type {model.name}, but memberships need type {Blockmodel.name}; "
            "for other models use `streaming-moments transform`."
        )
    stale = staleness(opened, chosen)
    if stale.is_stale:
        tell(f"warning: {stale_line(stale)}")
    opened = store_for(opened, chosen, model)
    folder = Folder.at(output, storage_options)
    own = claimed(folder, written_by(opened, model, chosen), replace, tell)
    file = write_memberships(model, opened.foundation.nodes, own)
    if json_output:
        told = {"files": [file], "nodes": len(model.memberships), **stale_as_json(stale)}
        print_json({"store": opened.url, "model": chosen, **told})
        return
    confirm(f"Wrote memberships of {of_number(len(model.memberships), 'node')} to {file}.")
