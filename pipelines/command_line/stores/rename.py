"""The command that records the new names of counted shards after they have moved."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_version,
    store_argument,
)
from streaming_moments.pipelines.jobs.rename import rename as rename_shards
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments rename store /data/2026/ /archive/2026/",
        "streaming-moments rename store s3://old/corpus/ s3://new/corpus/",
    ),
)
@store_argument
@click.argument("old", type=SHARD_URL)
@click.argument("new", type=SHARD_URL)
@click.option(
    "--copies",
    is_flag=True,
    help="Also rename shards whose files still exist at OLD, such as after restoring a copy.",
)
@click.option("--message", default="", help="Message for the log of the store.")
@job_options
def rename(store: str, old: str, new: str, copies: bool, message: str, job: JobSetup) -> None:
    """Record in STORE that counted shards have moved from OLD to NEW.

    OLD and NEW are two files or two folders. Updates then do not count these shards again. The
    command reads no shard.
    """
    opened = MomentStore.open(store, storage_options=job.storage_options).writable().latest()
    with job.running() as run:
        after = rename_shards(opened, old, new, run, message, copies)
    renamed = {one.url for one in after.ledger()} - {one.url for one in opened.ledger()}
    what = f"{of_number(len(renamed), 'shard')} of {old} renamed to {new}"
    print_version(after, what, job.json_output)
