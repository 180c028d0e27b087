"""Error bars of numbers whose errors were drawn once each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEAST = 1e-300


def pooled(squares: NDArray[np.float64], law: NDArray[np.float64]) -> NDArray[np.float64]:
    """Average the square of each error with its part of the sum of all squares of its column.

    A single draw of an error is often near 0, so it is no error bar by itself. Together with the
    other draws, it is.

    squares : (n,) or (n, k) squared draws of errors
    law : as `squares`; what the variances are proportional to, such as p (1 - p)

    Examples
    --------
    >>> pooled(np.array([0.0, 4.0]), np.array([0.25, 0.25]))
    array([1., 3.])
    """
    sums = np.maximum(law.sum(axis=0), _LEAST)
    found: NDArray[np.float64] = (squares + law * (squares.sum(axis=0) / sums)) / 2
    return found
