"""Commands for the inbox of a service."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_help import CommandGroup
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    json_option,
    print_json,
    running,
)
from streaming_moments.pipelines.service.config import read_service
from streaming_moments.pipelines.service.ingest_worker.locking import locked
from streaming_moments.pipelines.service.ingest_worker.moved_inbox import rename_sealed
from streaming_moments.pipelines.terminal import confirm, say
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.owners import Owner, assign, owner_of
from streaming_moments.storage.store.store import MomentStore


@click.group(cls=CommandGroup)
def inbox() -> None:
    """Show which store an inbox of the service belongs to, or assign it to another store."""


@inbox.command(name="assign", examples=("streaming-moments inbox assign service.toml",))
@click.argument("config", type=click.Path(dir_okay=False))
@json_option
def assign_inbox(config: str, json_output: bool) -> None:
    """Assign the inbox in CONFIG (TOML) to its store, after the store has moved.

    Stop all services of the earlier store first. A service that still runs refuses documents
    within seconds.
    """
    wanted = read_service(config)
    options = wanted.storage_options or None
    owner = Owner.at(wanted.store, options)
    folder = Folder.at(wanted.inbox_url, options)
    with (
        locked(wanted, wanted.accumulate.lock_expiry) as journal,
        running(Session(), options) as run,
    ):
        before = assign(folder, owner)
        store = journal.fenced(MomentStore.open(wanted.store, storage_options=options).writable())
        _, places = rename_sealed(store, folder, run)
    if json_output:
        was = None if before is None else before.url
        print_json({"inbox": folder.url, "store": owner.url, "before": was, "renamed": places})
        return
    told = "no store" if before is None else before.url
    confirm(f"{folder.url} belongs to {owner.url} now (before: {told})")
    for place in places:
        confirm(f"what the store counted at {place} keeps its counts")


@inbox.command(name="show", examples=("streaming-moments inbox show service.toml",))
@click.argument("config", type=click.Path(dir_okay=False))
@json_option
def show_inbox(config: str, json_output: bool) -> None:
    """Show the store that the inbox in CONFIG (TOML) belongs to."""
    wanted = read_service(config)
    folder = Folder.at(wanted.inbox_url, wanted.storage_options or None)
    owner = owner_of(folder)
    if json_output:
        print_json({"inbox": folder.url, "store": None if owner is None else owner.url})
        return
    say("no store yet" if owner is None else owner.url)
