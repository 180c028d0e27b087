"""The line that says that kernels are being compiled, because a new installation waits for it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming_moments.compiling import LOGGER


@contextmanager
def telling_of_kernels(tell: Callable[[str], None]) -> Iterator[None]:
    """Print a line, on a terminal only, when kernels are compiled in this process."""
    if not sys.stderr.isatty():
        yield
        return

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            tell(record.getMessage())

    logger, told = logging.getLogger(LOGGER), Told()
    level = logger.level
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(told)
        logger.setLevel(level)
