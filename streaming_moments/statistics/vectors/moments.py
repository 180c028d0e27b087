"""VectorMoments: central moments of vectors from their exact sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.packing import tensor_places, unpack
from streaming_moments.numerics.symmetric import three_orders
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.vectors.statistics import (
    FIRST,
    FOURTH,
    NORMS,
    SECOND,
    SKETCHED_FIRST,
    SKETCHED_SECOND,
    SQUARES,
    THIRD,
    VectorStatistics,
)

# Variance that rounding to the grid adds to a coordinate, in squared steps of the grid. It is
# approximate for coordinates with a small spread.
_ROUNDING = 1 / 12
_LEAST_VARIANCE = 1 / 3


@dataclass(frozen=True, eq=False)
class VectorMoments:
    """Central moments of N vectors, in steps of their grid.

    x (d,) is a row of the grid, and m the mean of all rows. y (s,) is the sketch of x, and my the
    mean of all sketches; `y = basis' x` up to rounding.

    Parameters
    ----------
    number : int
        Number of vectors N.
    mean : (d,) float64
        Mean m.
    covariance : (d, d) float64
        `E (x - m)(x - m)'`, minus the rounding noise (1/12 on the diagonal, after Sheppard) unless
        the values are on the grid.
    basis : (d, s) float64
        `Q 2^-shift`.
    sketch_mean : (s,) float64
        Mean of y.
    sketch_covariance : (s, s) float64
        Covariance of y.
    third : (s, s, s) float64
        `E (y - my) (x) (y - my) (x) (y - my)`, which rounding does not change.
    norms : (s,) float64
        `E (y - my) |x - m|^2`.
    grid : Grid
        Its `values` converts points back to the unit of the rows.
    squares : (d, d) float64, optional
        `E (x - m)_i (x - m)_h^2` at i, h, if the foundation stores it.
    fourth : (s, s, s, s) float64, optional
        Mean of the fourth outer power of `y - my`, if the foundation stores it.

    Examples
    --------
    >>> from streaming_moments.statistics.vectors.foundation import VectorsFoundation
    >>> from streaming_moments.statistics.vectors.rows import VectorBatch
    >>> grid = Grid(np.zeros(2), step=1.0, radius=100, whole=True)
    >>> sketch = np.eye(2, dtype=np.int8)
    >>> foundation = VectorsFoundation(grid, sketch, np.zeros(2, np.uint8), halves=False)
    >>> rows = np.array([[0, 0], [0, 0], [6, 3]])
    >>> moments = VectorMoments.of(foundation.of_vectors(VectorBatch.of(rows)))
    >>> moments.mean, moments.covariance[0], float(moments.third[0, 0, 1])
    (array([2., 1.]), array([8., 4.]), 8.0)
    """

    number: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    basis: NDArray[np.float64]
    sketch_mean: NDArray[np.float64]
    sketch_covariance: NDArray[np.float64]
    third: NDArray[np.float64]
    norms: NDArray[np.float64]
    grid: Grid
    squares: NDArray[np.float64] | None = None
    fourth: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, statistics: VectorStatistics) -> VectorMoments:
        """Compute the moments from statistics of all rows.

        Raises
        ------
        NotIdentifiable
            There are no vectors.
        InvalidInput
            The statistics cover only some rows.
        """
        foundation, number = statistics.foundation, statistics.totals.n_tokens
        if number < 1:
            raise NotIdentifiable("the statistics hold no vectors; update the store first")
        size, columns = foundation.dimension, foundation.columns

        def mean_of(name: str) -> NDArray[np.float64]:
            return np.asarray(statistics.flat(name) / number)

        mean, second = mean_of(FIRST), unpack(mean_of(SECOND), size)
        spread = second - np.outer(mean, mean)
        own, pairs = mean_of(SKETCHED_FIRST), unpack(mean_of(SKETCHED_SECOND), columns)
        sketched = pairs - np.outer(own, own)
        raw = mean_of(THIRD)[tensor_places(columns, 3)]
        third = raw - three_orders(_outer(own, pairs)) + 2 * _outer(own, own, own)
        norms = mean_of(NORMS) - own * np.trace(second) - 2 * foundation.basis.T @ (spread @ mean)
        squares = fourth = None
        if foundation.squares:
            squares = _central_squares(mean_of(SQUARES).reshape(size, size), second, mean)
        if foundation.fourth:
            quads = mean_of(FOURTH)[tensor_places(columns, 4)]
            fourth = _central_fourth(quads, third, sketched, own)
        covariance = spread
        if not foundation.grid.whole:
            variances = spread.diagonal()
            noise = np.where(variances > _LEAST_VARIANCE, _ROUNDING, 0.0)
            covariance = spread - np.diag(noise)
        return cls(
            number,
            mean,
            covariance,
            foundation.basis,
            own,
            sketched,
            third,
            norms,
            foundation.grid,
            squares,
            fourth,
        )

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a row."""
        return int(self.mean.size)

    @property
    def columns(self) -> int:
        """Number s of columns of the sketch."""
        return int(self.sketch_mean.size)


def _outer(*vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    product: Any = vectors[0]
    for vector in vectors[1:]:
        product = np.multiply.outer(product, vector)
    return np.asarray(product)


def _central_squares(
    raw: NDArray[np.float64], second: NDArray[np.float64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return `E (x - m)_i (x - m)_h^2`, given `E x_i x_h^2`."""
    squares = second.diagonal()
    return np.asarray(
        raw - 2 * second * mean - np.outer(mean, squares) + 2 * np.outer(mean, mean**2)
    )


def _central_fourth(
    raw: NDArray[np.float64],
    third: NDArray[np.float64],
    covariance: NDArray[np.float64],
    mean: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the central fourth moment, from the raw one, the mean and lower central moments."""
    found = raw - _outer(mean, mean, mean, mean)
    for place in range(4):
        found -= np.moveaxis(np.multiply.outer(mean, third), 0, place)
    pair = np.multiply.outer(np.outer(mean, mean), covariance)
    for first in range(4):
        for second in range(first + 1, 4):
            found -= np.moveaxis(pair, (0, 1), (first, second))
    return np.asarray(found)
