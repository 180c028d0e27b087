"""Compiling: the line that says that kernels are compiled, which a new installation waits for."""

from __future__ import annotations

import logging
import sys
from functools import cache

from streaming_moments.progress import has_reader

LOGGER = "streaming_moments.kernels"
COMPILING = "compiling kernels (once): some seconds longer"


@cache
def say_compiling() -> None:
    """Log it, and where nobody reads the log tell who sits before a terminal or a notebook."""
    logger = logging.getLogger(LOGGER)
    logger.info(COMPILING)
    watched = hasattr(sys, "ps1") or (sys.stderr is not None and sys.stderr.isatty())
    if watched and not has_reader(logger):
        print(f"streaming-moments: {COMPILING}", file=sys.stderr)
