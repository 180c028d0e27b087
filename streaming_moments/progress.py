"""Progress: report long computations line by line, to the log and, if requested, on the screen."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import TypeAlias

ROOT = "streaming_moments"
Report: TypeAlias = Callable[[str], None]

# This handler ignores all lines, so that the application decides what happens to them. Without it,
# Python would print warnings.
logging.getLogger(ROOT).addHandler(logging.NullHandler())


def unreported(line: str) -> None:
    """Ignore a line: the default of computations that accept a `Report`."""


def reporter(owner: str, verbose: int | bool = 0, package: str = "models") -> Report:
    """Return a function that reports a line, with the seconds since the line before it.

    Each line goes to the logger `streaming_moments.<package>` at level INFO. If `verbose` is not 0,
    it is also printed on standard output after the name of its owner, as scikit-learn does. It is
    not printed if a handler of `logging` shows it already.

    Raises
    ------
    TypeError
        `verbose` is not a whole number or a boolean.

    Examples
    --------
    >>> reporter("MomentTopics")("counted documents")
    """
    if not isinstance(verbose, Integral):
        raise TypeError(f"verbose is {verbose!r}; give 1 to print progress, or 0")
    logger, last = logging.getLogger(f"{ROOT}.{package}"), time.perf_counter()

    def report(line: str) -> None:
        nonlocal last
        now = time.perf_counter()
        timed, last = f"{line} ({now - last:.1f} s)", now
        logger.info("%s: %s", owner, timed)
        if verbose and not _is_shown(logger):
            print(f"[{owner}] {timed}", flush=True)

    return report


def has_reader(logger: logging.Logger) -> bool:
    """Whether a handler of the application receives the lines that go to this logger."""
    return any(not isinstance(one, logging.NullHandler) for one in _handlers(logger))


def _is_shown(logger: logging.Logger) -> bool:
    """Whether a handler of the logger shows lines of level INFO on the screen.

    Handlers that write to files, and NullHandler, do not.
    """
    silent = (logging.NullHandler, logging.FileHandler)
    return logger.isEnabledFor(logging.INFO) and any(
        one.level <= logging.INFO and not isinstance(one, silent) for one in _handlers(logger)
    )


def _handlers(logger: logging.Logger) -> Iterator[logging.Handler]:
    above: logging.Logger | None = logger
    while above is not None:
        yield from above.handlers
        above = above.parent if above.propagate else None
