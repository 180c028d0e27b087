"""Commands that let old versions, or all of some shards, be no longer kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import click

from streaming_moments.pipelines.cluster.memory import mebibytes
from streaming_moments.pipelines.command_line.options import (
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
from streaming_moments.pipelines.jobs.purge import plan_purge
from streaming_moments.pipelines.jobs.purge import purge as purge_shards
from streaming_moments.pipelines.nightly.journal import Journal
from streaming_moments.pipelines.option_types import Duration
from streaming_moments.pipelines.terminal import say
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.log.locks import Lock
from streaming_moments.storage.operations.expiry import Expiry, plan_expiry
from streaming_moments.storage.operations.expiry import expire as expire_versions
from streaming_moments.storage.operations.purging import Purge
from streaming_moments.storage.operations.traces import beyond
from streaming_moments.storage.store.store import MomentStore

_EXPIRY = timedelta(minutes=5)  # of the lock; it is renewed while the command works
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would go, change nothing.")


@click.command()
@store_argument
@click.option(
    "--keep",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    help="Keep so many of the last versions.",
)
@click.option(
    "--older-than",
    type=Duration(),
    default="90d",
    show_default=True,
    help="Keep what was the latest within this time; below 7d only while nobody works on STORE.",
)
@click.option(
    "--models",
    is_flag=True,
    help="Drop models whose version is not kept, too, but for the latest and those with a tag.",
)
@_dry_run
@click.option("--message", default="", help="For the log.")
@storage_option
@json_option
def expire(
    store: str,
    keep: int,
    older_than: timedelta,
    models: bool,
    dry_run: bool,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Drop old versions of STORE, and delete what only they hold.

    Versions stay on which the latest model was fitted, or one for which a tag stands.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    if dry_run:
        found = plan_expiry(opened, keep, older_than, models)
    else:
        with _locked(opened.writable()) as locked:
            opened, found = expire_versions(locked, keep, older_than, models, message)
    if json_output:
        print_json({**_of_version(opened, dry_run), **_expiry_as_json(found)})
    else:
        say(*_expiry_lines(opened, found, dry_run))


@click.command()
@store_argument
@shards_argument
@_dry_run
@click.option("--message", default="", help="For the log; it may name no shard.")
@limit_options
@cluster_options
@storage_option
@json_option
def purge(
    store: str,
    shards: tuple[str, ...],
    dry_run: bool,
    message: str,
    limits: ReadLimits,
    storage_options: dict[str, Any] | None,
    session: Session,
    json_output: bool,
) -> None:
    """Let no version, model or file of STORE keep anything of SHARDS, as the law may ask.

    They are read once more, or where they are gone what was counted with them. It refuses, and is
    run again, where somebody else writes to STORE meanwhile. Exit code 2 means that nothing has
    changed, 4 that the same command is to be run again to finish. Show it by `verify --purged`.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    recounted, erased, before = 0, tuple[str, ...](), tuple[str, ...]()
    if dry_run:
        plan = plan_purge(opened, shards, storage_options)
        gone, before = plan.purge, tuple(sorted(plan.before))
    else:
        with (
            _locked(opened.writable()) as locked,
            running(session, storage_options, limits) as run,
        ):
            result = purge_shards(locked, shards, run, message)
        opened, gone = result.store, result.purge
        recounted, erased, before = result.recounted, result.erased, result.before
    if json_output:
        told = {"recounted": recounted, "erased": list(erased), "purged_before": list(before)}
        told |= {"cannot_reach": list(beyond(opened.foundation))}
        print_json({**_of_version(opened, dry_run), **asdict(gone), **told})
    else:
        say(*_purge_lines(opened, gone, recounted, erased, len(before), dry_run))


@contextmanager
def _locked(store: MomentStore) -> Iterator[MomentStore]:
    """The store to be written under its lock, so that no night is at work meanwhile."""
    journal = Journal(Lock.acquire(store.folder, _EXPIRY), lambda step: None)
    try:
        with journal.kept():
            yield journal.fenced(store.latest())
    finally:
        journal.lock.release()


def _of_version(store: MomentStore, dry_run: bool) -> dict[str, Any]:
    return {"store": store.url, "version": store.version, "dry_run": dry_run}


def _expiry_as_json(found: Expiry) -> dict[str, Any]:
    return {
        "versions": list(found.versions),
        "models": list(found.models),
        "held": {str(version): why for version, why in found.held.items()},
        "places": list(found.places),
        "bytes": found.size,
    }


def _expiry_lines(store: MomentStore, found: Expiry, dry_run: bool) -> list[str]:
    would = "would be " if dry_run else ""
    lines = [f"version {version} stays for {why}" for version, why in found.held.items()]
    lines += [f"model {name} {'would go' if dry_run else 'goes'}" for name in found.models]
    lines.append(
        f"version {store.version}: {len(found.versions)} versions {would}dropped; "
        f"{mebibytes(found.size)} {would}freed in {len(found.places)} places"
    )
    if not dry_run:
        lines.append(f"the history begins with version {store.commit.kept[0][0]}")
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
    lines = list(gone.shards) if dry_run else []
    if gone.models:
        lines.append(f"models {would}dropped: {', '.join(gone.models)}; fit others by `refit`")
    if gone.tags:
        lines.append(f"tags {would}dropped: {', '.join(gone.tags)}")
    if gone.staged:
        lines.append(f"the lineage that a rebase gathers aside {would}given up; `rebase` again")
    if recounted:
        lines.append(f"{recounted} shards were counted anew, as those to be purged are gone")
    lines += [f"deleted {path}" for path in erased]
    if before:
        left = "what is left of them would be" if dry_run else "what was left of them is"
        lines.append(f"{before} shards were purged before; {left} deleted")
    lines.append(
        f"version {store.version}: {len(gone.shards)} shards {would}purged, with "
        f"{len(gone.versions)} versions"
    )
    return [*lines, "what this cannot reach:", *(f"  {line}" for line in beyond(store.foundation))]
