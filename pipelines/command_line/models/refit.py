"""The command that fits a model to the statistics of a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from streaming_moments.models.stored import too_few_line
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    cluster_options,
    console,
    json_option,
    print_json,
    running,
    storage_option,
    store_argument,
    window_options,
    words_option,
)
from streaming_moments.pipelines.jobs.choose import chosen_options
from streaming_moments.pipelines.jobs.refit import require_kind_of, scored_refit
from streaming_moments.pipelines.model_options import FitRequest, model_options
from streaming_moments.pipelines.option_types import VERSION, StoreName
from streaming_moments.pipelines.reports.model_pages.registry import model_view
from streaming_moments.pipelines.reports.tables import records_of
from streaming_moments.pipelines.terminal import QUIET, asked_for, confirm, detail, tell
from streaming_moments.storage.operations.labels import succession
from streaming_moments.storage.operations.windows import Window, windowed
from streaming_moments.storage.store.model_changes import require_free
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments refit store",
        "streaming-moments refit store --topics 20 --name nightly",
        "streaming-moments refit store --model hmm --topics 5",
    ),
)
@store_argument
@model_options
@click.option("--version", type=VERSION, help="Version to fit [the latest].")
@click.option(
    "--name", type=StoreName(), help="Name of the new model [made from its options and version]."
)
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
    """Fit a model to STORE, without reading any document, and save it there.

    Without --topics, the command compares numbers of topics by how well they predict held-out word
    pairs. It chooses the number after which another topic improves the prediction little.
    """
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
        model = scored_refit(source, asked.model, asked.options, run)
    warning = too_few_line(model) or model.rough_sentence
    if warning:
        tell(f"warning: {warning}")
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
                "warnings": [warning] * bool(warning),
                **view.as_json,
            }
        )
        return
    if not asked_for(QUIET):
        view.print(console())
    said = f"Saved model {chosen} in version {kept.version}, fitted to {records_of(model)}."
    confirm("", said, *view.lacks)
    for caution in view.described.cautions:
        tell(f"warning: {caution}")
    detail(view.described.sentence)
