"""Topic map: distances between topics, and places in the plane that approximate these distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput


def topic_distances(topics: ArrayLike) -> NDArray[np.float64]:
    """Return the (k, k) Jensen-Shannon distances between topics.

    `topics` is (n, k), with a distribution over words in each column. A distance is the square root
    of the Jensen-Shannon divergence in bits. It is a metric: 0 for equal topics, and 1 for topics
    without a common word.

    Examples
    --------
    >>> topic_distances([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    columns = np.asarray(topics, dtype=np.float64)
    if columns.ndim != 2:
        raise InvalidInput(f"topics must be (n, k), got {columns.shape}")
    entropies = _entropies(columns)
    distances = np.zeros((columns.shape[1],) * 2)
    for topic in range(columns.shape[1]):
        middle = (columns + columns[:, topic, None]) / 2
        mixed = _entropies(middle)
        divergence = (mixed - (entropies + entropies[topic]) / 2) / np.log(2)
        distances[topic] = np.sqrt(np.clip(divergence, 0.0, 1.0))
    np.fill_diagonal(distances, 0.0)
    return (distances + distances.T) / 2


def _entropies(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k,) entropies of the topics in nats; words of probability 0 add nothing."""
    logarithms = np.log(columns, where=columns > 0, out=np.zeros_like(columns))
    return np.asarray(-(columns * logarithms).sum(axis=0))


def classical_scaling(distances: ArrayLike) -> NDArray[np.float64]:
    """Return (k, 2) coordinates whose Euclidean distances approximate the given distances.

    The (k, k) distances are symmetric and at least 0. The method is classical multidimensional
    scaling, by the leading eigenvectors of the doubly centred squares of the distances. Coordinates
    are centred on 0, and the first axis is the one along which they vary most. On each axis, the
    coordinate of largest size is positive, so that the maps of two similar fits are not mirror
    images. If one axis suffices, the coordinates on the other are 0.

    Examples
    --------
    >>> line = classical_scaling([[0, 3, 5], [3, 0, 2], [5, 2, 0]])
    >>> abs(line[0, 0] - line[2, 0]).round(6), abs(line[:, 1]).max().round(6)
    (np.float64(5.0), np.float64(0.0))
    """
    given = np.asarray(distances, dtype=np.float64)
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InvalidInput(f"distances must be (k, k), got {given.shape}")
    places = np.zeros((given.shape[0], 2))
    if not given.size:
        return places
    squares = given**2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    taken = min(2, values.size)
    leading, axes = values[::-1][:taken], vectors[:, ::-1][:, :taken]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(taken)] < 0, -1.0, 1.0)
    places[:, :taken] = axes * np.sqrt(np.clip(leading, 0.0, None))
    return places
