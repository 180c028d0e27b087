"""CentralMoments: protocol of the central moments of numeric rows, up to third or fourth order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class CentralMoments(Protocol):
    """Central moments of rows x of d numbers with mean m, and of projections `y = Q'x` (s,).

    The columns of the (d, s) basis Q are the directions of the projections.
    """

    @property
    def number(self) -> int:
        """Number of rows."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """(d,) mean m of the rows."""

    @property
    def covariance(self) -> NDArray[np.float64]:
        """(d, d) covariance C of the rows."""

    @property
    def basis(self) -> NDArray[np.float64]:
        """(d, s) basis Q: the directions of the projections."""

    @property
    def sketch_covariance(self) -> NDArray[np.float64]:
        """(s, s) covariance of the projections y."""

    @property
    def third(self) -> NDArray[np.float64]:
        """(s, s, s) third central moment of the projections y: `E z (x) z (x) z`, `z = y - E y`."""

    @property
    def norms(self) -> NDArray[np.float64]:
        """(s,) mean of `(y - E y) |x - m|^2` over rows x with mean m and projections y."""

    @property
    def squares(self) -> NDArray[np.float64] | None:
        """(d, d) means of `(x - m)_i (x - m)_h^2` over rows x with mean m; None if not known."""

    @property
    def fourth(self) -> NDArray[np.float64] | None:
        """(s, s, s, s) fourth central moment of the projections y; None if not known."""


@dataclass(frozen=True, eq=False)
class GivenMoments:
    """`CentralMoments` of rows in memory, given as arrays.

    Examples
    --------
    >>> moments = GivenMoments.of_rows(np.array([[0.0], [0.0], [3.0]]), np.eye(1))
    >>> moments.mean, moments.covariance, moments.third.ravel()
    (array([1.]), array([[2.]]), array([2.]))
    """

    number: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    basis: NDArray[np.float64]
    sketch_covariance: NDArray[np.float64]
    third: NDArray[np.float64]
    norms: NDArray[np.float64]
    squares: NDArray[np.float64] | None = None
    fourth: NDArray[np.float64] | None = None

    @classmethod
    def of_rows(cls, rows: NDArray[np.float64], basis: NDArray[np.float64]) -> GivenMoments:
        """Compute the moments of (n, d) rows and their projections by a (d, s) basis.

        Holds n s^2 numbers in memory.
        """
        n, s = len(rows), basis.shape[1]
        mean = rows.mean(axis=0)
        x = rows - mean
        y = x @ basis
        pairs = (y[:, :, None] * y[:, None, :]).reshape(n, -1)
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


def crossed(vector: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k, k, k) sum of `v (x) M` over the three places that v can have.

    The matrix M is symmetric.

    Examples
    --------
    >>> crossed(np.array([1.0, 0.0]), np.eye(2))[0, 0, 0]
    np.float64(3.0)
    """
    total = vector[:, None, None] * matrix
    total = total + matrix[:, :, None] * vector
    return np.asarray(total + matrix[:, None, :] * vector[None, :, None])


def contracted(tensor: NDArray[np.float64], *sides: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multiply each index of a tensor by a (s, k) matrix: return `T(A, B, ...)` for sides A, B, ...

    Examples
    --------
    >>> contracted(np.eye(2), np.array([[1.0], [1.0]]), np.array([[2.0], [0.0]]))
    array([[2.]])
    """
    for side in sides:
        # each product moves the first index to the end, so the indices are in order after the last
        # one
        tensor = np.tensordot(tensor, side, axes=(0, 0))
    return tensor
