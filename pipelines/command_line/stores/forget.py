"""The command that subtracts counted shards."""

from __future__ import annotations

from collections.abc import Sequence

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_version,
    store_argument,
)
from streaming_moments.pipelines.jobs.forget import forget as forget_shards
from streaming_moments.pipelines.jobs.listed.forgotten import counted_or_forgotten
from streaming_moments.pipelines.terminal import tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.merging.pulling import drop_origin
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments forget store shards/part-7.parquet",
        "streaming-moments forget store shards/part-7.parquet --allow-again",
        "streaming-moments forget hub --origin berlin",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option(
    "--origin",
    metavar="NAME",
    help="Subtract all that `merge` copied from this origin, instead of SHARDS.",
)
@click.option(
    "--allow-again",
    is_flag=True,
    help="Let updates count SHARDS again, even if they were forgotten earlier.",
)
@click.option("--message", default="", help="Message for the log of the store.")
@job_options
def forget(
    store: str,
    shards: tuple[str, ...],
    origin: str | None,
    allow_again: bool,
    message: str,
    job: JobSetup,
) -> None:
    """Subtract counted SHARDS from STORE, as if they had never been counted. Reads them again.

    Updates and nightly jobs then skip these shards, by name and by content.
    """
    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    if origin is not None:
        if shards or allow_again:
            raise click.UsageError("--origin takes neither SHARDS nor --allow-again.")
        after = drop_origin(opened.latest(), origin, message)
        print_version(after, f"all documents of origin {origin} forgotten", job.json_output)
        return
    if not shards:
        raise click.MissingParameter(param_type="argument", param_hint="'SHARDS...'")
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
