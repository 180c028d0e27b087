"""Numba kernel that diagonalises several matrices jointly, by Jacobi rotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

_ONE = np.uint64(1)


def diagonalize_jointly(
    matrices: NDArray[np.float64], rotation: NDArray[np.float64], tolerance: float, max_sweeps: int
) -> int:
    """Find one rotation that makes all symmetric matrices nearly diagonal, by Jacobi rotations.

    `matrices` (m, k, k) become `rotation' M rotation` in place, and `rotation` (k, k) is multiplied
    from the right. Returns the number of sweeps over all pairs of axes. The angle of each rotation
    is the closed form of Cardoso and Souloumiac, "Jacobi angles for simultaneous diagonalization",
    SIAM J. Matrix Anal. Appl. 17 (1996).
    """
    # put the same entry of all matrices side by side, so that inner loops read memory in order
    entries = np.ascontiguousarray(matrices.transpose(1, 2, 0))
    sweeps = _rotate(entries, rotation, tolerance, max_sweeps)
    matrices[...] = entries.transpose(2, 0, 1)
    return int(sweeps)


@kernel()
def _rotate(
    entries: NDArray[np.float64], rotation: NDArray[np.float64], tolerance: float, max_sweeps: int
) -> int:
    # use unsigned indices, for which Numba need not check whether they are negative
    k, number = np.uint64(rotation.shape[0]), np.uint64(entries.shape[2])
    sweeps = max_sweeps
    for sweep in range(max_sweeps):
        largest = 0.0
        for p in range(k):
            for q in range(p + _ONE, k):
                on = 0.0
                off = 0.0
                for matrix in range(number):
                    difference = entries[p, p, matrix] - entries[q, q, matrix]
                    coupling = 2 * entries[p, q, matrix]
                    on += difference * difference - coupling * coupling
                    off += 2 * difference * coupling
                angle = 0.5 * np.arctan2(off, on + np.sqrt(on * on + off * off))
                largest = max(largest, abs(angle))
                if abs(angle) <= tolerance:
                    continue
                c = np.cos(angle)
                s = np.sin(angle)
                for row in range(k):
                    for matrix in range(number):
                        a = entries[row, p, matrix]
                        b = entries[row, q, matrix]
                        entries[row, p, matrix] = c * a + s * b
                        entries[row, q, matrix] = c * b - s * a
                for column in range(k):
                    for matrix in range(number):
                        a = entries[p, column, matrix]
                        b = entries[q, column, matrix]
                        entries[p, column, matrix] = c * a + s * b
                        entries[q, column, matrix] = c * b - s * a
                for row in range(k):
                    a = rotation[row, p]
                    b = rotation[row, q]
                    rotation[row, p] = c * a + s * b
                    rotation[row, q] = c * b - s * a
        if largest <= tolerance:
            sweeps = sweep + 1
            break
    return sweeps
