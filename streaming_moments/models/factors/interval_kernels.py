"""Numba kernel that sums factors over the rows in which a factor lies in a given interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel


@kernel()
def add_rows(
    values: NDArray[np.int64],
    places: NDArray[np.int64],
    rows: NDArray[np.int64],
    first: NDArray[np.int64],
    products: NDArray[np.int64],
) -> None:
    """Add the (n, k) `values` of factors to the sums `rows`, `first` and `products`.

    These are the arrays of `FactorSums`. `places` (n, k) has the interval of each value.
    """
    k = values.shape[1]
    for row in range(values.shape[0]):
        for j in range(k):
            place, value = places[row, j], values[row, j]
            rows[j, place] += 1
            for other in range(k):
                first[j, place, other] += values[row, other]
                products[j, place, other] += value * values[row, other]
