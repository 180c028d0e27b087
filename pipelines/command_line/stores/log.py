"""The command that shows the commits of a store."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    console,
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.reports.tables import as_json, log_lines, print_log
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments log store",
        "streaming-moments log store --json",
    ),
)
@store_argument
@storage_option
@json_option
def log(store: str, storage_options: dict[str, Any] | None, json_output: bool) -> None:
    """Show the commits of STORE, the latest first."""
    opened = MomentStore.open(store, storage_options=storage_options)
    lines, expired = log_lines(opened), opened.commit.expired
    if json_output:
        commits = [as_json(line) for line in lines]
        print_json({"commits": commits, "expired": [list(pair) for pair in expired]})
        return
    print_log(console(), lines)
    if expired:
        begins = opened.commit.kept[0][0]
        gone = ", ".join(f"{one} to {last}" if one < last else f"{one}" for one, last in expired)
        say(f"the history begins with version {begins}; expired versions: {gone}")
