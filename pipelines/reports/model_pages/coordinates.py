"""Name the coordinates of records that are rows of numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.store.store import MomentStore

_SHOWN = 8


def column_names(store: MomentStore) -> tuple[str, ...]:
    """Return the name of the column of each coordinate; empty if rows are lists or arrays."""
    from streaming_moments.storage.counting.vectors import VectorsForm

    columns = VectorsForm.from_json(store.reading).columns
    return columns if len(columns) == store.foundation.dimension else ()


def largest(values: NDArray[np.float64], names: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Return the eight numbers of largest size, in that order, each with its name or position.

    Examples
    --------
    >>> largest(np.array([0.5, -2.0]), ())
    (('#1', -2.0), ('#0', 0.5))
    """
    order = np.argsort(-np.abs(values), kind="stable")[:_SHOWN]
    return tuple((names[at] if names else f"#{at}", float(values[at])) for at in order.tolist())
