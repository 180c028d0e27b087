"""The command that seals pending documents and counts them, while servers run."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, replace
from shlex import quote
from time import monotonic, sleep
from types import FrameType
from typing import TYPE_CHECKING

import click

from streaming_moments.errors import StoreError, StreamingMomentsError, printable
from streaming_moments.pipelines.command_help import GroupedCommand
from streaming_moments.pipelines.command_line.every_command import DEBUG, UNTIL_CLOSED
from streaming_moments.pipelines.command_line.shared_options import (
    Session,
    json_option,
    print_json,
    running,
)
from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.service.config import (
    ServiceConfig,
    read_service,
    require_first_night,
)
from streaming_moments.pipelines.terminal import confirm, event_logger, tell
from streaming_moments.printing.plural import of_number

if TYPE_CHECKING:
    from streaming_moments.pipelines.service.ingest_worker.turns import Turn
    from streaming_moments.storage.inbox.inbox import Inbox


_LOOK = 0.2  # seconds between two checks whether to end
# as in shells, the exit code after a signal is this number plus the number of the signal
_BY_SIGNAL = 128


@click.command(
    cls=GroupedCommand,
    events=True,
    examples=(
        "streaming-moments accumulate service.toml",
        "streaming-moments accumulate service.toml --once --json",
    ),
)
@click.argument("config", type=click.Path(dir_okay=False))
@click.option(
    "--once",
    is_flag=True,
    help="Count all pending documents once, then end; exit code 3 if a shard cannot be counted.",
)
@click.option(
    UNTIL_CLOSED,
    is_flag=True,
    help="End when standard input closes, and print heartbeats on standard output.",
)
@json_option
@click.pass_context
def accumulate(
    context: click.Context, config: str, once: bool, until_closed: bool, json_output: bool
) -> int:
    """Count pending documents of the service, as CONFIG (TOML) says, beside its servers.

    On SIGTERM, the command ends after the current cycle. After a crash, the next run completes the
    interrupted cycle. The work runs in a process of its own; if this process reports nothing for
    `hung_after`, it is killed and started again.
    """
    if json_output and not once:
        raise click.UsageError("--json needs --once; give both.")
    wanted, end = read_service(config), _End()
    if not once and not until_closed:
        end.by_signals()
        debug = [DEBUG] * bool(context.find_root().params.get("debug"))
        return _watched([*debug, "accumulate", config, UNTIL_CLOSED], wanted, end)
    from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
    from streaming_moments.pipelines.service.ingest_worker.accumulator import (
        accumulate as take_turns,
    )
    from streaming_moments.pipelines.service.ingest_worker.hung_worker import Beating

    session = Session(**asdict(wanted.cluster))
    with ExitStack() as stack:
        try:
            run = stack.enter_context(running(session, wanted.storage_options or None))
            beating = Beating(sys.stdout.fileno(), run.progress) if until_closed else None
            told = run if beating is None else replace(run, progress=beating)
            # if a server has started this command, log events instead of lines for people
            log = event_logger().bind(store=wanted.store)
            info, warning = (log.info, log.warning) if until_closed else (tell, tell)
            try:
                accumulator = Accumulator.of(wanted, told, info, warn=warning)
            except StoreError:
                require_first_night(wanted)
                raise
        except Exception as failure:
            if until_closed:
                _note_failed_start(wanted, failure)
            raise
        accumulator.steps.begun()
        if once or beating is None:
            turn = accumulator.turn()
            accumulator.expire_if_due()
            if json_output:
                failed = {step: str(error) for step, error in turn.failed}
                print_json({**asdict(replace(turn, failed=())), "failed": failed})
            else:
                confirm(f"sealed {turn.sealed}, counted {of_number(turn.counted, 'document')}")
            code = _told_of_others(turn, accumulator.seals.inbox, config)
            for _, error in turn.failed:
                raise error  # raise the first error only; all errors are in the log already
            return code
        # handle signals only from here on, so that a signal during the start ends the process at
        # once
        end.by_signals()
        threading.Thread(target=_await_end, args=(end,), daemon=True).start()

        def waited(seconds: float) -> bool:
            until = monotonic() + seconds
            while not end.asked and (left := until - monotonic()) > 0:
                beating.beat()
                sleep(min(left, _LOOK))
            return end.asked

        take_turns(accumulator, waited)
    return ExitCode.DONE


def _note_failed_start(wanted: ServiceConfig, error: Exception) -> None:
    """Note in the inbox why the command cannot start, unless the inbox itself cannot be used."""
    from streaming_moments.pipelines.service.ingest_worker.steps import note_failed_start
    from streaming_moments.storage.inbox.inbox import Inbox
    from streaming_moments.storage.inbox.owners import Owner

    options = wanted.storage_options or None
    with suppress(StreamingMomentsError):
        owner = Owner.at(wanted.store, options)
        note_failed_start(Inbox.open(wanted.inbox_url, options, owner), error)


def _told_of_others(turn: Turn, inbox: Inbox, config: str) -> int:
    """Report uncounted and set-aside shards, and return the exit code."""
    from streaming_moments.storage.inbox.set_aside import all_set_aside

    for url, reason in turn.left_out:
        tell(f"refused {printable(url)}: {reason}")
    aside = all_set_aside(inbox.folder)
    for note in aside:
        tell(f"set aside {note.path}, {of_number(note.documents, 'document')}: {note.reason}")
    if aside:
        command = f"streaming-moments set-aside {quote(config)} --retry"
        tell(f"`{command}` counts shards that are set aside")
    return ExitCode.BAD_SHARDS if aside or turn.left_out else ExitCode.DONE


def _watched(arguments: list[str], wanted: ServiceConfig, end: _End) -> int:
    """Run the accumulator in a child process, and return its exit code."""
    from streaming_moments.pipelines.service.ingest_worker.children import watched
    from streaming_moments.pipelines.service.ingest_worker.hung_worker import Heard

    log = event_logger().bind(store=wanted.store).warning
    code = watched(arguments, log, Heard(), wanted.accumulate.hung_after, lambda: end.asked)
    if end.number == signal.SIGINT and code == -signal.SIGTERM:
        raise click.Abort  # SIGTERM killed the child before its first cycle
    return code if code >= 0 else _BY_SIGNAL - code


@dataclass
class _End:
    """Whether the command should end.

    Signal handlers set `asked` and may interrupt any code, so no lock is used.
    """

    asked: bool = False
    number: int | None = None

    def by_signals(self) -> None:
        """Let SIGTERM and SIGINT request the end."""

        def ended(number: int, frame: FrameType | None) -> None:
            self.asked, self.number = True, number

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, ended)


def _await_end(end: _End) -> None:
    # `os.read` is used because `sys.stdin` holds a lock while it waits, and Python aborts if the
    # lock is still held when it ends
    while os.read(sys.stdin.fileno(), 1 << 10):
        pass
    end.asked = True
