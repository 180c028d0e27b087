"""The command that counts what is new."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from streaming_moments.pipelines.cluster.run import COMMIT_EVERY
from streaming_moments.pipelines.command_line.options import (
    SHARD_URL,
    Session,
    cluster_options,
    json_option,
    limit_options,
    print_json,
    running,
    shards_argument,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.jobs.update import update as update_store
from streaming_moments.pipelines.option_types import Duration
from streaming_moments.pipelines.reports.states import said_of_kind
from streaming_moments.pipelines.reports.tables import update_as_json
from streaming_moments.pipelines.terminal import say, tell
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore


@click.command()
@store_argument
@shards_argument
@click.option("--skip-bad-shards", is_flag=True, help="Leave out shards that cannot be read.")
@click.option(
    "--unique", is_flag=True, help="Refuse shards whose content is counted under another name."
)
@click.option("--replace", is_flag=True, help="Count shards with new content anew.")
@click.option(
    "--old",
    multiple=True,
    type=SHARD_URL,
    help="With --replace: copy of the old content [its segment].",
)
@click.option(
    "--compact-after",
    type=click.IntRange(0),
    default=COMPACT_AFTER,
    show_default=True,
    help="Sum up the segments when there are so many; 0: never.",
)
@click.option(
    "--commit-every",
    type=Duration(),
    default=timedelta(seconds=COMMIT_EVERY),
    help="Commit so often, at least 1m and 20 times what a commit takes [10m].",
)
@limit_options
@cluster_options
@storage_option
@json_option
def update(
    store: str,
    shards: tuple[str, ...],
    skip_bad_shards: bool,
    unique: bool,
    replace: bool,
    old: tuple[str, ...],
    compact_after: int,
    commit_every: timedelta,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> int:
    """Count the SHARDS that STORE has not counted yet."""
    if old and not replace:
        raise click.UsageError("--old gives the content that --replace takes away; give both.")
    opened = MomentStore.open(store, storage_options=storage_options).writable()
    listed = list_shards(shards, storage_options, opened.form.kind, tell=tell)
    copies = list_shards(old, storage_options, opened.form.kind, tell=tell) if old else []
    with running(session, storage_options, limits, commit_every) as run:
        if session.memory is not None:
            from streaming_moments.pipelines.gathering.gathering import plan_of

            # refused now, not on the day that there is something to count
            plan_of(opened, run)
        result = update_store(
            opened, listed, run, skip_bad_shards, old=copies if replace else None, unique=unique
        )
        final = compact_when_many(result.store, compact_after, run)
    if json_output:
        print_json(update_as_json(result, final))
    else:
        say(
            f"version {final.version}: counted {result.counted} shards "
            f"({result.documents:,} documents, {result.tokens:,} tokens), "
            f"{result.already} were counted before"
            f"{f', {result.replaced} replaced' if result.replaced else ''}"
        )
        if final.kind != CountsFoundation.kind:
            say(*said_of_kind(result, final))
    for error in result.bad:
        tell(f"left out {error}")
    for url, other in result.copies:
        tell(f"{url} has the content of {other}, which is counted as well (--unique refuses it)")
    return ExitCode.BAD_SHARDS if result.bad else 0
