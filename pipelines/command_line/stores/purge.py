"""The command that removes shards from every version, model and file of a store."""

from __future__ import annotations

from dataclasses import asdict

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_json,
    store_argument,
)
from streaming_moments.pipelines.command_line.stores.dropping import (
    dry_run_option,
    of_version,
    under_lock,
)
from streaming_moments.pipelines.jobs.purge import plan_purge
from streaming_moments.pipelines.jobs.purge import purge as purge_shards
from streaming_moments.pipelines.terminal import confirm, say
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.merging.withdrawal import plan_withdrawal, withdraw
from streaming_moments.storage.operations.purges.purging import Purge
from streaming_moments.storage.operations.purges.traces import beyond
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments purge store shards/part-7.parquet --dry-run",
        "streaming-moments purge store shards/part-7.parquet",
        "streaming-moments purge hub --origin berlin",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option(
    "--origin",
    metavar="NAME",
    help="Erase all that `merge` ever copied from this origin, instead of SHARDS.",
)
@dry_run_option
@click.option(
    "--message", default="", help="Message for the log of the store; it must not name a shard."
)
@job_options
def purge(
    store: str,
    shards: tuple[str, ...],
    origin: str | None,
    dry_run: bool,
    message: str,
    job: JobSetup,
) -> None:
    """Erase SHARDS from all versions, models and files of STORE, for example to comply with a law.

    The command reads the shards again. If they no longer exist, it counts all shards again that
    were counted together with them. It stops if another process writes to STORE; run it again then.
    Exit code 2: nothing has changed. Exit code 4: run the same command again to finish. `verify
    --purged` checks the result.
    """
    if bool(shards) == (origin is not None):
        raise click.UsageError("give either SHARDS or --origin NAME.")
    opened = MomentStore.open(store, storage_options=job.storage_options)
    if origin is not None:
        _purge_origin(opened, origin, dry_run, message, job.json_output)
        return
    recounted, erased, before = 0, tuple[str, ...](), tuple[str, ...]()
    if dry_run:
        plan = plan_purge(opened, shards, job.storage_options)
        gone, before = plan.purge, tuple(sorted(plan.before))
    else:
        with (
            under_lock(opened.writable()) as locked,
            job.running() as run,
        ):
            result = purge_shards(locked, shards, run, message)
        opened, gone = result.store, result.purge
        recounted, erased, before = result.recounted, result.erased, result.before
    if job.json_output:
        told = {"recounted": recounted, "erased": list(erased), "purged_before": list(before)}
        told |= {"cannot_reach": list(beyond(opened.foundation))}
        print_json({**of_version(opened, dry_run), **asdict(gone), **told})
    else:
        lines = _purge_lines(opened, gone, recounted, erased, len(before), dry_run)
        (say if dry_run else confirm)(*lines)


def _purge_origin(
    store: MomentStore, name: str, dry_run: bool, message: str, json_output: bool
) -> None:
    if dry_run:
        done = plan_withdrawal(store, name)
    else:
        with under_lock(store.writable()) as locked:
            done = withdraw(locked, name, message)
    gone, after = done.purge, done.store
    unreachable = beyond(after.foundation, of_origin=True)
    if json_output:
        told = {"origin": name, "documents": done.documents, "erased": list(done.erased)}
        told |= {"cannot_reach": list(unreachable)}
        print_json({**of_version(after, dry_run), **asdict(gone), **told})
        return
    would = "would be " if dry_run else ""
    number, versions = (
        of_number(done.documents, "document"),
        of_number(len(gone.versions), "version"),
    )
    (say if dry_run else confirm)(
        f"version {after.version}: origin {name} {would}purged: {number}, with {versions}",
        *_dropped_lines(gone, would),
        *(f"deleted {path}" for path in done.erased),
        "not covered by the purge:",
        *(f"  {line}" for line in unreachable),
    )


def _dropped_lines(gone: Purge, would: str) -> list[str]:
    lines = []
    if gone.models:
        lines.append(f"models {would}dropped: {', '.join(gone.models)}; fit new ones with `refit`")
    if gone.tags:
        lines.append(f"tags {would}dropped: {', '.join(gone.tags)}")
    if gone.staged:
        lines.append(f"the unfinished rebase {would}cancelled; run `rebase` again")
    return lines


def _purge_lines(
    store: MomentStore,
    gone: Purge,
    recounted: int,
    erased: tuple[str, ...],
    before: int,
    dry_run: bool,
) -> list[str]:
    would = "would be " if dry_run else ""
    shards, versions = (
        of_number(len(gone.shards), "shard"),
        of_number(len(gone.versions), "version"),
    )
    lines = [f"version {store.version}: {shards} {would}purged, with {versions}"]
    lines += gone.shards if dry_run else ()
    lines += _dropped_lines(gone, would)
    if recounted:
        again = of_number(recounted, "other shard")
        lines.append(f"{again} counted again, because the purged files no longer exist")
    lines += [f"deleted {path}" for path in erased]
    if before:
        left = f"remaining files of {'it' if before == 1 else 'them'} {would or 'are '}deleted"
        lines.append(f"{of_number(before, 'shard')} already purged; {left}")
    return [
        *lines,
        "not covered by the purge:",
        *(f"  {line}" for line in beyond(store.foundation)),
    ]
