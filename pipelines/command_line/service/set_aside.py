"""The command for shards that a service has set aside."""

from __future__ import annotations

import json
from datetime import timedelta
from shlex import quote

import click

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.shared_options import json_option
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.service.config import read_service
from streaming_moments.pipelines.terminal import confirm, say
from streaming_moments.printing.plural import of_number

_PATIENCE = timedelta(minutes=1)  # how long to wait for a cycle of the accumulator


@click.command(
    "set-aside",
    cls=GroupedCommand,
    examples=(
        "streaming-moments set-aside service.toml",
        "streaming-moments set-aside service.toml --retry",
    ),
)
@click.argument("config", type=click.Path(dir_okay=False))
@click.argument("shards", nargs=-1)
@click.option(
    "--retry",
    "again",
    is_flag=True,
    help="Let the next cycle try again to count the shards that are set aside.",
)
@click.option(
    "--refuse",
    "refused",
    is_flag=True,
    help="Reject the documents of the shards that are set aside.",
)
@json_option
def set_aside(
    config: str, shards: tuple[str, ...], again: bool, refused: bool, json_output: bool
) -> int:
    """Show the shards that cannot be counted, retry them, or reject their documents.

    CONFIG (TOML) is the configuration of the service. SHARDS are some of the shards that this
    command shows; by default all. Exit code 3: some shards cannot be counted.
    """
    if again and refused:
        raise InvalidInput(
            "--retry counts shards again and --refuse rejects them; give one of the two"
        )
    from streaming_moments.pipelines.service.ingest_worker.locking import locked
    from streaming_moments.pipelines.service.ingest_worker.quarantine import refuse
    from streaming_moments.storage.inbox.inbox import Inbox
    from streaming_moments.storage.inbox.sealing import SealLog
    from streaming_moments.storage.inbox.set_aside import all_set_aside, retry

    wanted = read_service(config)
    inbox = Inbox.open(wanted.inbox_url, wanted.storage_options or None)
    notes = all_set_aside(inbox.folder)
    known = {note.path for note in notes}
    unknown = [path for path in shards if path not in known]
    if unknown:
        raise InvalidInput(
            f"{unknown[0]} is not set aside; run `streaming-moments set-aside {quote(config)}` "
            "without shards to see which are"
        )
    chosen = [note for note in notes if not shards or note.path in shards]
    paths = [note.path for note in chosen]
    if again:
        retry(inbox.folder, paths)
    elif refused and chosen:
        with locked(wanted, _PATIENCE):
            for path in paths:
                refuse(SealLog(inbox), path)
    if json_output:
        rows = [
            {"shard": note.path, "documents": note.documents, "reason": note.reason}
            for note in chosen
        ]
        say(json.dumps({"set_aside": rows, "retried": again, "refused": refused}))
    else:
        documents = sum(note.documents for note in chosen)
        done = "to be counted again" if again else "refused" if refused else "set aside"
        (confirm if again or refused else say)(
            f"{of_number(len(chosen), 'shard')}, {of_number(documents, 'document')} {done}",
            *(
                f"{note.path}: {of_number(note.documents, 'document')}: {note.reason}"
                for note in chosen
            ),
        )
    return ExitCode.BAD_SHARDS if chosen and not again and not refused else ExitCode.DONE
