"""The command that writes results of a model for documents."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand, OneOf
from streaming_moments.pipelines.command_line.shared_options import (
    STORE_URL,
    JobSetup,
    console,
    job_options,
    print_json,
    shards_argument,
    store_argument,
)
from streaming_moments.pipelines.jobs.outputs.decode import DECODINGS
from streaming_moments.pipelines.jobs.outputs.proportions import METHODS
from streaming_moments.pipelines.jobs.outputs.registry import output_of
from streaming_moments.pipelines.jobs.outputs.shard_outputs import FOREIGN_BELOW, OutputOptions
from streaming_moments.pipelines.jobs.outputs.transform import MOST_TOP_DOCUMENTS, TransformResult
from streaming_moments.pipelines.option_types import SEED, Share, Whole
from streaming_moments.pipelines.reports.documents import print_top_documents
from streaming_moments.pipelines.reports.plain_values import json_value
from streaming_moments.pipelines.reports.status import stale_as_json, stale_line
from streaming_moments.pipelines.reports.tables import topic_lines
from streaming_moments.pipelines.terminal import QUIET, asked_for, confirm, tell
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.lineages import store_for
from streaming_moments.storage.operations.staleness import staleness
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments transform store 'shards/*.parquet' --output proportions",
        "streaming-moments transform store shards/ --output out --id-column id --top-documents 5",
    ),
)
@store_argument
@shards_argument
@click.option(
    "--output",
    required=True,
    type=STORE_URL,
    help="Folder for the results, one Parquet file per shard.",
)
@click.option("--model", "name", metavar="NAME", help="Name of the model [the latest].")
@click.option(
    "--id-column",
    metavar="NAME",
    help="Column or field with the ids of documents [names of text files, or SHARD#ROW].",
)
@click.option("--passages", is_flag=True, help="Write a row per passage instead of per document.")
@click.option(
    "--top-documents",
    type=Whole(0, MOST_TOP_DOCUMENTS),
    default=0,
    metavar="N",
    help="Also show the N most typical documents of each topic.",
)
@click.option(
    "--foreign-below",
    type=Share(),
    default=FOREIGN_BELOW,
    show_default=True,
    help="A text gets no topic if the vocabulary has a smaller share of its words than this.",
)
@click.option(
    "--method",
    type=OneOf([*METHODS, *DECODINGS]),
    help="How to infer topics: fixed-point or gibbs [fixed-point]. How to infer states of "
    "sequences: viterbi or posterior [viterbi].",
)
@click.option("--seed", type=SEED, help="Seed of the Gibbs sampler.")
@click.option(
    "--replace", is_flag=True, help="First delete files of another model in the output folder."
)
@click.option(
    "--views", metavar="NAMES", help="For records of three views: the columns to use [all]."
)
@job_options
def transform(
    store: str,
    shards: tuple[str, ...],
    output: str,
    name: str | None,
    id_column: str | None,
    passages: bool,
    top_documents: int,
    foreign_below: float,
    method: Any,
    seed: int | None,
    views: str | None,
    replace: bool,
    job: JobSetup,
) -> None:
    """Write the topic proportions of each document of SHARDS, or completed rows, as Parquet.

    Each row is a document: id, source and row, numbers of known and unknown words, topic and
    proportions. A document without known words, or in another language, has no topic. After an
    interruption, the same command continues.

    Other models write other columns: the state of each record (views), the state of each symbol
    (sequences), rows with their missing values filled in (tables), components or factors (vectors).
    """
    opened = MomentStore.open(store, storage_options=job.storage_options)
    chosen = model_called(opened.commit, name)
    model: Any = opened.load_any_model(chosen)
    labels, stale = opened.models[chosen].labels, staleness(opened, chosen)
    made = output_of(model.name)
    if not made.methods and (method is not None or seed is not None):
        raise click.UsageError(
            f"model {chosen} of type {model.name} does not use --method and --seed; remove them."
        )
    if method is not None and method not in made.methods:
        raise click.UsageError(
            f"model {chosen} of type {model.name} has no --method {method}; give "
            f"{' or '.join(made.methods)}."
        )
    options = OutputOptions(
        method=method or next(iter(made.methods), ""),
        seed=seed,
        id_column=id_column,
        passages=passages,
        top_documents=top_documents,
        foreign_below=foreign_below,
        name=chosen,
        labels=labels,
        views=tuple(views.split(",")) if views else (),
        replace=replace,
    )
    if idle := made.idle(options):
        flags = ", ".join(f"--{one.replace('_', '-')}" for one in idle)
        raise click.UsageError(
            f"model {chosen} of type {model.name} does not use {flags}; remove it."
        )
    if stale.is_stale:
        tell(f"warning: {stale_line(stale)}")
    opened = store_for(opened, chosen, model)
    listed = list_shards(shards, job.storage_options, opened.form.kind, tell=tell)
    with job.running() as run:
        written = made.write(opened, model, listed, output, run, options)
    if job.json_output:
        told = {**json_value(written.as_json()), **stale_as_json(stale)}
        print_json({"store": opened.url, "model": chosen, **told})
        return
    confirm(*written.lines(output))
    if not asked_for(QUIET) and isinstance(written, TransformResult) and top_documents:
        lines = topic_lines(model, opened.vocabulary, 3, labels=labels)
        print_top_documents(console(), lines, written)
