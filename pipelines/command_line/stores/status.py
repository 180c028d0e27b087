"""The command that shows the content of a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

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
)
from streaming_moments.pipelines.jobs.sites.origins import (
    origin_rows,
    origin_states,
    origins_as_json,
)
from streaming_moments.pipelines.option_types import VERSION
from streaming_moments.pipelines.reports.kinds.registry import (
    next_step,
    print_status_of,
    status_as_json,
    status_of_any,
)
from streaming_moments.pipelines.reports.status import print_facts
from streaming_moments.pipelines.terminal import DETAILED, asked_for, confirm
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments status store",
        "streaming-moments status store --drift published",
    ),
)
@store_argument
@click.option("--version", type=VERSION, help="Version to show [the latest].")
@click.option(
    "--drift",
    "model",
    metavar="MODEL",
    help="Also show how documents have changed since the model of this name or tag was fitted.",
)
@cluster_options
@storage_option
@json_option
def status(
    store: str,
    version: int | None,
    model: str | None,
    session: Session,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show what STORE holds, and what to do next.

    --verbose adds how exact the sums are and how they are stored.
    """
    opened = MomentStore.open(store, version, storage_options)
    shown: Any = status_of_any(opened)
    if model is not None:
        if not opened.foundation.by_length:
            raise click.UsageError(
                f"--drift needs a store of documents; this store is of kind {opened.kind}."
            )
        from streaming_moments.pipelines.jobs.drift.measure_drift import drift_since

        with running(session) as run:
            shown = replace(shown, drift=drift_since(opened, model, run))
    origins = origin_states(opened, storage_options)
    if json_output:
        print_json({**status_as_json(shown), "origins": origins_as_json(origins)})
    else:
        print_status_of(console(), shown, opened, asked_for(DETAILED))
        if origins:
            print_facts(console(), origin_rows(origins))
        if version is None:
            confirm(next_step(opened, shown))
