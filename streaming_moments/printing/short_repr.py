"""The `repr` of values that hold arrays or many items: one line, with shapes and numbers of items.

Models print their arrays, and the plain values that differ from defaults: `model_repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import Field, fields
from typing import Any

import numpy as np

_FEW = 6  # most items that are printed
_LONG = 60  # most characters of a text


def short_repr(value: Any) -> str:
    """The fields of a dataclass in one line, without empty ones and None.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Drawn:
    ...     rows: np.ndarray
    ...     names: tuple[str, ...] = ()
    ...     __repr__ = short_repr
    >>> Drawn(np.eye(3), tuple("abcdefgh"))
    Drawn(rows=<3 x 3 float64>, names=<8 items>)
    """
    own = ((one.name, getattr(value, one.name)) for one in fields(value) if one.repr)
    shown = [f"{name}={_shown(held)}" for name, held in own if not _is_empty(held)]
    return f"{type(value).__name__}({', '.join(shown)})"


def model_repr(model: object, own: Iterable[Field[Any]]) -> str:
    """One line of a model's arrays, and of its plain values that differ from the defaults."""
    values = ((one, getattr(model, one.name)) for one in own)
    shown = [f"{one.name}={_shown(value)}" for one, value in values if _is_of_model(one, value)]
    return f"{type(model).__name__}({', '.join(shown)})"


def _is_of_model(one: Field[Any], value: Any) -> bool:
    if not isinstance(value, str | int | float):
        return isinstance(value, np.ndarray)
    # compared as texts, since NaN is not equal to itself
    return repr(value) != repr(one.default)


def _is_empty(value: Any) -> bool:
    return value is None or (
        isinstance(value, str | tuple | list | Mapping | AbstractSet) and not value
    )


def _shown(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "shape"):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, str) and len(value) > _LONG:
        return repr(f"{value[:8]}...")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str | int | bytes):
        return repr(value)
    if isinstance(value, tuple | list | Mapping | AbstractSet):
        parts = list(value.values() if isinstance(value, Mapping) else value)
        plain = all(isinstance(one, str | int | float) for one in parts)
        if plain and len(parts) <= _FEW and len(repr(value)) <= _LONG:
            return repr(value)
        return f"<{len(parts):,} item{'s' * (len(parts) != 1)}>"
    return f"<{type(value).__name__}>"
