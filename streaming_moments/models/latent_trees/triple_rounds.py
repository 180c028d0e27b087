"""Triple rounds: expectation maximisation of a tree, from counts of triples of columns only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.parameters import Triple

ROUNDS = 20
OWN_ROWS = 1.0
"""Number of rows, with a node's marginal distribution, that are added to each row of its table."""


def likelier(tree: DirectedTree, counts: Mapping[Triple, NDArray[np.float64]]) -> DirectedTree:
    """Improve a tree by 20 rounds of expectation maximisation over counts of triples of columns."""
    if not counts:
        return tree
    rows, weights = as_rows(counts, len(tree.node_of))
    # each row of the table counts once in every triple of columns: divide by the mean number of
    # triples that contain a column
    weights = weights * len(tree.node_of) / (3 * len(counts))
    for _ in range(ROUNDS):
        tree = with_tables(tree, tree.expected(rows, weights))
    return tree


def with_tables(tree: DirectedTree, sums: tuple[NDArray[np.float64], ...]) -> DirectedTree:
    """Return the tree that makes the expected counts `sums` most likely.

    For each state of the parent, `OWN_ROWS` rows with the marginal distribution of the node are
    added. If no rows are expected in a state of the parent, its probabilities stay the same. In the
    marginal distribution, `OWN_ROWS` rows are spread over all states, so that no probability is 0.
    """
    made = []
    for cells, before in zip(sums, tree.tables, strict=True):
        rows, own = cells.sum(axis=1, keepdims=True), cells.sum(axis=0)
        own = (own + OWN_ROWS / own.size) / (own.sum() + OWN_ROWS)
        made.append(np.where(rows > 0, (cells + OWN_ROWS * own) / (rows + OWN_ROWS), before))
    return DirectedTree(tree.parents, tree.columns, tuple(made))


def as_rows(
    counts: Mapping[Triple, NDArray[np.float64]], n_columns: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a row for each combination of three values, and how often it was counted.

    Examples
    --------
    >>> as_rows({(0, 2, 3): np.array([[[0.0, 5.0]]])}, 4)
    (array([[ 0, -1,  0,  1]]), array([5.]))
    """
    rows, weights = [], []
    for views, cells in counts.items():
        values = np.nonzero(cells)
        own = np.full((values[0].size, n_columns), -1, dtype=np.int64)
        own[:, views] = np.stack(values, axis=1)
        rows.append(own)
        weights.append(cells[values])
    return np.vstack(rows), np.concatenate(weights)
