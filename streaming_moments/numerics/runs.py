"""Sums of runs. A run is a range of entries of an array, such as a row of a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_sums(starts: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.int64]:
    """Sum each run of whole numbers, `values[starts[i]:starts[i + 1]]`, to (runs,) int64.

    Each run begins where the run before it ends. Runs can be empty.

    Examples
    --------
    >>> run_sums(np.array([0, 2, 2, 3]), np.array([4, 5, 6])).tolist()
    [9, 0, 6]
    """
    sums = np.zeros(starts.size - 1, dtype=np.int64)
    full = starts[:-1] < starts[1:]
    # sum in 64 bits; leave out empty runs, for which `reduceat` would return the first value of the
    # next run
    sums[full] = np.add.reduceat(values, starts[:-1][full], dtype=np.int64) if full.any() else 0
    return sums
