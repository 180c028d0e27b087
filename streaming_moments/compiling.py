"""Compiling: informs the user that the first run is slow, because Numba compiles functions."""

from __future__ import annotations

import logging
import sys
from functools import cache

from streaming_moments.progress import has_reader

LOGGER = "streaming_moments.kernels"
COMPILING = "compiling kernels (once): some seconds longer"


@cache
def say_compiling() -> None:
    """Log that functions are being compiled. Without a log handler, print it to the user.

    It is printed only in a terminal or notebook.
    """
    logger = logging.getLogger(LOGGER)
    logger.info(COMPILING)
    watched = hasattr(sys, "ps1") or (sys.stderr is not None and sys.stderr.isatty())
    if watched and not has_reader(logger):
        print(f"streaming-moments: {COMPILING}", file=sys.stderr)
