"""Matching: one-to-one assignment between two sets of means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.lazy_scipy import optimize


def matched_order(rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.int64]:
    """Match each row to one of `others`, so that the sum of squared distances is least.

    Returns the (k,) indices in `others`.

    Examples
    --------
    >>> matched_order(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0]]))
    array([1, 0])
    """
    squares = np.square(rows).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    _, places = optimize.linear_sum_assignment(squares - 2 * rows @ others.T)
    return np.asarray(places)


def matched_rows(rows: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `others`, (k, d), in the order with the least sum of squared distances from `rows`.

    Examples
    --------
    >>> matched_rows(np.array([[0.0], [5.0]]), np.array([[4.0], [1.0]]))
    array([[1.],
           [4.]])
    """
    return np.asarray(others[matched_order(rows, others)])
