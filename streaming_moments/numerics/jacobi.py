"""Numba kernel of the joint diagonalisation by Jacobi rotations."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def diagonalize_jointly(
    matrices: NDArray[np.float64], rotation: NDArray[np.float64], tolerance: float, max_sweeps: int
) -> int:
    """Jacobi rotations that make all symmetric matrices as diagonal as one rotation can.

    `matrices` (m, k, k) become `rotation' M rotation`, `rotation` (k, k) is multiplied from the
    right; returns the sweeps used. Each angle is the closed form of Cardoso and Souloumiac,
    "Jacobi angles for simultaneous diagonalization", SIAM J. Matrix Anal. Appl. 17 (1996).
    """
    k, number = rotation.shape[0], matrices.shape[0]
    # the same entry of all matrices side by side: each loop runs over neighbours
    entries = np.empty((k, k, number))
    for row in range(k):
        for column in range(k):
            for matrix in range(number):
                entries[row, column, matrix] = matrices[matrix, row, column]
    sweeps = max_sweeps
    for sweep in range(max_sweeps):
        largest = 0.0
        for p in range(k - 1):
            for q in range(p + 1, k):
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
    for row in range(k):
        for column in range(k):
            for matrix in range(number):
                matrices[matrix, row, column] = entries[row, column, matrix]
    return sweeps
