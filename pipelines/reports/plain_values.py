"""Plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def json_value(item: Any) -> Any:
    """Convert a value for JSON: NaN and infinity become null, and tuples become lists.

    Empty `coherences` are left out.

    Examples
    --------
    >>> json_value({"npmi": float("nan"), "weights": (0.5, 0.5)})
    {'npmi': None, 'weights': [0.5, 0.5]}
    """
    if isinstance(item, Mapping):
        shown = ((key, value) for key, value in item.items() if value or key != "coherences")
        return {key: json_value(value) for key, value in shown}
    if isinstance(item, list | tuple):
        return [json_value(value) for value in item]
    return None if isinstance(item, float) and not math.isfinite(item) else item
