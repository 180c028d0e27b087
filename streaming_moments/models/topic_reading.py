"""Numba kernel that reads documents with given topics."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def proportions(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    iterations: int,
    thetas: NDArray[np.float64],
) -> None:
    """`theta <- (alpha0 w + sum_i x_i theta m_i / (theta . m_i)) / (alpha0 + c)`, to 1e-8.

    One document at a time: its few topics rows stay in the cache through all iterations.
    """
    k = topics.shape[1]
    following = np.empty(k)
    for document in range(indptr.size - 1):
        theta = thetas[document]
        theta[:] = weights
        if indptr[document] == indptr[document + 1]:
            continue
        for _ in range(iterations):
            total = alpha0
            for j in range(k):
                following[j] = alpha0 * weights[j]
            for entry in range(indptr[document], indptr[document + 1]):
                row = topics[words[entry]]
                likelihood = 0.0
                for j in range(k):
                    likelihood += theta[j] * row[j]
                share = counts[entry] / likelihood
                total += counts[entry]
                for j in range(k):
                    following[j] += share * theta[j] * row[j]
            change = 0.0
            for j in range(k):
                value = following[j] / total
                change = max(change, abs(value - theta[j]))
                theta[j] = value
            if change < 1e-8:
                break
