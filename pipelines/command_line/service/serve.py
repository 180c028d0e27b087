"""The command that takes documents and answers over HTTP."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType

import click

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.service.config import night_of, read_service
from streaming_moments.pipelines.terminal import event_logger, say, tell


@click.command(cls=GroupedCommand, examples=("streaming-moments serve service.toml",))
@click.argument("config", type=click.Path(dir_okay=False))
@click.option(
    "--no-accumulate", is_flag=True, help="Only accept documents; another process counts them."
)
def serve(config: str, no_accumulate: bool) -> None:
    """Accept documents and answer questions about topics over HTTP, as CONFIG (TOML) says.

    On SIGTERM, the command ends once all open requests are answered.
    """
    wanted = read_service(config)
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{error.name} is not installed; pip install 'streaming-moments[serve]'"
        ) from error
    from streaming_moments.pipelines.service.http.app import create_app
    from streaming_moments.pipelines.service.http.serving import server_of
    from streaming_moments.pipelines.service.ingest_worker.children import kept_running
    from streaming_moments.pipelines.service.ingest_worker.hung_worker import Heard
    from streaming_moments.pipelines.service.service import Service

    within = wanted.accumulate.within and not no_accumulate
    if within:
        night_of(wanted)  # before anything is taken: who counts would be begun and begun again
    log = event_logger().bind(store=wanted.store)
    rules, heard = wanted.accumulate, Heard()
    within = rules.within and not no_accumulate
    service = Service.of(wanted, lambda: datetime.now(UTC), log.warning)
    service = replace(service, silence=heard.silence if within else None)
    if wanted.tokens is None:
        tell(
            "warning: no tokens are configured, so any process on this machine may do everything; "
            "other machines are refused"
        )
    server = server_of(create_app(service, log), wanted, say)

    def ended(number: int, frame: FrameType | None) -> None:
        # before the server listens; it raises once more, at its end, what ended it
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ended)
    with ExitStack() as stack:
        if within:
            arguments = ["accumulate", config, "--until-closed"]
            stack.enter_context(kept_running(arguments, log.warning, heard, rules.hung_after))
        server.run()
