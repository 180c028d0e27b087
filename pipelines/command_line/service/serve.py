"""The command that runs the service: it accepts documents and answers over HTTP."""

from __future__ import annotations

import shlex
import signal
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import click

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.every_command import UNTIL_CLOSED
from streaming_moments.pipelines.command_line.new_folders.service import write_folder
from streaming_moments.pipelines.command_line.new_folders.writing import files_of
from streaming_moments.pipelines.service.config import (
    night_of,
    read_service,
    require_first_night,
    unused_options,
)
from streaming_moments.pipelines.terminal import confirm, event_logger, say
from streaming_moments.printing.extras import needs


@click.command(
    cls=GroupedCommand,
    events=True,
    examples=(
        "streaming-moments serve service.toml",
        "streaming-moments serve --init shop",
    ),
)
@click.argument("config", type=click.Path(dir_okay=False), required=False)
@click.option(
    "--init",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write a new folder with configuration, night, token and examples; start nothing.",
)
@click.option(
    "--no-accumulate", is_flag=True, help="Only accept documents; another process counts them."
)
def serve(config: str | None, folder: Path | None, no_accumulate: bool) -> None:
    """Accept documents and answer questions about topics over HTTP, as CONFIG (TOML) says.

    On SIGTERM, the command ends once all open requests are answered. With --init, the command
    writes a folder that a service can run in, prints the next commands and ends.
    """
    if (config is None) == (folder is None):
        raise InvalidInput("give either CONFIG, or --init FOLDER for a new service")
    if folder is not None:
        _begin(folder)
        return
    assert config is not None
    wanted = read_service(config)
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise InvalidInput(needs("serve", error.name or "uvicorn", "serve")) from error
    from streaming_moments.pipelines.service.http.app import create_app
    from streaming_moments.pipelines.service.http.connections.serving import (
        require_certificate,
        require_free,
        server_of,
    )
    from streaming_moments.pipelines.service.ingest_worker.children import kept_running
    from streaming_moments.pipelines.service.ingest_worker.hung_worker import Heard
    from streaming_moments.pipelines.service.service import Service

    within = wanted.accumulate.within and not no_accumulate
    if within:
        # Check the configuration of the nightly job before the server starts: if it is wrong, the
        # counting process fails and is restarted without end.
        night_of(wanted)
    require_certificate(wanted.listen)
    require_free(wanted.listen)
    log = event_logger().bind(store=wanted.store)
    rules, heard = wanted.accumulate, Heard()
    try:
        service = Service.of(wanted, lambda: datetime.now(UTC), log.warning)
    except StoreError:
        require_first_night(wanted)
        raise
    service = replace(service, silence=heard.silence if within else None)
    if wanted.tokens is None:
        log.warning(
            "no tokens are configured, so any process on this machine may do everything; "
            "other machines are refused"
        )
    if unused := unused_options(wanted, (one.url for one in service.view.store.ledger())):
        log.warning(unused)
    server = server_of(create_app(service, log), wanted, say)

    def ended(number: int, frame: FrameType | None) -> None:
        # This handles signals before the server listens. Later the server has its own handlers.
        # When the server ends, it raises the signals again, and this function handles them.
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ended)
    with ExitStack() as stack:
        if within:
            arguments = ["accumulate", config, UNTIL_CLOSED]
            stack.enter_context(kept_running(arguments, log.warning, heard, rules.hung_after))
        server.run()


def _begin(folder: Path) -> None:
    token = write_folder(folder, datetime.now(UTC).date())
    confirm(f"Wrote a service to {folder}: {files_of(folder)}.")
    say(f"Token of the admin, which is printed only now: {token}")
    confirm(
        "Next:",
        f"  cd {shlex.quote(str(folder))}",
        "  streaming-moments nightly night.toml   # creates the store and publishes a first model",
        "  streaming-moments serve service.toml",
        "Then open http://localhost:8080/ with the token as the password. README.md has all steps.",
    )
