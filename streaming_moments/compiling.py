"""Compiling: the notice that kernels are being compiled, which delays the first run."""

from __future__ import annotations

import logging
import sys
from functools import cache

from streaming_moments.progress import has_reader

LOGGER = "streaming_moments.kernels"
COMPILING = "compiling kernels (once): some seconds longer"


@cache
def say_compiling() -> None:
    """Log the notice. If logging has no handler, print it in a terminal or notebook."""
    logger = logging.getLogger(LOGGER)
    logger.info(COMPILING)
    watched = hasattr(sys, "ps1") or (sys.stderr is not None and sys.stderr.isatty())
    if watched and not has_reader(logger):
        print(f"streaming-moments: {COMPILING}", file=sys.stderr)
