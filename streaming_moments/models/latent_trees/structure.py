"""Structure: tree of columns and hidden nodes, found from the distances between the columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Structure:
    """Unrooted tree: nodes 0 to V - 1 are the columns, mostly leaves; nodes from V on are hidden.

    leaves : number V of columns, at least 3
    edges : both nodes and the length of each edge

    Examples
    --------
    >>> star = Structure(3, ((0, 3, 1.0), (1, 3, 1.0), (2, 3, 0.5)))
    >>> star.hidden, star.sides(3)
    ((3,), ((0,), (1,), (2,)))
    """

    leaves: int
    edges: tuple[tuple[int, int, float], ...]

    @cached_property
    def hidden(self) -> tuple[int, ...]:
        """Hidden nodes."""
        return tuple(
            sorted({node for edge in self.edges for node in edge[:2]} - set(range(self.leaves)))
        )

    @cached_property
    def neighbours(self) -> dict[int, dict[int, float]]:
        """Adjacent nodes of each node, with the lengths of the edges."""
        found: dict[int, dict[int, float]] = {}
        for one, other, length in self.edges:
            found.setdefault(one, {})[other] = length
            found.setdefault(other, {})[one] = length
        return {node: dict(sorted(found[node].items())) for node in sorted(found)}

    def inner_edges(self) -> tuple[tuple[int, int], ...]:
        """Return the edges between hidden nodes."""
        return tuple((one, other) for one, other, _ in self.edges if min(one, other) >= self.leaves)

    def sides(self, node: int) -> tuple[tuple[int, ...], ...]:
        """Return, for each edge of a node, the columns that lie beyond it, nearest first."""
        return tuple(self.beyond(node, beside) for beside in self.neighbours[node])

    def beyond(self, node: int, beside: int) -> tuple[int, ...]:
        """Return the columns beyond the edge from a node to an adjacent node, nearest first."""
        found = [(length, leaf) for leaf, length in self._walk(node, beside)]
        return tuple(leaf for _, leaf in sorted(found))

    def _walk(self, node: int, beside: int) -> Iterator[tuple[int, float]]:
        waiting = [(beside, node, max(self.neighbours[node][beside], 0.0))]
        while waiting:
            here, before, length = waiting.pop()
            if here < self.leaves:
                yield here, length
            for after, more in self.neighbours[here].items():
                if after != before:
                    waiting.append((after, here, length + max(more, 0.0)))


def neighbour_joining(distances: NDArray[np.float64]) -> Structure:
    """Return the tree of a distance matrix by neighbour joining (Saitou, Nei 1987).

    The tree is exact if the distances are those of a tree. They are (V, V) float64 and symmetric,
    with V at least 3.

    Examples
    --------
    >>> apart = np.array([[0, 2, 7, 7], [2, 0, 7, 7], [7, 7, 0, 4], [7, 7, 4, 0.0]])
    >>> neighbour_joining(apart).edges
    ((0, 4, 1.0), (1, 4, 1.0), (2, 5, 2.0), (3, 5, 2.0), (4, 5, 4.0))
    """
    V = len(distances)
    apart, active = distances.astype(np.float64), list(range(V))
    edges: list[tuple[int, int, float]] = []
    following = V
    while len(active) > 3:
        m = len(active)
        sums = apart.sum(axis=1)
        score = (m - 2) * apart - sums[:, None] - sums
        score[np.tril_indices(m)] = np.inf
        i, j = map(int, np.unravel_index(int(score.argmin()), score.shape))
        half, lean = apart[i, j] / 2, (sums[i] - sums[j]) / (2 * (m - 2))
        edges += [
            (active[i], following, float(half + lean)),
            (active[j], following, float(half - lean)),
        ]
        joined = (apart[i] + apart[j] - apart[i, j]) / 2
        left = [place for place in range(m) if place not in (i, j)]
        grown = np.zeros((m - 1, m - 1))
        grown[:-1, :-1] = apart[np.ix_(left, left)]
        grown[-1, :-1] = grown[:-1, -1] = joined[left]
        apart, active = grown, [*(active[place] for place in left), following]
        following += 1
    for place, (one, other) in enumerate(((1, 2), (0, 2), (0, 1))):
        length = (apart[place, one] + apart[place, other] - apart[one, other]) / 2
        edges.append((active[place], following, float(length)))
    return Structure(V, tuple(sorted((min(x, y), max(x, y), length) for x, y, length in edges)))


def contracted(structure: Structure, shortest: float, columns: bool = False) -> Structure:
    """Merge adjacent hidden nodes with a shorter edge than `shortest`, and renumber the rest.

    If `columns` is true, a column also takes the place of a hidden node if the edge between them is
    shorter; the shortest edges come first (Choi, Tan, Anandkumar, Willsky 2011).

    Examples
    --------
    >>> chain = Structure(4, ((0, 4, 1), (1, 4, 1), (4, 5, 0.1), (2, 5, 1), (3, 5, 1)))
    >>> contracted(chain, 0.15).sides(4)
    ((0,), (1,), (2,), (3,))
    """
    stands = {node: node for node in structure.hidden}

    def root(node: int) -> int:
        while stands.get(node, node) != node:
            node = stands[node]
        return node

    for one, other, length in sorted(structure.edges, key=lambda edge: edge[2]):
        low, high = sorted((root(one), root(other)))
        seen = (low < structure.leaves) + (high < structure.leaves)
        if length < shortest and seen <= columns:
            stands[high] = low
    kept = sorted({root(node) for node in structure.hidden} - set(range(structure.leaves)))
    names = {node: structure.leaves + place for place, node in enumerate(kept)}
    edges = []
    for one, other, length in structure.edges:
        if root(one) != root(other):
            low, high = sorted(names.get(end, end) for end in (root(one), root(other)))
            edges.append((low, high, length))
    return Structure(structure.leaves, tuple(sorted(edges)))


def splits(structure: Structure) -> frozenset[frozenset[int]]:
    """Return the set of leaves on one side of each inner edge: the side without leaf 0."""
    found = set()
    for one, other in structure.inner_edges():
        side = frozenset(structure.beyond(one, other))
        found.add(side if 0 not in side else frozenset(range(structure.leaves)) - side)
    return frozenset(found)


def robinson_foulds(one: Structure, other: Structure) -> int:
    """Count the inner edges that only one of two trees has (Robinson, Foulds 1981).

    Both trees have an edge if it splits the leaves into the same two sets in both.

    Examples
    --------
    >>> star = Structure(3, ((0, 3, 1.0), (1, 3, 1.0), (2, 3, 1.0)))
    >>> robinson_foulds(star, star)
    0
    """
    return len(splits(one) ^ splits(other))
