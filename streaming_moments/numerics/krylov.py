"""Leading eigenpairs of a large symmetric matrix, from products with blocks of vectors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# a new direction shorter than this share of the largest eigenvalue is a rounding error
_NEGLIGIBLE = 1e-10


def leading_eigenpairs(
    product: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    tolerance: float,
    most_blocks: int,
    settled: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the largest eigenvalues and their vectors in the Krylov space of a block of vectors.

    The method is block Lanczos with full orthogonalisation (Golub and Van Loan, Matrix
    Computations, 4th ed., section 10.3.6). It multiplies k vectors at a time. This takes about as
    long as one vector, because most of the time goes to reading a large matrix from memory.

    Returns (k,) decreasing eigenvalues, and (n, k) orthonormal vectors.

    product : multiplies an (n, m) float64 array by the symmetric matrix
    start : (n, k) float64, orthonormal start vectors; better ones need fewer blocks
    tolerance : the search stops if one more block increases none of the `settled` largest
        eigenvalues by more than this share
    most_blocks : largest number of products with a block of vectors, including the first
    settled : number of leading eigenvalues that must converge; by default all k

    Examples
    --------
    >>> matrix = np.diag([3.0, 2.0, 1.0])
    >>> start = np.linalg.qr(np.ones((3, 1)))[0]
    >>> values, _ = leading_eigenpairs(lambda block: matrix @ block, start, 1e-9, 3)
    >>> values.round(6)
    array([3.])
    """
    n, number = start.shape
    most = min(most_blocks, n // number)
    # column-major order: columns that are never used take no memory, and nothing is copied
    held = np.empty((n, most * number), order="F")
    space, block = held[:, :0], start
    projected = np.empty((0, 0))
    values: NDArray[np.float64] = np.full(number, -np.inf)
    for blocks in range(1, most + 1):
        images = product(block)
        inner, own = space.T @ images, block.T @ images
        projected = np.block([[projected, inner], [inner.T, (own + own.T) / 2]])
        held[:, space.shape[1] : len(projected)] = block
        space = held[:, : len(projected)]
        before = values
        values = np.linalg.eigvalsh(projected).astype(np.float64)[::-1][:number]
        settling = (values - before)[:settled] <= tolerance * values[:settled]
        if blocks == most or np.all(settling):
            break
        # keep only new directions larger than rounding errors; others would not be orthogonal to
        # `space`
        rest = images - space @ np.vstack([inner, own])
        left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
        left = left[:, sizes > _NEGLIGIBLE * values[0]]
        if not left.size:
            break
        block = np.linalg.qr(left - space @ (space.T @ left))[0].astype(np.float64)
    values, mixes = np.linalg.eigh(projected)
    vectors: NDArray[np.float64] = space @ mixes[:, ::-1][:, :number]
    return values[::-1][:number].copy(), vectors
