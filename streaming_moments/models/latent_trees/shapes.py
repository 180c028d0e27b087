"""Shapes: fit trees of several kinds to the same pairs and triples of columns; choose the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.halves import HeldOut, likely
from streaming_moments.models.latent_trees.bars import half_trees, order_like
from streaming_moments.models.latent_trees.chow_liu import along, chow_liu
from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.latent_classes import latent_classes
from streaming_moments.models.latent_trees.pair_tables import (
    PairTables,
    length_of,
    require_states,
)
from streaming_moments.models.latent_trees.parameters import (
    Triple,
    around_nodes,
    counts_around,
    hidden_states,
    tree_of,
)
from streaming_moments.models.latent_trees.structure import Structure
from streaming_moments.models.latent_trees.triple_rounds import OWN_ROWS, likelier
from streaming_moments.models.latent_trees.triples import Triples

AUTO = "auto"


Counts = Mapping[Triple, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Measured:
    """Counts to which trees of all shapes are fitted.

    tables, counts : counts of pairs of columns, and of those triples of columns that were read
    dependence : tree of the columns alone, fitted to the pairs by Chow and Liu's method
    latent, mixed : structure in which all inner nodes are hidden, and structure in which columns
        take the place of some hidden nodes
    rings, nearest : triples of columns to fit latent classes, and triples to score all shapes
    halves : counts of pairs and triples in each half of the rows; empty if there are no halves
    """

    tables: PairTables
    counts: Counts
    dependence: DirectedTree
    latent: Structure
    mixed: Structure
    rings: Sequence[Triple]
    nearest: Sequence[Triple]
    halves: tuple[tuple[PairTables, Counts], ...]


@dataclass(frozen=True, eq=False)
class Shaped:
    """Fitted tree of one shape.

    structure, order : as in `LatentTree`
    tree : the tree fitted to all rows
    halves : trees fitted to each half of the rows, for held-out scores; empty if there are none
    alike : trees fitted to each half, with the same nodes and edges as `tree`, for error bars
    """

    structure: Structure
    order: tuple[int, ...]
    tree: DirectedTree
    halves: tuple[DirectedTree, ...]
    alike: tuple[DirectedTree, ...]

    def held_out(self, measured: Measured) -> HeldOut | None:
        """Score the tree of each half by how well it predicts columns in the other half."""
        if not self.halves:
            return None
        even, odd = (Triples.of(measured.nearest, counts) for _, counts in measured.halves)
        return HeldOut(even.mean_log(self.halves[1]), odd.mean_log(self.halves[0]))


def _with_hidden(measured: Measured, structure: Structure, options: Any) -> Shaped:
    """Fit a tree with hidden nodes, each by the moments of the columns around it."""
    if structure.hidden:
        require_states(measured.tables.table, options.topics)
    by_node, smoothing = around_nodes(structure, measured.counts), options.smoothing
    known = hidden_states(structure, measured.tables, by_node, options.topics)
    tree, order = tree_of(structure, measured.tables, known, smoothing)
    tree = likelier(tree, counts_around(structure, measured.counts))
    halves = half_trees(structure, measured.halves, known, smoothing)
    return Shaped(structure, order, tree, halves, halves)


def _latent_tree(measured: Measured, options: Any) -> Shaped:
    return _with_hidden(measured, measured.latent, options)


def _mixed_tree(measured: Measured, options: Any) -> Shaped:
    if measured.mixed == measured.latent and options.shape == AUTO:
        raise NotIdentifiable("no column is near enough to a hidden node to take its place")
    return _with_hidden(measured, measured.mixed, options)


def _chow_liu(measured: Measured, options: Any) -> Shaped:
    """Fit a tree of the columns themselves, without hidden nodes.

    Two trees are fitted to each half of the rows. For held-out scores, the edges are also chosen
    from the half. For error bars, the edges are those of the tree of all rows.
    """
    tree = measured.dependence
    both, smoothing = [half for half, _ in measured.halves], options.smoothing
    halves = tuple(chow_liu(half, smoothing, OWN_ROWS) for half in both)
    alike = (along(half, tree.columns, tree.parents, smoothing, OWN_ROWS) for half in both)
    return Shaped(structure_of(tree, tree.columns), tree.columns, tree, halves, tuple(alike))


def _latent_classes(measured: Measured, options: Any) -> Shaped:
    """Fit a tree in which one hidden node is the parent of all columns.

    The classes of a fit to half of the rows are put in the order of those of all rows.
    """
    every = (measured.tables, measured.counts), *measured.halves
    tree, *own = (
        latent_classes(tables, Triples.of(measured.rings, counts), options.topics, options.seed)
        for tables, counts in every
    )
    halves = tuple(_numbered_like(half, tree) for half in own)
    V = measured.tables.table.number
    order = (V, *range(V))
    return Shaped(structure_of(tree, order), order, tree, halves, halves)


SHAPES: Mapping[str, Callable[[Measured, Any], Shaped]] = MappingProxyType(
    {
        "latent_tree": _latent_tree,
        "chow_liu": _chow_liu,
        "mixed_tree": _mixed_tree,
        "latent_classes": _latent_classes,
    }
)


def fitted_shapes(measured: Measured, options: Any) -> dict[str, Shaped]:
    """Fit trees of the requested shape, or of all shapes that can be fitted.

    Raises NotIdentifiable if no shape can be fitted.
    """
    found: dict[str, Shaped] = {}
    refused: list[NotIdentifiable] = []
    for name in SHAPES if options.shape == AUTO else (options.shape,):
        try:
            found[name] = SHAPES[name](measured, options)
        except NotIdentifiable as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return found


def taken_of(held_out: Mapping[str, HeldOut], found: Mapping[str, Shaped]) -> str:
    """Return the first shape whose held-out score is within the noise of the best score.

    Without halves, it is the first shape that could be fitted.
    """
    if not held_out:
        return next(iter(found))
    return [*held_out][likely([*held_out.values()])[0]]


def structure_of(tree: DirectedTree, order: tuple[int, ...]) -> Structure:
    """Return a tree without directions; the length of an edge is the distance of its two nodes."""
    edges = []
    marginals = tree.marginals()
    for place, parent in enumerate(tree.parents):
        if parent >= 0:
            joint = marginals[parent][:, None] * tree.tables[place]
            low, high = sorted((order[parent], order[place]))
            edges.append((low, high, length_of(joint)))
    return Structure(len(tree.node_of), tuple(sorted(edges)))


def _numbered_like(found: DirectedTree, whole: DirectedTree) -> DirectedTree:
    """Put the classes of `found` in the order in which they are nearest to those of `whole`."""
    own, other = (np.hstack(one.tables[1:]).T for one in (found, whole))
    order = order_like(own, other)
    leaves = (table[order] for table in found.tables[1:])
    return DirectedTree(found.parents, found.columns, (found.tables[0][:, order], *leaves))
