"""Grid: integers to which vectors are rounded before they are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.read_only import read_only
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.vectors import kernels

# Largest radius of a grid, in steps, so that coordinates and their products fit in their integers.
LARGEST_RADIUS = 1 << 14
SUM_BITS = 50
"""Sums of products with rows of the grid have at most this many bits, so that float64 is exact."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Rounding of coordinates: `x = rint((row - offset) / step)`, clipped to a ball.

    Parameters
    ----------
    offset : (d,) float64
        Row that becomes zero.
    step : float
        Distance between grid points, in the unit of the rows.
    radius : int
        Radius of the ball in steps, 1 to 16,384. Rows farther from the offset are clipped to it.
    whole : bool
        Whether all values are on the grid, so that there is no rounding noise.

    Raises
    ------
    InvalidInput
        The offset is not d finite numbers, or step or radius are out of range.

    Examples
    --------
    >>> grid = Grid(np.array([1.0, 0.0]), step=0.5, radius=10)
    >>> grid.quantised(np.array([[2.0, -0.3], [1.0, 50.0]]))[0]
    array([[ 2, -1],
           [ 0, 10]], dtype=int16)
    """

    offset: NDArray[np.float64]
    step: float
    radius: int
    whole: bool = False

    __repr__ = short_repr

    def __post_init__(self) -> None:
        shape, kind = self.offset.shape, self.offset.dtype
        if len(shape) != 1 or not shape[0] or kind != np.float64:
            raise InvalidInput(f"an offset is (d,) numbers of float64, got {shape} of {kind}")
        if not np.isfinite(self.offset).all():
            raise InvalidInput("the offset has NaN or infinite numbers; give only finite numbers")
        if not 0 < self.step < np.inf or not 1 <= self.radius <= LARGEST_RADIUS:
            raise InvalidInput(
                f"step {self.step} and radius {self.radius}: the step must be above 0, and the "
                f"radius 1 to {LARGEST_RADIUS} steps"
            )
        self.offset.setflags(write=False)

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a row."""
        return int(self.offset.size)

    def quantised(self, values: NDArray[Any]) -> tuple[NDArray[np.int16], NDArray[np.int64], int]:
        """Round rows to the grid; return (N, d) rows, (N,) squared norms, and the number clipped.

        Parameters
        ----------
        values : (N, d)
            Finite numbers of any type. float16 to float64 and integers of up to 32 bits are exact;
            other types are converted to float64.
        """
        exact = values.dtype.kind == "f" and values.dtype.itemsize <= 4
        exact |= values.dtype.kind in "biu" and values.dtype.itemsize <= 2
        given = np.ascontiguousarray(values, dtype=np.float32 if exact else np.float64)
        rows = np.empty(given.shape, dtype=np.int16)
        norms = np.empty(len(given), dtype=np.int64)
        clipped = kernels.quantise(
            read_only(given), read_only(self.offset), self.step, self.radius, rows, norms
        )
        return rows, norms, int(clipped)

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert (..., d) points, on the grid or between its points, to the unit of the rows."""
        found: NDArray[np.float64] = self.offset + self.step * points
        return found


def rounded_for_sums(numbers: NDArray[np.float64], largest: float) -> NDArray[np.float64]:
    """Round numbers so that the sums of their products with whole numbers are exact.

    `largest` is an upper bound of such sums, whatever the order of their terms.

    Examples
    --------
    >>> rounded_for_sums(np.array([1 / 3]), 2.0**47)
    array([0.25])
    """
    bits = SUM_BITS - int(np.frexp(max(largest, 1e-300))[1])
    return np.asarray(np.ldexp(np.rint(np.ldexp(numbers, bits)), -bits))
