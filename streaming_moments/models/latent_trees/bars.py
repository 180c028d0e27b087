"""Bars: error bars of the tables and scores of a latent tree, from fits to two halves of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.parameters import (
    NodeStates,
    Triple,
    around_nodes,
    counts_around,
    hidden_states,
    tree_of,
)
from streaming_moments.models.latent_trees.structure import Structure
from streaming_moments.models.latent_trees.triple_rounds import likelier
from streaming_moments.numerics.lazy_scipy import optimize


@dataclass(frozen=True, eq=False)
class TreeBars:
    """Error bars: half the difference between fits to the two halves of the rows.

    tables : (states of the parent, states) float64 for each node, standard errors of its
        probabilities given the state of its parent
    scores : standard error of each value of `LatentTree.scores`, by its name, and of
        `LatentTree.behind`
    """

    tables: tuple[NDArray[np.float64], ...]
    scores: Mapping[str, float]


def half_trees(
    structure: Structure,
    halves: Sequence[tuple[PairTables, Mapping[Triple, NDArray[np.float64]]]],
    known: Mapping[int, NodeStates],
    smoothing: float,
) -> tuple[DirectedTree, ...]:
    """Fit a tree to pairs and triples of each half of the rows; return () if a half is too small.

    structure : tree of all rows
    known : states of the hidden nodes, found from all rows; the states found from a half are put in
        the same order
    """
    states = max((one.weights.size for one in known.values()), default=0)
    found = []
    for tables, counts in halves:
        try:
            told = hidden_states(structure, tables, around_nodes(structure, counts), states)
        except NotIdentifiable:
            return ()
        alike = {node: _numbered_like(one, known[node]) for node, one in told.items()}
        tree, _ = tree_of(structure, tables, alike, smoothing)
        found.append(likelier(tree, counts_around(structure, counts)))
    return tuple(found)


def table_bars(
    halves: Sequence[DirectedTree], whole: DirectedTree
) -> tuple[NDArray[np.float64], ...] | None:
    """Return error bars of the tables of a tree; None if the tree of a half has fewer states."""
    shapes = [[table.shape for table in one.tables] for one in (*halves, whole)]
    if len(shapes) < 3 or any(one != shapes[-1] for one in shapes):
        return None
    one, other = (tree.tables for tree in halves)
    return tuple(np.abs(x - y) / 2 for x, y in zip(one, other, strict=True))


def score_bars(
    scores: tuple[Mapping[str, float], Mapping[str, float]], shape: str = "latent_tree"
) -> dict[str, float]:
    """Return error bars of the scores of trees of all rows, given their scores on each half.

    Examples
    --------
    >>> even = {"latent_tree": -1.0, "chow_liu": -1.5}
    >>> score_bars((even, {"latent_tree": -1.5, "chow_liu": -1.75}))
    {'latent_tree': 0.25, 'chow_liu': 0.125, 'behind': 0.125}
    """
    even, odd = scores
    found = {name: abs(even[name] - odd[name]) / 2 for name in even}
    behind = [one["chow_liu"] - one[shape] for one in scores]
    return {**found, "behind": abs(behind[0] - behind[1]) / 2}


def _numbered_like(found: NodeStates, whole: NodeStates) -> NodeStates:
    """Put the states of a hidden node in the order in which they are nearest to those of all rows.

    `found` is returned as it is if its number of states is another.
    """
    if found.weights.size != whole.weights.size:
        return found
    leaves = sorted(whole.given)
    own, other = (np.vstack([one.given[leaf] for leaf in leaves]) for one in (found, whole))
    order = order_like(own, other)
    given = {leaf: columns[:, order] for leaf, columns in found.given.items()}
    return replace(found, weights=found.weights[order], given=given)


def order_like(found: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order in which the columns of `found` are nearest to those of `whole`."""
    apart = np.abs(found[:, None, :] - whole[:, :, None]).sum(axis=0)
    return np.asarray(optimize.linear_sum_assignment(apart)[1], dtype=np.int64)
