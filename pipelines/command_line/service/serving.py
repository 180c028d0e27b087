"""Commands of the service: to serve, and to accumulate apart."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from time import monotonic
from types import FrameType

import click

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.command_line.options import Session, running
from streaming_moments.pipelines.service.config import night_of, read_service
from streaming_moments.pipelines.terminal import event_logger, say, tell


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("--no-accumulate", is_flag=True, help="Take documents only; others count them.")
def serve(config: str, no_accumulate: bool) -> None:
    """Take documents and answer for topics over HTTP, as CONFIG (TOML) says.

    Ends on SIGTERM once what is open is answered.
    """
    wanted = read_service(config)
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"{error.name} is not installed; pip install 'streaming-moments[serve]'"
        ) from error
    from streaming_moments.pipelines.service.accumulating.children import kept_running
    from streaming_moments.pipelines.service.accumulating.heartbeats import Heard
    from streaming_moments.pipelines.service.http.app import create_app
    from streaming_moments.pipelines.service.http.serving import server_of
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
        tell("no tokens are asked for: this machine alone is answered, and may do everything")
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


@click.command()
@click.argument("config", type=click.Path(dir_okay=False))
@click.option("--once", is_flag=True, help="Seal and count what waits, and end.")
@click.option(
    "--until-closed",
    is_flag=True,
    help="End where standard input does; say on standard output that it goes on.",
)
def accumulate(config: str, once: bool, until_closed: bool) -> None:
    """Seal what waits in the inbox and count it, as CONFIG (TOML) says, beside servers.

    Ends on SIGTERM after the turn that it is at; killed, the next one ends what it began.
    """
    from streaming_moments.pipelines.service.accumulating.accumulator import Accumulator
    from streaming_moments.pipelines.service.accumulating.accumulator import (
        accumulate as take_turns,
    )
    from streaming_moments.pipelines.service.accumulating.heartbeats import Beating

    wanted = read_service(config)
    session = Session(**asdict(wanted.cluster))
    with running(session, wanted.storage_options or None) as run:
        beating = Beating(sys.stdout.fileno(), run.progress) if until_closed else None
        told = run if beating is None else replace(run, progress=beating)
        accumulator = Accumulator.of(wanted, told, tell)
        if once:
            turn = accumulator.turn()
            accumulator.expire_if_due()
            say(f"sealed {turn.sealed}, counted {turn.counted} documents")
            return
        over = threading.Event()

        def ended(number: int, frame: FrameType | None) -> None:
            over.set()

        signal.signal(signal.SIGTERM, ended)
        signal.signal(signal.SIGINT, ended)
        if until_closed:
            threading.Thread(target=_await_end, args=(over,), daemon=True).start()

        def waited(seconds: float) -> bool:
            until = monotonic() + seconds
            while not over.is_set() and (left := until - monotonic()) > 0:
                if beating is not None:
                    beating.beat()
                over.wait(min(left, 1.0))
            return over.is_set()

        take_turns(accumulator, waited)


def _await_end(over: threading.Event) -> None:
    while sys.stdin.buffer.read(1 << 10):
        pass
    over.set()
