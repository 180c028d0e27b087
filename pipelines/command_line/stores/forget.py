"""The command that subtracts counted shards."""

from __future__ import annotations

from collections.abc import Sequence

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    JobSetup,
    job_options,
    print_version,
    shards_argument,
    store_argument,
)
from streaming_moments.pipelines.jobs.forget import forget as forget_shards
from streaming_moments.pipelines.jobs.forgotten import counted_or_forgotten
from streaming_moments.pipelines.terminal import tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments forget store shards/part-7.parquet",
        "streaming-moments forget store shards/part-7.parquet --allow-again",
    ),
)
@store_argument
@shards_argument
@click.option(
    "--allow-again",
    is_flag=True,
    help="Let updates count SHARDS again, even if they were forgotten earlier.",
)
@click.option("--message", default="", help="Message for the log.")
@job_options
def forget(
    store: str,
    shards: tuple[str, ...],
    allow_again: bool,
    message: str,
    job: JobSetup,
) -> None:
    """Subtract counted SHARDS from STORE, as if they had never been counted. Reads them again.

    Updates and nights then skip these shards, by name and by content.
    """
    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    latest = opened.latest()
    listed: Sequence[Shard]
    if allow_again:
        listed = counted_or_forgotten(latest, shards, job.storage_options)
    else:
        ledger = latest.ledger()
        listed = list_shards(
            shards,
            job.storage_options,
            opened.form.kind,
            counted=lambda url: ledger.find(url) is not None,
            tell=tell,
            apart=lambda folder: ledger.find(folder) is None,
        )
    with job.running() as run:
        after = forget_shards(opened, listed, run, message, allow_again)
    updates = "may count" if allow_again else "will skip"
    them = f"{'it' if len(listed) == 1 else 'them'}{' again' * allow_again}"
    what = f"{of_number(len(listed), 'shard')} forgotten; updates {updates} {them}"
    print_version(after, what, job.json_output)
