"""The command that restores an earlier version of a store."""

from __future__ import annotations

from typing import Any

import click

from streaming_moments.pipelines.command_line.shared_options import (
    json_option,
    print_version,
    storage_option,
    store_argument,
)
from streaming_moments.pipelines.option_types import VERSION, StoreName, VersionsCommand
from streaming_moments.pipelines.terminal import tell
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.log.commit_log import CommitLog
from streaming_moments.storage.operations.history import counted_again, last_published
from streaming_moments.storage.operations.history import rollback as rollback_store
from streaming_moments.storage.operations.history import tag as tag_model
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 20


@click.command(
    cls=VersionsCommand,
    examples=(
        "streaming-moments rollback store 12",
        "streaming-moments rollback store --model published",
    ),
)
@store_argument
@click.argument("version", type=VERSION, required=False)
@click.option(
    "--model",
    "tag_name",
    type=StoreName(),
    is_flag=False,
    flag_value="published",
    metavar="[TAG]",
    help="Only move TAG [published] back to the model that had this tag before.",
)
@click.option("--message", default="", help="Message for the log of the store.")
@storage_option
@json_option
def rollback(
    store: str,
    version: int | None,
    tag_name: str | None,
    message: str,
    storage_options: dict[str, Any] | None,
    json_output: bool,
) -> None:
    """Restore STORE, or one tag, to an earlier state by a new commit.

    Shards that VERSION counts are counted again, even if they were forgotten since.
    """
    if (version is None) == (tag_name is None):
        raise click.UsageError("give a VERSION, or --model to move a tag back.")
    if tag_name is not None:
        opened = MomentStore.open(store, storage_options=storage_options)
        retagged = tag_model(opened, tag_name, last_published(opened, tag_name), message)
        print_version(
            retagged, f"{tag_name} is model {retagged.commit.tags[tag_name]}", json_output
        )
        return
    assert version is not None
    then = MomentStore.open(store, version, storage_options)
    back = rollback_store(then, then.version, message)
    print_version(back, f"restored version {then.version}", json_output)
    again = counted_again(CommitLog(back.folder).read(back.version - 1), back)
    if again:
        more = f" and {len(again) - _SHOWN} more" if len(again) > _SHOWN else ""
        them = "it" if len(again) == 1 else "them"
        tell(
            f"counted again: {of_number(len(again), 'forgotten shard')}: "
            f"{', '.join(again[:_SHOWN])}{more}; to remove {them}, `forget` {them} again"
        )
