"""The command that adds up stores."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import (
    STORE_URL,
    Session,
    cluster_options,
    json_option,
    print_json,
    running,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER
from streaming_moments.pipelines.jobs.sites.merge import merge as merge_stores
from streaming_moments.pipelines.jobs.sites.merge import pull_as_json
from streaming_moments.pipelines.option_types import StoreName, Whole
from streaming_moments.pipelines.terminal import confirm, note
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 5


@click.command(
    cls=GroupedCommand,
    examples=(
        "streaming-moments merge hub s3://berlin/store --as berlin",
        "streaming-moments merge hub berlin rome --least-documents 1000",
    ),
)
@store_argument
@click.argument("others", nargs=-1, required=True, type=STORE_URL, metavar="OTHER...")
@click.option(
    "--as",
    "name",
    type=StoreName(),
    help="Name of the origin OTHER in STORE [its earlier name, or one from its URL].",
)
@click.option(
    "--unique",
    is_flag=True,
    help="Leave out a segment of OTHER if STORE already counts the contents of all shards in it.",
)
@click.option(
    "--least-documents",
    type=Whole(0),
    default=0,
    help="Refuse a new OTHER, or a new segment, with fewer documents than this [0].",
)
@click.option(
    "--include-forgotten",
    is_flag=True,
    help="Also count shards and origins that were forgotten in STORE or purged from it.",
)
@click.option(
    "--compact-after",
    type=Whole(0),
    default=COMPACT_AFTER,
    show_default=True,
    help="Merge segments once this many have about the same size; 0: never.",
)
@click.option("--message", default="", help="Message for the log of STORE.")
@cluster_options
@storage_option
@json_option
def merge(
    store: str,
    others: tuple[str, ...],
    name: str | None,
    unique: bool,
    least_documents: int,
    include_forgotten: bool,
    compact_after: int,
    message: str,
    session: Session,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Add the counts of each OTHER store to STORE; later calls add what has changed.

    The result is the same as if STORE had counted all shards, but no document is read. STORE
    records each OTHER as an origin with a name. OTHER itself does not change; it must have been
    created by `create --like`.
    """
    opened = MomentStore.open(store, storage_options=storage_options).writable()
    with running(session, storage_options) as run:
        done = merge_stores(
            opened,
            others,
            run,
            name,
            unique,
            least_documents,
            message,
            compact_after,
            include_forgotten,
        )
    final = done.store
    if json_output:
        print_json(
            {
                "store": final.url,
                "version": final.version,
                "documents": final.commit.documents,
                "segments": len(final.commit.segments),
                "segments_read": len(final.parts),
                "origins": [pull_as_json(one) for one in done.pulls],
            }
        )
        return
    origins = of_number(len(final.commit.origins), "origin")
    documents = of_number(final.commit.documents, "document")
    confirm(f"version {final.version}: {documents}, with those of {origins}")
    for one in done.pulls:
        for url in one.left_out[:_SHOWN]:
            note(f"{url} is counted elsewhere and left out")
