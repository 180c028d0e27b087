"""Reservoir: a uniform sample of a stream of unknown length, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

_Item = TypeVar("_Item")
_Kept = TypeVar("_Kept")


def draw(
    groups: Iterable[Sequence[_Item]], quota: int, seed: int, keep: Callable[[_Item], _Kept]
) -> tuple[list[_Kept], int]:
    """Draw up to `quota` items, each equally likely.

    Parameters
    ----------
    groups : iterable of sequences
        The items, in groups; the draw does not depend on how they are grouped.
    quota : int
        At most so many items, at least 1.
    seed : int
        Seed of the draw.
    keep : callable
        Makes of an item what is kept of it; called for about `quota * (1 + log(items / quota))`
        of them.

    Returns
    -------
    kept : list
        What was kept, in the order of the items.
    seen : int
        Number of items.

    Examples
    --------
    >>> kept, seen = draw([range(0, 50), range(50, 100)], quota=3, seed=0, keep=float)
    >>> len(kept), kept == sorted(kept), seen
    (3, True, 100)
    """
    rng = np.random.default_rng(seed)
    held: dict[int, tuple[int, _Kept]] = {}
    seen = 0
    for group in groups:
        positions = np.arange(seen, seen + len(group))
        # One float an item, whether it is needed or not: hence no matter of the grouping.
        slots = (rng.random(len(group)) * (positions + 1)).astype(np.int64)
        drawn = np.where(positions < quota, positions, slots).tolist()
        for slot, item in zip(drawn, group, strict=True):
            if slot < quota:
                held[slot] = (seen, keep(item))
            seen += 1
    return [kept for _, kept in sorted(held.values(), key=lambda place: place[0])], seen
