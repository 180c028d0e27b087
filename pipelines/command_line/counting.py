"""Commands from documents to topics: each calls one pipeline and prints."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import click

from streaming_moments.pipelines.command_line.options import (
    STORE_URL,
    Session,
    cluster_options,
    console,
    json_option,
    limit_options,
    print_json,
    running,
    shards_argument,
    storage_option,
    store_argument,
    window_options,
    words_option,
)
from streaming_moments.pipelines.jobs.choose import chosen_options
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import create_kind, require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.outputs.neighbours import neighbours as group_edges
from streaming_moments.pipelines.jobs.refit import refit_by, require_kind_of, with_coherence
from streaming_moments.pipelines.model_options import FitRequest, model_options
from streaming_moments.pipelines.option_types import COUNT, VERSION, StoreName, declared_options
from streaming_moments.pipelines.reports.kinds.registry import sizes_of, sizes_text
from streaming_moments.pipelines.reports.model_pages.registry import model_view
from streaming_moments.pipelines.reports.status import too_few_line
from streaming_moments.pipelines.reports.tables import documents_of
from streaming_moments.pipelines.terminal import say, tell
from streaming_moments.statistics.counts.basis import DEFAULT_CORE
from streaming_moments.storage.counting.graphs.edges import NEIGHBOURS, EdgeColumns
from streaming_moments.storage.formats import FORMATS, ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.labels import succession
from streaming_moments.storage.operations.windows import Window, windowed
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.model_changes import require_free
from streaming_moments.storage.store.store import MomentStore


@click.command()
@store_argument
@shards_argument
@declared_options(KindOptions, "shape")
@declared_options(CountingOptions, "counting")
@declared_options(PilotOptions, "pilot")
@limit_options
@cluster_options
@storage_option
@json_option
def create(
    store: str,
    shards: tuple[str, ...],
    shape: KindOptions,
    counting: CountingOptions,
    pilot: PilotOptions,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Make STORE with a vocabulary and basis from a sample of SHARDS; counts nothing yet."""
    require_options_of(shape, counting, pilot)
    listed = list_shards(shards, storage_options, counting.format, tell=tell)
    with running(session, storage_options, limits) as run:
        made = create_kind(store, listed, shape, counting, pilot, run)
    if json_output:
        print_json(
            {
                "store": made.url,
                "version": made.version,
                "message": made.commit.message,
                "kind": made.kind,
                **sizes_of(made),
            }
        )
        return
    say(
        made.commit.message,
        f"created {made.url}, of kind {made.kind}{sizes_text(sizes_of(made))}; next: "
        f"streaming-moments update {made.url} SHARDS...",
    )


@click.command()
@store_argument
@model_options
@click.option("--version", type=VERSION, help="Version to fit [the latest].")
@click.option("--name", type=StoreName(), help="Name of the model [by options and version].")
@window_options
@words_option
@cluster_options
@storage_option
@json_option
def refit(
    store: str,
    asked: FitRequest,
    version: int | None,
    name: str | None,
    window: Window,
    words: int,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Fit a model to STORE, without the documents, and keep it there."""
    opened = MomentStore.open(store, version, storage_options).writable()
    source, suffix = windowed(opened, window), f"-v{opened.version}{window.suffix}"
    asked = asked.on(opened.kind)
    require_kind_of(asked.model, source)
    if name or not asked.auto:
        require_free(opened.latest().commit, name or asked.label + suffix)
    with running(session) as run:
        if asked.auto:
            found = chosen_options(source, asked.options, asked.auto, run, asked.model)
            asked = replace(asked, options=found)
        chosen = name or asked.label + suffix
        require_free(opened.latest().commit, chosen)
        model = refit_by(source, asked.model, asked.options, run)
        model = with_coherence(source, model, run)
    few = too_few_line(model)
    if few:
        tell(f"warning: {few}")
    after = succession(opened.latest(), model)
    kept = opened.save_model(chosen, model, f"refit: {asked.options.summary}", after=after)
    view = model_view(opened, model, words, labels=kept.models[chosen].labels)
    if json_output:
        print_json(
            {
                "store": kept.url,
                "model": chosen,
                "fitted_version": opened.version,
                "version": kept.version,
                "seed": asked.options.seed,
                "warnings": [few] * bool(few),
                **view.as_json,
            }
        )
        return
    view.print(console())
    sentence = "; ".join((view.described.sentence, *view.lacks))
    say("", f"model {chosen} of {documents_of(model)} kept in version {kept.version}; {sentence}")


@click.command()
@shards_argument
@click.option("--output", required=True, type=STORE_URL, help="Folder for the lists, as Parquet.")
@click.option("--source", default="source", show_default=True, help="Column of one end.")
@click.option("--target", default="target", show_default=True, help="Column of the other end.")
@click.option("--directed", is_flag=True, help="Only the source has the target for a neighbour.")
@click.option("--parts", type=COUNT, help="Files to write [by the bytes of SHARDS].")
@click.option("--format", "kind", type=click.Choice(tuple(FORMATS)), help="Format [by suffix].")
@limit_options
@cluster_options
@storage_option
@json_option
def neighbours(
    shards: tuple[str, ...],
    output: str,
    source: str,
    target: str,
    directed: bool,
    parts: int | None,
    kind: str | None,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Group the edges in SHARDS by node, into lists of neighbours: documents for a store."""
    listed = list_shards(shards, storage_options, kind, tell=tell)
    columns = EdgeColumns(source, target, directed)
    with running(session, storage_options, limits) as run:
        found = group_edges(listed, output, run, columns, ShardFormat(kind), parts)
    if json_output:
        print_json(asdict(found))
        return
    words = PilotOptions().vocabulary_size
    every = f" --vocabulary-size {found.nodes}" if found.nodes > words else ""
    say(
        f"{found.nodes:,} nodes and {found.edges:,} edges in {len(found.files)} files in {output}; "
        f"left out {found.duplicates:,} edges that were there already, and {found.loops:,} of a "
        "node to itself",
        f"next: streaming-moments create STORE {output.rstrip('/')}/*.parquet --ids-column "
        f"{NEIGHBOURS} --min-documents 1 --max-document-fraction 1{every}",
    )
    if found.nodes > DEFAULT_CORE:
        say(
            f"of more than {DEFAULT_CORE:,} nodes a store of --kind edges tells communities "
            "better: lists know them by so many core nodes alone"
        )
