"""The `repr` of a model: class, shapes of arrays, and values that differ from the defaults."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import Field
from typing import Any

import numpy as np


def model_repr(model: object, own: Iterable[Field[Any]]) -> str:
    """One line with the model's fields in the given order."""
    values = ((one, getattr(model, one.name)) for one in own)
    shown = [f"{one.name}={_shown(value)}" for one, value in values if _is_shown(one, value)]
    return f"{type(model).__name__}({', '.join(shown)})"


def _is_shown(one: Field[Any], value: Any) -> bool:
    if not isinstance(value, str | int | float):
        return isinstance(value, np.ndarray)
    # compared as texts, since NaN is not equal to itself
    return repr(value) != repr(one.default)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    return repr(value)
