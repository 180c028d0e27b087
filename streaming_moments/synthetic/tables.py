"""Tables drawn from known latent trees, to measure how well fits recover these trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree, directed
from streaming_moments.models.latent_trees.structure import Structure
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.synthetic.checks import drawn


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """Rows of a table, and the latent tree from which they were drawn.

    Parameters
    ----------
    table : TableColumns
        The V columns.
    codes : (rows, V) int64
        Category of each row in each column, -1 where it is missing.
    structure : Structure
        The tree; all its edges have length 1.
    tree : DirectedTree
        The same tree with its tables of probabilities.
    """

    table: TableColumns
    codes: NDArray[np.int64]
    structure: Structure
    tree: DirectedTree

    __repr__ = short_repr


@drawn
def latent_tree_table(
    n_rows: int,
    n_columns: int = 15,
    n_states: int = 3,
    n_categories: int = 4,
    strength: float = 0.8,
    missing: float = 0.0,
    seed: int = 0,
) -> SyntheticTable:
    """Draw a random tree whose hidden nodes have three edges each, and rows from it.

    Along an edge, a state stays the same with probability `strength`; otherwise it becomes a random
    state. The distribution of a column in a state is a Dirichlet draw around one category.

    Parameters
    ----------
    n_rows, n_columns, n_states, n_categories : int
        Numbers of rows, columns, states and categories. There must be at least 3 columns, and at
        least as many categories as states.
    strength : float
        Probability, from 0 to 1, that a state stays the same along an edge.
    missing : float
        Share of the values that are missing, at random.
    seed : int
        Seed of all random numbers.

    Examples
    --------
    >>> drawn = latent_tree_table(10, n_columns=5)
    >>> drawn.codes.shape, len(drawn.structure.hidden)
    ((10, 5), 3)
    """
    rng = np.random.default_rng(seed)
    structure = _random_tree(n_columns, rng)
    root = structure.hidden[0]
    neighbours = [list(structure.neighbours[node]) for node in range(len(structure.neighbours))]
    order, parents = directed(neighbours, root)
    tables = [rng.dirichlet(np.full(n_states, 10.0))[None, :]]
    for node in order[1:]:
        if node >= n_columns:
            turned = rng.dirichlet(np.ones(n_states), size=n_states)
            tables.append(strength * np.eye(n_states) + (1 - strength) * turned)
            continue
        own = np.full((n_states, n_categories), 0.5)
        own[np.arange(n_states), rng.permutation(n_categories)[:n_states]] = 8.0
        tables.append(np.stack([rng.dirichlet(concentration) for concentration in own]))
    columns = tuple(node if node < n_columns else -1 for node in order)
    tree = DirectedTree(parents, columns, tuple(tables))
    codes = tree.sample(n_rows, rng)[:, tree.node_of]
    codes[rng.random(codes.shape) < missing] = -1
    names = tuple(f"c{column}" for column in range(n_columns))
    values = tuple(str(value) for value in range(n_categories))
    return SyntheticTable(TableColumns(names, (values,) * n_columns), codes, structure, tree)


def _random_tree(n_columns: int, rng: np.random.Generator) -> Structure:
    """Grow a random tree: attach one column after another to a random edge of the tree."""
    hidden = n_columns
    edges = [(0, hidden), (1, hidden), (2, hidden)]
    for column in range(3, n_columns):
        hidden += 1
        one, other = edges.pop(int(rng.integers(len(edges))))
        edges += [(one, hidden), (other, hidden), (column, hidden)]
    return Structure(n_columns, tuple((one, other, 1.0) for one, other in sorted(edges)))
