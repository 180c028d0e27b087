"""Chow-Liu: fit the most likely tree that has no hidden nodes, to compare it with latent trees."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree, directed
from streaming_moments.models.latent_trees.pair_tables import PairTables


def chow_liu(tables: PairTables, smoothing: float, own_rows: float = 0.0) -> DirectedTree:
    """Fit the tree of V columns with the largest mutual information (Chow, Liu 1968).

    `smoothing` and `own_rows` change its probability tables as in `along`.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.tables.columns import TableColumns
    >>> table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
    >>> counts = np.array([[0, 0, 3, 1], [0, 0, 1, 3], [3, 1, 0, 0], [1, 3, 0, 0]])
    >>> chow_liu(PairTables(table, counts, np.full(4, 4)), 0.0).tables[1]
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    order, parents = directed(_spanning_tree(tables.information()), 0)
    return along(tables, order, parents, smoothing, own_rows)


def along(
    tables: PairTables,
    order: Sequence[int],
    parents: Sequence[int],
    smoothing: float,
    own_rows: float,
) -> DirectedTree:
    """Fit the probability tables of a tree of columns, given the order and parents of the columns.

    Each conditional distribution of a column is smoothed by the column's marginal distribution in
    two steps. First, it gets `own_rows` more rows, distributed as the marginal; this matters if few
    rows have the value of the parent. Then the marginal is mixed in with the share `smoothing`.
    """
    made = []
    for column, parent in zip(order, parents, strict=True):
        own = tables.marginal(column)
        if parent < 0:
            made.append(own[None, :])
            continue
        above = order[parent]
        joint = tables.joint(above, column) * tables.rows(above, column) + own_rows * own
        total = joint.sum(axis=1, keepdims=True)
        given = np.where(total > 0, joint / np.where(total > 0, total, 1.0), own)
        made.append((1 - smoothing) * given + smoothing * own)
    return DirectedTree(tuple(parents), tuple(order), tuple(made))


def _spanning_tree(worth: NDArray[np.float64]) -> list[list[int]]:
    """Return the neighbours of each node in the spanning tree with the largest sum of `worth`.

    The algorithm is that of Prim (1957).
    """
    V = len(worth)
    found: list[list[int]] = [[] for _ in range(V)]
    best, via = worth[0].copy(), np.zeros(V, dtype=np.int64)
    best[0] = -np.inf
    for _ in range(V - 1):
        node = int(best.argmax())
        found[node].append(int(via[node]))
        found[int(via[node])].append(node)
        best[node] = -np.inf
        better = (worth[node] > best) & np.isfinite(best)
        best[better], via[better] = worth[node][better], node
    return found
