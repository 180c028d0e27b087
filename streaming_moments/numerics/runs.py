"""Sums of runs: adjacent entries of an array, such as a row of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_sums(starts: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    """Sum of each run of whole numbers, `values[starts[i]:starts[i + 1]]`, as (runs,) int64.

    Runs are adjacent and can be empty.

    Examples
    --------
    >>> run_sums(np.array([0, 2, 2, 3]), np.array([4, 5, 6])).tolist()
    [9, 0, 6]
    """
    sums = np.zeros(starts.size - 1, dtype=np.int64)
    full = starts[:-1] < starts[1:]
    # for an empty run reduceat returns the next entry; sums are in 64 bits
    sums[full] = np.add.reduceat(values, starts[:-1][full], dtype=np.int64) if full.any() else 0
    return sums
