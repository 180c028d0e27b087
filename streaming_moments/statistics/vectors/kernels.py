"""Numba kernel of vectors: rounds numeric rows to rows of the grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

# Largest number whose positive and negative values both fit in int16.
LARGEST = 32_767


@kernel(error_model="numpy")
def quantise(
    values: NDArray[Any],
    offset: NDArray[np.float64],
    step: float,
    radius: int,
    rows: NDArray[np.int16],
    norms: NDArray[np.int64],
) -> int:
    """Write `rint((values - offset) / step)`, clipped to the radius, and the squared norms.

    Division and rounding follow IEEE 754, so that a row has the same integers on all machines. A
    row x beyond the radius becomes `(2 x radius + r) // (2 r)`, where `r = isqrt(x.x)`. Returns the
    number of rows that were clipped in this way.
    """
    clipped = 0
    scaled = np.empty(values.shape[1], dtype=np.int32)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            place = np.rint((np.float64(values[i, j]) - offset[j]) / step)
            scaled[j] = np.int32(min(max(place, -32767.0), 32767.0))
        norm = np.int64(0)
        for j in range(values.shape[1]):
            norm += np.int64(scaled[j]) * np.int64(scaled[j])
        if norm >= (radius + 1) * (radius + 1):
            clipped += 1
            # correct the root, which is too large if float64 has rounded it up
            root = np.int64(np.sqrt(np.float64(norm)))
            while root * root > norm:
                root -= 1
            while (root + 1) * (root + 1) <= norm:
                root += 1
            norm = np.int64(0)
            for j in range(values.shape[1]):
                drawn = (2 * np.int64(scaled[j]) * radius + root) // (2 * root)
                scaled[j] = np.int32(drawn)
                norm += drawn * drawn
        for j in range(values.shape[1]):
            rows[i, j] = np.int16(scaled[j])
        norms[i] = norm
    return clipped
