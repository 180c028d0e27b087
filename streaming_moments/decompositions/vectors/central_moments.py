"""CentralMoments: what rows of numbers are described by, up to their third or fourth order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class CentralMoments:
    """Central moments of rows x and of their projections `y = Q'x`.

    Parameters
    ----------
    rows : int
        Of which they are.
    mean : (d,) float64
        m = E x.
    covariance : (d, d) float64
        C.
    basis : (d, s) float64
        Q.
    projected : (s, s) float64
        Covariance of y.
    third : (s, s, s) float64
        E (y - E y)^(x)3.
    norms : (s,) float64
        E (y - E y) |x - m|^2.
    squares : (d, d) float64, optional
        E (x_i - m_i) (x_h - m_h)^2.
    fourth : (s, s, s, s) float64, optional
        E (y - E y)^(x)4.

    Examples
    --------
    >>> moments = CentralMoments.of_rows(np.array([[0.0], [0.0], [3.0]]), np.eye(1))
    >>> moments.mean, moments.covariance, moments.third.ravel()
    (array([1.]), array([[2.]]), array([2.]))
    """

    rows: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    basis: NDArray[np.float64]
    projected: NDArray[np.float64]
    third: NDArray[np.float64]
    norms: NDArray[np.float64]
    squares: NDArray[np.float64] | None = None
    fourth: NDArray[np.float64] | None = None

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64], basis: NDArray[np.float64]) -> CentralMoments:
        """All moments of some (n, d) rows, by a (d, s) basis; memory of n s^2 numbers."""
        n = len(rows)
        mean = rows.mean(axis=0)
        x = rows - mean
        y = x @ basis
        pairs = (y[:, :, None] * y[:, None, :]).reshape(n, -1)
        s = basis.shape[1]
        return cls(
            n,
            mean,
            x.T @ x / n,
            basis,
            y.T @ y / n,
            (pairs.T @ y).reshape(s, s, s) / n,
            y.T @ np.square(x).sum(axis=1) / n,
            x.T @ np.square(x) / n,
            (pairs.T @ pairs).reshape(s, s, s, s) / n,
        )

    @property
    def dimensions(self) -> int:
        """Coordinates d of a row."""
        return self.mean.size


def crossed(vector: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, k, k) sum of `v (x) M` over the three places of v, of a symmetric M.

    Examples
    --------
    >>> crossed(np.array([1.0, 0.0]), np.eye(2))[0, 0, 0]
    np.float64(3.0)
    """
    total = vector[:, None, None] * matrix
    total = total + matrix[:, :, None] * vector
    return np.asarray(total + matrix[:, None, :] * vector[None, :, None])


def contracted(tensor: NDArray[np.float64], *sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """`T(A, B, ...)`: each index of T turned by the (s, k) matrix of its place.

    Examples
    --------
    >>> contracted(np.eye(2), np.array([[1.0], [1.0]]), np.array([[2.0], [0.0]]))
    array([[2.]])
    """
    for side in sides:
        # the first index goes last, so that after all of them the order is as it was
        tensor = np.tensordot(tensor, side, axes=(0, 0))
    return tensor
