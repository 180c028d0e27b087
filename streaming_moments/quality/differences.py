"""Differences and their standard errors: which differences exceed noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import NormalDist

# a difference exceeds noise if it is above this many standard errors; by chance, one in 22 is
BARS = 2.0
# Probability that a page names a largest change by chance, although there is no trend.
_BY_CHANCE = 0.05


def beyond_noise(step: float, bar: float | None, several: int = 1) -> bool:
    """Whether a difference exceeds noise: it is above two of its standard errors.

    If `step` is the largest of `several` differences, the limit is higher, so that in 19 of 20
    cases none of them exceeds it by chance (Bonferroni). If the standard error `bar` is unknown,
    None or NaN, the result is False.

    Examples
    --------
    >>> beyond_noise(0.03, 0.01), beyond_noise(0.03, 0.01, several=50), beyond_noise(0.03, None)
    (True, False, False)
    """
    if bar is None or not isfinite(bar):
        return False
    least = NormalDist().inv_cdf(1 - _BY_CHANCE / (2 * several))
    return abs(step) > max(BARS, least) * bar


def largest_change(steps: Sequence[float], bars: Sequence[float | None]) -> int | None:
    """Return the index of the largest difference that exceeds noise; None if none does.

    Examples
    --------
    >>> largest_change([0.05, -0.02, 0.01], [0.04, 0.005, 0.001])
    1
    """
    pairs = zip(steps, bars, strict=True)
    known = [place for place, pair in enumerate(pairs) if beyond_noise(*pair, several=len(steps))]
    return max(known, key=lambda place: abs(steps[place]), default=None)


def bar_of_difference(one: float | None, other: float | None) -> float | None:
    """Return the standard error of the difference of two independent values, from theirs.

    Returns None if one of them is unknown.
    """
    if one is None or other is None:
        return None
    return sqrt(one**2 + other**2)
