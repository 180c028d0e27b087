"""Symmetric matrices packed as their upper triangles, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def packed_size(order: int) -> int:
    """Return the number of entries in the upper triangle of an (order, order) matrix.

    Examples
    --------
    >>> packed_size(3)
    6
    """
    return order * (order + 1) // 2


def pack(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pack (..., k, k) symmetric matrices to (..., k (k + 1) / 2) upper triangles.

    Examples
    --------
    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    rows, columns = np.triu_indices(matrices.shape[-1])
    packed: NDArray[np.float64] = matrices[..., rows, columns]
    return packed


def unpack(packed: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Unpack (..., k (k + 1) / 2) upper triangles to (..., k, k) symmetric matrices.

    Examples
    --------
    >>> unpack(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    rows, columns = np.triu_indices(order)
    places = np.empty((order, order), dtype=np.intp)
    places[rows, columns] = places[columns, rows] = np.arange(rows.size)
    full: NDArray[np.float64] = packed[..., places]
    return full


def frobenius_weights(order: int) -> NDArray[np.float64]:
    """Return weights of the k (k + 1) / 2 packed entries: 1 on the diagonal, sqrt 2 off it.

    Packed matrices times these weights have the same inner products as the full matrices.
    """
    rows, columns = np.triu_indices(order)
    return np.where(rows == columns, 1.0, np.sqrt(2.0))


def tensor_places(size: int, order: int) -> NDArray[np.intp]:
    """Return, for each entry of a symmetric tensor, its index among the packed entries.

    The result is (size, ..., size), with `order` axes. The packed entries are those with indices
    `a <= b <= c ...`, in ascending order of these indices.

    Examples
    --------
    >>> tensor_places(2, 3).ravel()
    array([0, 1, 1, 2, 1, 2, 2, 3])
    """
    grid = np.sort(np.indices((size,) * order).reshape(order, -1), axis=0)
    codes = np.ravel_multi_index(tuple(grid), (size,) * order)
    rising = np.zeros(size**order, dtype=bool)
    rising[codes] = True
    places: NDArray[np.intp] = (np.cumsum(rising) - 1)[codes].reshape((size,) * order)
    return places
