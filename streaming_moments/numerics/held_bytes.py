"""Number of bytes that a value with arrays holds, for `sys.getsizeof`.

Caches and Dask call `sys.getsizeof`.
"""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass

import numpy as np


def held_bytes(value: object) -> int:
    """Return the bytes of a dataclass and of all its fields; classes use it as `__sizeof__`.

    Fields may be arrays, numbers, texts, dataclasses, and tuples and lists of these.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pair:
    ...     one: np.ndarray
    ...     other: np.ndarray
    ...     __sizeof__ = held_bytes
    >>> sys.getsizeof(Pair(np.zeros(1000), np.zeros(1000))) // 1000
    16
    """
    own = object.__sizeof__(value)
    if not is_dataclass(value):
        return own
    return own + sum(_bytes(getattr(value, one.name)) for one in fields(value))


def _bytes(part: object) -> int:
    if isinstance(part, np.ndarray):
        # count only the data of a view, not those of its base, because only the view is sent to
        # workers
        return part.nbytes
    if isinstance(part, list | tuple):
        return sys.getsizeof(part) + sum(map(_bytes, part))
    own = is_dataclass(part) and type(part).__sizeof__ is object.__sizeof__
    return held_bytes(part) if own else sys.getsizeof(part)
