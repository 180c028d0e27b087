"""Warnings that point to the first line outside this package, which made the call."""

from __future__ import annotations

import inspect
import warnings

# scikit-learn is also inside, because it wraps our methods
_INSIDE = ("streaming_moments", "sklearn")


def warn_outside(line: str) -> None:
    """Issue a warning that points to the first line outside this package and scikit-learn."""
    # search the stack for that line, because the number of calls in between differs
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(line, stacklevel=level)
