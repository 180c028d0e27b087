"""What all cases share: the clock, and names that may not exist on a commit."""

from __future__ import annotations

import inspect
import resource
from collections.abc import Callable
from importlib import import_module
from typing import Any


def user_seconds() -> float:
    """CPU seconds of this process outside the kernel.

    In the kernel the same call took from 0.04 to 1.3 s: it looks for huge pages, and clears them.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def seconds_of_children() -> float:
    """CPU seconds of processes that were started and have ended, in the kernel too."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Timed:
    """The attributes that asv reads of a case: CPU seconds of one call, after one to warm up."""

    timer = staticmethod(user_seconds)
    number = 1
    repeat = 3
    rounds = 3
    warmup_time = 1e-9


def first_of(*places: str) -> Any:
    """Return the first of several `module:name` below streaming_moments that the commit has.

    Raises
    ------
    NotImplementedError
        The commit has none of them; asv skips the case.
    """
    for place in places:
        module, name = place.split(":")
        try:
            return getattr(import_module(f"streaming_moments{module}"), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise NotImplementedError(f"this commit has none of {places}")


def bare(function: Callable[..., Any], **options: Any) -> dict[str, Any]:
    """Return the options that a function of the commit takes: earlier ones do without them."""
    taken = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in taken}
