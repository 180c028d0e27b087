"""The command that adds words to a vocabulary without counting shards again."""

from __future__ import annotations

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    SHARD_URL,
    JobSetup,
    job_options,
    print_json,
    store_argument,
)
from streaming_moments.pipelines.jobs.grow import WORDS, recent_shards
from streaming_moments.pipelines.jobs.grow import grow as grow_store
from streaming_moments.pipelines.option_types import COUNT
from streaming_moments.pipelines.terminal import confirm, tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 10


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments grow store",
        "streaming-moments grow store 'shards/2026-11-*.parquet' --words 500",
    ),
)
@store_argument
@click.argument("shards", nargs=-1, type=SHARD_URL)
@click.option(
    "--words",
    type=COUNT,
    default=WORDS,
    show_default=True,
    help="Add at most this many words; the most frequent ones come first.",
)
@click.option("--message", default="", help="Message for the log of the store.")
@job_options
def grow(
    store: str,
    shards: tuple[str, ...],
    words: int,
    message: str,
    job: JobSetup,
) -> None:
    """Add words to STORE that have become frequent in a sample of SHARDS.

    The words are counted in later documents only; no shard is counted again. By default, SHARDS are
    the latest counted shards that still exist.
    """
    opened = MomentStore.open(store, storage_options=job.storage_options).writable()
    kind = opened.form.kind
    listed = list_shards(shards, job.storage_options, kind, tell=tell) if shards else []
    with job.running() as run:
        result = grow_store(opened, listed or recent_shards(opened, run), run, words, message)
    found, after = result.words, result.store
    if job.json_output:
        print_json(
            {
                "store": after.url,
                "version": after.version,
                "added": list(found),
                "words": after.basis.n_words,
                "documents_sampled": result.documents,
                "shards_sampled": result.shards,
            }
        )
    elif found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        confirm(
            f"version {after.version}: {of_number(len(found), 'word')} added "
            f"({', '.join(found[:_SHOWN])}{more}); later documents count them"
        )
    else:
        confirm(
            f"version {after.version}: no words to add: the vocabulary has every "
            f"frequent word of a sample of {of_number(result.shards, 'shard')}"
        )
