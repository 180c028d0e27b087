"""Parameters: fit the probability tables of a tree with hidden nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.latent_trees.directed import DirectedTree, directed
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.structure import Structure
from streaming_moments.models.latent_trees.three_views import three_views
from streaming_moments.numerics.simplex import nearest_distributions

Triple = tuple[int, int, int]

# For each hidden node, try at most this many triples of leaves until one separates its states.
_TRIED = 6
_LEAVES_OF_A_SIDE = 2
# An inner edge joins two hidden nodes. It is fitted to pairs of leaves, one from each side of the
# edge; use at most this many leaves of a side.
_ENDS = 4


@dataclass(frozen=True, eq=False)
class NodeStates:
    """Probabilities of the states of a hidden node, and of the categories of columns given them.

    weights : (k,) float64, probability of each state
    given : for each leaf (a column), (c, k) float64: distribution of its c categories in each state
    """

    weights: NDArray[np.float64]
    given: Mapping[int, NDArray[np.float64]]


def views_of(structure: Structure) -> dict[int, tuple[Triple, ...]]:
    """Return the triples of leaves by which to separate the states of each hidden node.

    The leaves of a triple lie beyond three different edges of the node. Triples of the nearest
    leaves come first.
    """
    found = {}
    for node in structure.hidden:
        sides = sorted(
            (side[:_LEAVES_OF_A_SIDE] for side in structure.sides(node)),
            key=lambda side: _length(structure, node, side[0]),
        )
        nearest = (
            [*product(*sides[:3]), *product(*sides[1:4])] if len(sides) > 3 else [*product(*sides)]
        )
        found[node] = tuple((a, b, c) for a, b, c in islice(nearest, _TRIED))
    return found


def counts_around(
    structure: Structure, counts: Mapping[Triple, NDArray[np.float64]]
) -> dict[Triple, NDArray[np.float64]]:
    """Select the counts of those triples that `views_of` returns for any hidden node."""
    return {views: counts[views] for own in views_of(structure).values() for views in own}


def around_nodes(
    structure: Structure, counts: Mapping[Triple, NDArray[np.float64]]
) -> dict[int, dict[Triple, NDArray[np.float64]]]:
    """Return, for each hidden node, the joint probabilities of its triples of `views_of`."""
    return {
        node: {views: counts[views] / max(counts[views].sum(), 1.0) for views in own}
        for node, own in views_of(structure).items()
    }


def node_states(
    structure: Structure,
    node: int,
    tables: PairTables,
    triples: Mapping[Triple, NDArray[np.float64]],
    states: int,
) -> NodeStates:
    """Find the states of a hidden node from three leaves, and the distributions of all leaves.

    `triples` holds the joint probabilities of those triples of leaves that `views_of` gives for the
    node; the first triple that separates the states is used. Raises NotIdentifiable if no three
    leaves separate the states.
    """
    why = ""
    for views, triple in triples.items():
        try:
            columns, weights = three_views(triple, states)
            return _all_given(structure, node, tables, views, columns, weights)
        except NotIdentifiable as error:
            why = why or f"{_named(tables, views)}: {error}"
    raise NotIdentifiable(
        f"columns {why}; ask for fewer states, leave out a column that is independent of the "
        "others, or add rows"
    )


def _all_given(
    structure: Structure,
    node: int,
    tables: PairTables,
    views: Triple,
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NodeStates:
    """Find the distributions of all leaves given the states of a node.

    `weights` w has the probabilities of the states, and `columns` the distributions of the first of
    three leaves, `views`. The distributions O_e of another leaf e solve `P_ea = O_e diag(w) O_a'`,
    where a is each of the views that lies beyond another edge of the node than e.

    Raises NotIdentifiable for a leaf whose values all have probability 0 given a state.
    """
    side_of = {leaf: place for place, side in enumerate(structure.sides(node)) for leaf in side}
    given = {views[0]: columns}

    def solved(leaf: int, by: list[int]) -> NDArray[np.float64]:
        left = np.hstack([tables.joint(leaf, one) for one in by])
        right = np.hstack([(given[one] * weights).T for one in by])
        raw = left @ np.linalg.pinv(right)
        sums = raw.sum(axis=0)
        if not (sums > 0).all():
            raise NotIdentifiable(
                f"one of {weights.size} states gives every value of {tables.table.names[leaf]!r} "
                "probability 0"
            )
        return nearest_distributions(raw / sums)

    for leaf in views[1:]:
        given[leaf] = solved(leaf, [views[0]])
    found = dict(given)
    for leaf, side in side_of.items():
        if leaf != views[0]:
            found[leaf] = solved(leaf, [one for one in views if side_of[one] != side])
    return NodeStates(weights, found)


def transition(
    structure: Structure,
    edge: tuple[int, int],
    states: Mapping[int, NodeStates],
    tables: PairTables,
) -> NDArray[np.float64]:
    """Fit the (k, l) joint distribution J of the states of two adjacent hidden nodes.

    J solves `O_x J O_y' = P_xy` by non-negative least squares, for leaves x on one side of the edge
    and leaves y on the other side. O_x has the distribution of x in each state of the node on its
    side, and P_xy the joint distribution of x and y. J sums to 1.
    """
    from scipy.optimize import nnls

    one, other = edge
    shape = states[one].weights.size, states[other].weights.size
    near, far = structure.beyond(other, one)[:_ENDS], structure.beyond(one, other)[:_ENDS]
    rows, values = [], []
    for x, y in product(near, far):
        rows.append(np.kron(states[one].given[x], states[other].given[y]))
        values.append(tables.joint(x, y).ravel())
    # give the equation "J sums to 1" as much weight as the equations of all pairs of leaves
    # together
    rows.append(np.full((1, shape[0] * shape[1]), float(len(values))))
    values.append(np.array([float(len(values))]))
    found, _ = nnls(np.vstack(rows), np.concatenate(values))
    return np.asarray(found / found.sum()).reshape(shape)


def parametrised(
    structure: Structure,
    tables: PairTables,
    triples: Mapping[int, Mapping[Triple, NDArray[np.float64]]],
    states: int,
    smoothing: float,
) -> tuple[DirectedTree, tuple[int, ...]]:
    """Fit the probability tables of a tree; its root is the hidden node with most neighbours.

    Returns the tree, and for each node of the tree its number in `structure`. Raises
    NotIdentifiable if the states of a hidden node cannot be found.
    """
    known = hidden_states(structure, tables, triples, states)
    return tree_of(structure, tables, known, smoothing)


def hidden_states(
    structure: Structure,
    tables: PairTables,
    triples: Mapping[int, Mapping[Triple, NDArray[np.float64]]],
    states: int,
) -> dict[int, NodeStates]:
    """Find the states of each hidden node.

    A node has `states` states, or fewer if the columns around it do not separate that many. At
    least one node must have all `states`. The arguments and errors are those of `parametrised`.
    """
    found: dict[int, NodeStates] = {}
    refused: dict[int, NotIdentifiable] = {}
    for number in range(states, 1, -1):
        for node in structure.hidden:
            if node in found:
                continue
            try:
                found[node] = node_states(structure, node, tables, triples[node], number)
            except NotIdentifiable as error:
                refused.setdefault(node, error)
        if refused and not found:
            break
    for node in structure.hidden:
        if node not in found:
            raise refused[node]
    return found


def tree_of(
    structure: Structure,
    tables: PairTables,
    known: Mapping[int, NodeStates],
    smoothing: float,
) -> tuple[DirectedTree, tuple[int, ...]]:
    """Make the tree from the known states of its hidden nodes, as `parametrised` returns it."""
    among = structure.hidden or range(structure.leaves)
    root = max(among, key=lambda node: (len(structure.neighbours[node]), -node))
    neighbours = [list(structure.neighbours[node]) for node in range(len(structure.neighbours))]
    order, parents = directed(neighbours, root)
    made = []
    for node, place in zip(order, parents, strict=True):
        own = tables.marginal(node) if node < structure.leaves else known[node].weights
        if place < 0:
            made.append(_mixed(own[None, :], np.full(own.size, 1 / own.size), smoothing))
            continue
        joint = _joint(structure, (order[place], node), known, tables)
        total = joint.sum(axis=1, keepdims=True)
        given = np.where(total > 0, joint / np.where(total > 0, total, 1.0), own)
        made.append(_mixed(given, own, smoothing))
    columns = tuple(node if node < structure.leaves else -1 for node in order)
    return DirectedTree(parents, columns, tuple(made)), order


def _joint(
    structure: Structure,
    edge: tuple[int, int],
    known: Mapping[int, NodeStates],
    tables: PairTables,
) -> NDArray[np.float64]:
    """Return the joint distribution of two adjacent nodes, each a column or a hidden node."""
    one, other = edge
    if max(edge) < structure.leaves:
        return tables.joint(one, other)
    if min(edge) >= structure.leaves:
        return transition(structure, edge, known, tables)
    hidden = known[max(edge)]
    joint = hidden.given[min(edge)] * hidden.weights
    return joint if one < structure.leaves else joint.T


def _mixed(
    given: NDArray[np.float64], own: NDArray[np.float64], smoothing: float
) -> NDArray[np.float64]:
    return (1 - smoothing) * given + smoothing * own


def _length(structure: Structure, node: int, leaf: int) -> float:
    """Return the length of the path from a node to a leaf."""
    waiting = [(node, -1, 0.0)]
    while waiting:
        here, before, length = waiting.pop()
        if here == leaf:
            return length
        for after, more in structure.neighbours[here].items():
            if after != before:
                waiting.append((after, here, length + max(more, 0.0)))
    raise AssertionError(f"{leaf} is not a leaf of the tree")


def _named(tables: PairTables, views: Triple) -> str:
    return ", ".join(repr(tables.table.names[view]) for view in views)
