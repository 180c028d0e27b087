"""Print a message while kernels are compiled.

The message explains why the first command of a new installation takes longer.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streaming_moments.compiling import LOGGER
from streaming_moments.pipelines.terminal import logged_to


@contextmanager
def telling_of_kernels(tell: Callable[[str], None]) -> Iterator[None]:
    """Print a line, on a terminal only, when kernels are compiled in this process."""
    if not sys.stderr.isatty():
        yield
        return

    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        with logged_to(tell, LOGGER):
            yield
    finally:
        logger.setLevel(level)
