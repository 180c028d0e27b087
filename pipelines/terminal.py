"""Lines that commands print in the terminal; names in them cannot act as control codes."""

from __future__ import annotations

import logging
import os
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from streaming_moments.errors import printable
from streaming_moments.storage.files.urls import without_secrets

if TYPE_CHECKING:
    import structlog


# environment variables of a desktop; if neither is set, `webbrowser` may start a browser in the
# terminal
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
# the options `--quiet` and `--verbose` set these keys in the click context of a command
QUIET, DETAILED = "streaming_moments.quiet", "streaming_moments.verbose"


def shown(line: str) -> str:
    r"""Return a line for the terminal: control characters escaped, secrets of URLs hidden.

    Examples
    --------
    >>> print(shown("left out http://host/a\x1b[2J.txt?sig=7f is empty"))
    left out http://host/a\x1b[2J.txt?sig=*** is empty
    """
    return printable(without_secrets(line))


def say(*lines: str, err: bool = False) -> None:
    """Print lines on standard output, or on standard error if `err`."""
    for line in lines:
        click.echo(shown(line), err=err)


def confirm(*lines: str) -> None:
    """Print what a command did, unless it has `--quiet`."""
    if not asked_for(QUIET):
        say(*lines)


def tell(line: object) -> None:
    """Print a warning on standard error."""
    say(str(line), err=True)


def asked_for(key: str) -> bool:
    """Whether the running command was given an option; `key` is QUIET or DETAILED."""
    context = click.get_current_context(silent=True)
    return context is not None and key in context.meta


def note(line: str) -> None:
    """Print a line on standard error, unless the command has `--quiet`."""
    if not asked_for(QUIET):
        tell(line)


def detail(line: str) -> None:
    """Print a line on standard error if the command has `--verbose` and the line is not empty."""
    if line and asked_for(DETAILED):
        tell(line)


def unheard(line: object) -> None:
    """Print nothing; replaces `tell`."""


@contextmanager
def logged_to(tell: Callable[[str], object], logger: str) -> Iterator[None]:
    """While the block runs, call `tell` with each line that `logger` logs."""

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    told = Told()
    logging.getLogger(logger).addHandler(told)
    try:
        yield
    finally:
        logging.getLogger(logger).removeHandler(told)


def opened_in_browser(url: str) -> bool:
    """Open a page in the browser of the desktop; return whether it was opened.

    Nothing is opened without a desktop, or if standard output is not a terminal.
    """
    desktop = sys.platform in ("darwin", "win32") or any(map(os.environ.get, _DISPLAYS))
    return desktop and sys.stdout.isatty() and webbrowser.open(url)


def event_logger() -> structlog.stdlib.BoundLogger:
    """Make a logger that writes one line for each event on standard error.

    The lines are JSON if standard error is not a terminal.
    """
    import structlog

    rendered: tuple[Any, ...] = (structlog.processors.JSONRenderer(ensure_ascii=False),)
    if sys.stderr.isatty():
        rendered = (_shown_values, structlog.dev.ConsoleRenderer())
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *rendered,
        ],
    )
    return logger


def _shown_values(logger: Any, method: str, event: Any) -> Any:
    """Escape the values of a log event for a terminal; JSON needs no such step."""
    return {
        name: shown(value if isinstance(value, str) else repr(value))
        for name, value in event.items()
    }
