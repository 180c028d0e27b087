"""Reservoir: a uniform sample of a stream of unknown length, in one pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import numpy as np

_Item = TypeVar("_Item")
_Kept = TypeVar("_Kept")
_Held = TypeVar("_Held", covariant=True)


class Group(Protocol[_Held]):
    """Items that can be looked up by their positions, from 0."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> _Held: ...


def draw(
    groups: Iterable[Group[_Item]],
    quota: int,
    seed: int,
    keep: Callable[[_Item], _Kept],
    room: int | None = None,
    size: Callable[[_Kept], int] = sys.getsizeof,
) -> tuple[list[_Kept], int]:
    """Draw up to `quota` items (at least 1), each equally likely, and count all items.

    Which items are drawn does not depend on how they are grouped. The sample has the order of the
    stream. `keep` converts a drawn item for storage, and is called for about `quota * (1 +
    log(items / quota))` items. `size` returns the bytes of a converted item. When the sample takes
    more than `room` bytes, all but a random part of it is dropped, and the quota becomes lower. So
    the memory is at most `room`, plus the items of one group.

    Examples
    --------
    >>> kept, seen = draw([range(0, 50), range(50, 100)], quota=3, seed=0, keep=float)
    >>> len(kept), kept == sorted(kept), seen
    (3, True, 100)
    """
    rng = np.random.default_rng(seed)
    held: dict[int, tuple[int, _Kept]] = {}
    seen = nbytes = 0
    for group in groups:
        positions = np.arange(seen, seen + len(group))
        # Draw a random number for every item, even if it is not needed, so that the result does not
        # depend on the grouping.
        slots = (rng.random(len(group)) * (positions + 1)).astype(np.int64)
        drawn = np.where(positions < quota, positions, slots)
        for place in np.flatnonzero(drawn < quota).tolist():
            slot, kept = int(drawn[place]), keep(group[place])
            if room is not None:
                nbytes += size(kept) - (size(held[slot][1]) if slot in held else 0)
            held[slot] = (seen + place, kept)
        seen += len(group)
        if room is not None and nbytes > room and len(held) > 1:
            # Keep only a random part of the sample, which is again a uniform sample. Choose this
            # part with another seed than the one by which items are drawn.
            quota = max(1, len(held) * room // nbytes)
            left = np.random.default_rng([seed, seen]).permutation(sorted(held))[:quota].tolist()
            held = {slot: held[old] for slot, old in enumerate(left)}
            nbytes = sum(size(kept) for _, kept in held.values())
    return [kept for _, kept in sorted(held.values(), key=lambda place: place[0])], seen
