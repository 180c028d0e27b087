"""The command that checks every file of a version, and finds traces of purged shards."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    json_option,
    print_json,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.option_types import VERSION
from streaming_moments.pipelines.terminal import confirm, say, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.operations.purges.traces import beyond
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments verify store",
        "streaming-moments verify store shards/part-7.parquet --purged",
        "streaming-moments verify hub --purged --origin berlin",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option("--version", type=VERSION, help="Version to check [the latest].")
@click.option("--purged", is_flag=True, help="Also check that no file still holds data of SHARDS.")
@click.option(
    "--origin", metavar="NAME", help="With --purged: check this origin instead of SHARDS."
)
@storage_option
@json_option
def verify(
    store: str,
    shards: tuple[str, ...],
    version: int | None,
    purged: bool,
    origin: str | None,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> int:
    """Check the hashes and sums of all files of a version of STORE; exit code 2 if one is wrong.

    With --purged, exit code 2 also means that a version, model or file of STORE still holds
    anything of SHARDS or of the origin, or that this cannot be checked.
    """
    if (bool(shards) or origin is not None) != purged or (purged and version is not None):
        raise click.UsageError(
            "SHARDS and --origin need --purged, and --purged needs one of them. It checks all "
            "versions, so leave out --version."
        )
    if shards and origin is not None:
        raise click.UsageError("--origin takes no SHARDS.")
    # open without checks, because damaged files must be listed and not raise an error
    opened = MomentStore.open(store, version, storage_options, whole=False)
    problems = opened.verify()
    content: dict[str, Any] = {"store": opened.url, "version": opened.version}
    lines = [f"version {opened.version} is sound"]
    unread: tuple[str, ...] = ()
    unreachable = beyond(opened.foundation, of_origin=origin is not None)
    if origin is not None:
        from streaming_moments.storage.merging.withdrawal import traces_of_origin

        traces = traces_of_origin(opened, origin)
        problems += map(str, traces)
        content |= {"purged": not traces, "origin": origin, "cannot_reach": list(unreachable)}
        lines.append(f"{opened.url} holds nothing of origin {origin}")
    elif purged:
        from streaming_moments.pipelines.jobs.purge import look_for_purged

        found = look_for_purged(opened, shards, storage_options)
        unread = found.unread
        problems += map(str, found.traces)
        content |= {"purged": not found.traces, "shards": list(found.names)}
        content |= {"by_name_alone": list(unread), "cannot_reach": list(unreachable)}
        lines.append(f"{opened.url} holds nothing of {of_number(len(found.names), 'shard')}")
    if json_output:
        print_json({**content, "problems": problems})
    else:
        say(*problems)
        if not problems:
            confirm(*lines)
        if purged:
            for url in unread:
                tell(f"warning: {url} cannot be read any more; it was searched by name only")
            confirm("not covered by this check:", *(f"  {line}" for line in unreachable))
    return ExitCode.INPUT if problems else 0
