"""Unimodal: find the maximum of a sequence that rises, then falls, with few evaluations."""

from __future__ import annotations

import math
from collections.abc import Callable


def highest_place(number: int, value: Callable[[int], float]) -> int:
    """Find the largest of `number` values that rise, then fall, by a Fibonacci search.

    Returns the index of the largest value, the first one if several are equal. Both of its
    neighbours are evaluated, and each value at most once.

    Examples
    --------
    >>> looked_at = []
    >>> highest_place(12, lambda place: looked_at.append(place) or -abs(place - 7))
    7
    >>> len(set(looked_at))
    5
    """
    known: dict[int, float] = {}

    def at(place: int) -> float:
        if place >= number:
            return -math.inf
        if place not in known:
            known[place] = value(place)
        return known[place]

    shorter, longer = 1, 2  # consecutive Fibonacci numbers
    while longer <= number:
        shorter, longer = longer, shorter + longer
    low, high = -1, longer - 1
    while high - low > 2:
        left, right = high - shorter, low + shorter
        if at(left) >= at(right):
            high = right
        else:
            low = left
        shorter, longer = longer - shorter, shorter
    return low + 1
