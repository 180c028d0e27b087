"""The command that shows what changed between two versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from streaming_moments.pipelines.command_line.shared_options import (
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.option_types import VERSION, VersionsCommand
from streaming_moments.pipelines.terminal import say
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.operations.history import Difference, difference
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 20


@click.command(
    cls=VersionsCommand,
    examples=(
        "streaming-moments diff store 3 7",
        "streaming-moments diff store -2 -1 --model published",
    ),
)
@store_argument
@click.argument("before", type=VERSION)
@click.argument("after", type=VERSION)
@click.option(
    "--model",
    metavar="NAME",
    help="Name or tag of the models to compare [all models of both versions].",
)
@storage_option
@json_option
def diff(
    store: str,
    before: int,
    after: int,
    model: str | None,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Show what changed in STORE from version BEFORE to version AFTER."""
    opened = MomentStore.open(store, storage_options=storage_options)
    found = difference(opened, before, after, model)
    if json_output:
        print_json(asdict(found))
    else:
        say(*_difference_lines(found))


def _difference_lines(found: Difference) -> list[str]:
    lines = [
        f"version {found.before} to {found.after}: {found.documents:+,} documents, "
        f"{found.tokens:+,} tokens, {of_number(len(found.added), 'shard')} added, "
        f"{len(found.removed):,} removed"
    ]
    for name, before, after in found.origins:
        told = ["nothing" if one is None else f"version {one}" for one in (before, after)]
        lines.append(f"origin {name}: {told[0]} to {told[1]}")
    for sign, records in (("+", found.added), ("-", found.removed)):
        lines += [f"{sign} {record.url}: {record.documents:,}" for record in records[:_SHOWN]]
        if len(records) > _SHOWN:
            lines.append(f"{sign} and {len(records) - _SHOWN} more (--json lists all)")
    for name, moved in found.moved.items():
        lines.append(f"topics of {name}: {moved.before} to {moved.after}, total variation")
        lines += [f"  {one} -> {two}: {distance:.3f}" for one, two, distance in moved.pairs]
        lines += [f"  {topic} -> gone" for topic in moved.gone]
        lines += [f"  new -> {topic}" for topic in moved.new]
    return lines
