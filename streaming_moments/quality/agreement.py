"""Agreement of two ways to group the same documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput


def adjusted_rand_index(one: ArrayLike, two: ArrayLike) -> float:
    """Return how well two assignments of the same documents agree, whatever the topic numbers.

    Let n_ij be the number of documents in cluster i of one assignment and cluster j of the other.
    Let a_i and b_j be its sums over j and over i, and `E = sum_i C(a_i, 2) sum_j C(b_j, 2) /
    C(n, 2)`. The index is `(sum_ij C(n_ij, 2) - E) / ((sum_i C(a_i, 2) + sum_j C(b_j, 2)) / 2 - E)`
    (Hubert and Arabie 1985, eq. 5).

    Parameters
    ----------
    one, two : (documents,) integers
        Topic of each document.

    Returns
    -------
    float
        1 for equal partitions, about 0 for independent ones, at least -1.

    Raises
    ------
    InvalidInput
        The numbers of documents differ, or are 0.

    Examples
    --------
    >>> adjusted_rand_index([0, 0, 1, 1], [5, 5, 2, 2])
    1.0
    """
    first, second = np.asarray(one), np.asarray(two)
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        raise InvalidInput(
            f"the assignments have shapes {first.shape} and {second.shape}; give two "
            "one-dimensional assignments of the same documents"
        )
    rows, columns = (np.unique(labels, return_inverse=True)[1] for labels in (first, second))
    cells = np.unique(np.stack([rows, columns]), axis=1, return_counts=True)[1]
    together = _pairs(cells)
    apart, other = _pairs(np.bincount(rows)), _pairs(np.bincount(columns))
    expected = apart * other / max(first.size * (first.size - 1) // 2, 1)
    largest = (apart + other) / 2
    # `largest` equals `expected` if both partitions have one cluster, or if each document is alone
    # in both. Such partitions are equal.
    return (together - expected) / (largest - expected) if largest != expected else 1.0


def _pairs(sizes: NDArray[np.int64]) -> int:
    """Return the number of pairs inside clusters of these sizes."""
    return sum(size * (size - 1) // 2 for size in sizes.tolist())
