"""The command that deletes files of dead writers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.option_types import Duration
from streaming_moments.pipelines.terminal import confirm, say
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.store.garbage import collect, find_garbage
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments gc store --dry-run",
        "streaming-moments gc store",
    ),
)
@store_argument
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, but change nothing.")
@click.option(
    "--grace",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Delete files older than this. Less than 7d is safe only while no one writes to STORE.",
)
@storage_option
@json_option
def gc(
    store: str,
    dry_run: bool,
    grace: timedelta,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Delete files that interrupted writers left in STORE."""
    folder = MomentStore.open(store, storage_options=storage_options).folder
    garbage = find_garbage(folder, grace)
    if not dry_run:
        collect(folder, garbage)
    freed = sum(heap.size for heap in garbage)
    if json_output:
        places = [{"path": heap.path, "bytes": heap.size} for heap in garbage]
        print_json({"dry_run": dry_run, "bytes": freed, "garbage": places})
        return
    would = "would be freed" if dry_run else "freed"
    found = f"{mebibytes(freed)} {would} in {of_number(len(garbage), 'place')}"
    old = (
        f"{heap.path}: {mebibytes(heap.size)} of {heap.modified:%Y-%m-%d %H:%M} UTC"
        for heap in garbage
    )
    nothing = "nothing to delete: no interrupted writer left files that are old enough"
    (say if dry_run else confirm)(found if garbage else nothing, *old)
