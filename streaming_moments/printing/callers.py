"""Warnings that point to the line of the caller outside this package."""

from __future__ import annotations

import inspect
import warnings

_INSIDE = ("streaming_moments", "sklearn")  # scikit-learn, because it wraps our methods


def warn_outside(line: str) -> None:
    """Issue a warning that points to the first line outside this package and scikit-learn."""
    # search the stack, because the number of calls in between differs
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(line, stacklevel=level)
