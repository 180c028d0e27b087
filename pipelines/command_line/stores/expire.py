"""The command that drops old versions."""

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
from streaming_moments.pipelines.command_line.stores.dropping import (
    dry_run_option,
    of_version,
    under_lock,
)
from streaming_moments.pipelines.option_types import Duration, Whole
from streaming_moments.pipelines.terminal import confirm, say
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.operations.expiry import Expiry, plan_expiry
from streaming_moments.storage.operations.expiry import expire as expire_versions
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments expire store --dry-run",
        "streaming-moments expire store --keep 10 --older-than 30d",
    ),
)
@store_argument
@click.option(
    "--keep",
    type=Whole(1),
    default=30,
    show_default=True,
    help="Number of latest versions to keep.",
)
@click.option(
    "--older-than",
    type=Duration(),
    default="90d",
    show_default=True,
    help="Keep versions that were the latest at some time within this period. Less than 7d is safe "
    "only while no one uses STORE.",
)
@click.option(
    "--models",
    is_flag=True,
    help="Also drop models of dropped versions, except the latest model and tagged ones.",
)
@dry_run_option
@click.option("--message", default="", help="Message for the log of the store.")
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
    """Drop old versions of STORE and delete the files that only they use.

    The command does not drop versions to which the latest or a tagged model was fitted.
    """
    opened = MomentStore.open(store, storage_options=storage_options)
    if dry_run:
        found = plan_expiry(opened, keep, older_than, models)
    else:
        with under_lock(opened.writable()) as locked:
            opened, found = expire_versions(locked, keep, older_than, models, message)
    if json_output:
        print_json({**of_version(opened, dry_run), **_expiry_as_json(found)})
    else:
        (say if dry_run else confirm)(*_expiry_lines(opened, found, dry_run))


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
    versions, places = len(found.versions), len(found.places)
    if not versions and not places:
        return [f"version {store.version}: nothing to drop: no version is old enough"]
    lines = [
        f"version {store.version}: {of_number(versions, 'version')} {would}dropped; "
        f"{mebibytes(found.size)} {would}freed in {of_number(places, 'place')}"
    ]
    lines += [f"model {name} {would}dropped" for name in found.models]
    lines += [f"version {version} stays: {why}" for version, why in found.held.items()]
    if not dry_run:
        lines.append(f"the history begins with version {store.commit.kept[0][0]}")
    return lines
