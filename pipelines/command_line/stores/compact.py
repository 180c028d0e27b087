"""The command that replaces segments by their sums."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand, OneOf
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    cluster_options,
    json_option,
    print_version,
    running,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.jobs.compact import compact as compact_store
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.dates import Bucket
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments compact store",
        "streaming-moments compact store --by month",
    ),
)
@store_argument
@click.option(
    "--by",
    type=OneOf(["day", "month", "year", "all"]),
    default="day",
    show_default=True,
    help="Merge all segments of the same day, month or year; all: merge all segments.",
)
@cluster_options
@storage_option
@json_option
def compact(
    store: str,
    by: Bucket,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Merge segments of STORE, so that reading it is faster; older versions stay readable."""
    opened = MomentStore.open(store, storage_options=storage_options).writable()
    before = len(opened.commit.segments)
    with running(session) as run:
        after = compact_store(opened, run, by)
    left = len(after.commit.segments)
    merged = f"{of_number(before, 'segment')} merged into {left}"
    nothing = f"nothing to merge among {of_number(before, 'segment')}"
    print_version(after, merged if left < before else nothing, json_output)
