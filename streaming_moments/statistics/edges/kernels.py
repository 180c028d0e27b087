"""Numba kernels of edges: sums over the neighbours of each node."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel


@kernel()
def add_sketches(
    nodes: NDArray[np.int32],
    others: NDArray[np.int32],
    even: NDArray[np.bool_],
    sketch: NDArray[np.int8],
    index: int,
    step: int,
    sums: NDArray[np.int64],
    even_sums: NDArray[np.int64],
) -> None:
    """For every end a of an edge, add `[1, Q_a]` to the row of the node at the other end.

    Rows outside the block are skipped. Edges of the even half are also added to `even_sums`, unless
    that has no rows. `sketch` (core + 1, 1 + s) has a row for each core node, and a last row for
    all nodes outside the core.
    """
    width, core = sketch.shape[1], sketch.shape[0] - 1
    halves = even_sums.shape[0] > 0
    for end in range(nodes.size):
        if nodes[end] % step != index:
            continue
        row, own = nodes[end] // step, min(others[end], core)
        for column in range(width):
            sums[row, column] += sketch[own, column]
        if halves and even[end]:
            for column in range(width):
                even_sums[row, column] += sketch[own, column]


@kernel()
def add_neighbours(
    nodes: NDArray[np.int32],
    others: NDArray[np.int32],
    even: NDArray[np.bool_],
    index: int,
    step: int,
    sums: NDArray[np.int64],
    even_sums: NDArray[np.int64],
) -> None:
    """For each end of an edge, add 1 to the degree of its node, and to the entry for its neighbour.

    Rows outside the block and edges of the even half are handled as in `add_sketches`.
    """
    halves = even_sums.shape[0] > 0
    for end in range(nodes.size):
        if nodes[end] % step != index:
            continue
        row, column = nodes[end] // step, 1 + others[end]
        sums[row, 0] += 1
        sums[row, column] += 1
        if halves and even[end]:
            even_sums[row, 0] += 1
            even_sums[row, column] += 1
