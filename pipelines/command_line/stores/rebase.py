"""The command that gives a store a new vocabulary and basis."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    JobSetup,
    job_options,
    print_json,
    store_argument,
)
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.option_types import declared_options
from streaming_moments.pipelines.reports.kinds.registry import sizes_of
from streaming_moments.pipelines.terminal import confirm, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments rebase store",
        "streaming-moments rebase store --vocabulary-size 20000 --max-topics 64",
    ),
)
@store_argument
@click.option(
    "--allow-missing", is_flag=True, help="Leave out shards that no longer exist or have changed."
)
@click.option(
    "--halves/--no-halves",
    default=None,
    help="Also count half of the documents separately, for error bars and held-out scores "
    "[unchanged].",
)
@declared_options(PilotOptions, "changes", changes=True)
@job_options
def rebase(
    store: str,
    allow_missing: bool,
    halves: bool | None,
    job: JobSetup,
    changes: dict[str, Any],
) -> None:
    """Give STORE a new vocabulary and basis, and count its shards again.

    A store of vectors gets a new grid and sketch. Older versions do not change. After an
    interruption, the same command continues.
    """
    from streaming_moments.pipelines.jobs.kinds.registry import redraw_of
    from streaming_moments.pipelines.jobs.rebase import pilot_of
    from streaming_moments.pipelines.jobs.rebase import rebase as rebase_store

    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    options = replace(pilot_of(opened), **changes)
    with job.running() as run:
        result = rebase_store(opened, run, options, allow_missing, halves)
    if job.json_output:
        print_json(
            {
                "store": result.store.url,
                "version": result.store.version,
                "shards": result.shards,
                "documents": result.store.commit.documents,
                "words": sizes_of(result.store)["words"] or None,
                "left_out": [{"url": url, "reason": why} for url, why in result.left_out],
                "resumed": result.resumed,
            }
        )
        return
    on = redraw_of(result.store).renewed(result.store.foundation)
    confirm(
        f"version {result.store.version}: {of_number(result.shards, 'shard')} counted on {on}; "
        "next: `streaming-moments refit`"
    )
    for url, reason in result.left_out:
        tell(f"left out {url}: {reason}")
