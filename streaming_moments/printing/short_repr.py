"""One short line as the `repr` of values that hold arrays, many items or many options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import Any

import numpy as np

LINE = 100  # largest number of characters of a repr
_FEW = 6  # of a collection with more items, only their number is printed
_LONG = 60  # texts with more characters are cut


def short_repr(value: Any) -> str:
    """Format a value in one line: its facts, or its fields that are neither defaults nor empty.

    A class names its facts by a property `shown_facts`, whose texts are printed in their order.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Drawn:
    ...     rows: np.ndarray
    ...     names: tuple[str, ...] = ()
    ...     seed: int = 0
    ...     __repr__ = short_repr
    >>> Drawn(np.eye(3), tuple("abcdefgh"))
    Drawn(rows=<3 x 3 float64>, names=<8 items>)
    """
    facts = getattr(type(value), "shown_facts", None)
    if facts is not None:
        return in_a_line(type(value).__name__, value.shown_facts)
    own = ((one, getattr(value, one.name)) for one in fields(value) if one.repr)
    parts = (
        f"{one.name}={shown(held)}"
        for one, held in own
        if not _is_empty(held) and not _is_plain_equal(held, one.default)
    )
    return in_a_line(type(value).__name__, parts)


def in_a_line(name: str, parts: Iterable[str]) -> str:
    """Format a call of `name` in one line, with as many of the `parts` as fit."""
    every = list(parts)
    whole = f"{name}({', '.join(every)})"
    while len(whole) > LINE and every:
        every.pop()
        whole = f"{name}({', '.join([*every, '...'])})"
    return whole


def _is_plain_equal(value: Any, default: Any) -> bool:
    # compare by text, because NaN is not equal to itself
    return isinstance(value, str | int | float | tuple) and repr(value) == repr(default)


def _is_empty(value: Any) -> bool:
    return value is None or (
        isinstance(value, str | tuple | list | Mapping | AbstractSet) and not value
    )


def shown(value: Any) -> str:
    """Format a value in a few words, as messages and `repr` print it.

    Examples
    --------
    >>> shown(3), shown("three"), shown(["a"] * 900), shown(np.eye(2))
    ('3', "'three'", '<900 items>', '<2 x 2 float64>')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "shape"):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, str) and len(value) > _LONG:
        return repr(f"{value[:8]}...")
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, str | int | bytes):
        return repr(value)
    if isinstance(value, tuple | list | Mapping | AbstractSet):
        parts = list(value.values() if isinstance(value, Mapping) else value)
        plain = all(isinstance(one, str | int | float) for one in parts)
        if plain and len(parts) <= _FEW and len(repr(value)) <= _LONG:
            return repr(value)
        return f"<{len(parts):,} item{'s' * (len(parts) != 1)}>"
    return f"<{type(value).__name__}>"
