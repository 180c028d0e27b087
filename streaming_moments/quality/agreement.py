"""Agreement of two ways to group the same documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput


def adjusted_rand_index(one: ArrayLike, two: ArrayLike) -> float:
    """Return how well two assignments of the same documents to topics agree.

    The numbers of the topics do not matter. Let n_ij be the number of documents in topic i of one
    assignment and topic j of the other. Let a_i and b_j be the sums of n_ij over j and over i, n
    the number of documents, and `E = sum_i C(a_i, 2) sum_j C(b_j, 2) / C(n, 2)`. The index is
    `(sum_ij C(n_ij, 2) - E) / ((sum_i C(a_i, 2) + sum_j C(b_j, 2)) / 2 - E)` (Hubert and Arabie
    1985, eq. 5).

    Parameters
    ----------
    one, two : (documents,) integers
        Topic of each document.

    Returns
    -------
    float
        1 if both assignments group the documents alike, about 0 if they are independent; at least
        -1.

    Raises
    ------
    InvalidInput
        The assignments have different numbers of documents, or none.

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
    # `largest` equals `expected` only if both assignments have a single topic, or if both give each
    # document a topic of its own. Such assignments are equal.
    return (together - expected) / (largest - expected) if largest != expected else 1.0


def _pairs(sizes: NDArray[np.int64]) -> int:
    """Return the number of pairs of documents in the same cluster, given the sizes of clusters."""
    return sum(size * (size - 1) // 2 for size in sizes.tolist())
