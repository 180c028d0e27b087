"""DirectedTree: inference on a tree of discrete variables; some are columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming_moments.printing.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class DirectedTree:
    """Tree of discrete variables (nodes), in an order in which each node comes after its parent.

    parents : index of each node's parent; -1 for the root, which is first
    columns : index of the column of the table that each node stands for; -1 for hidden nodes
    tables : (states of the parent, states) float64 for each node, probability of each state given
        the parent's state; the table of the root has one row

    Examples
    --------
    >>> given = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> tree = DirectedTree((-1, 0, 0), (-1, 0, 1), (np.array([[0.5, 0.5]]), given, given))
    >>> rows = np.array([[0, -1], [0, 0]])
    >>> np.exp(tree.log_probabilities(rows)).round(4), tree.conditionals(rows)[1][0].round(4)
    (array([0.55 , 0.425]), array([0.7727, 0.2273]))
    """

    parents: tuple[int, ...]
    columns: tuple[int, ...]
    tables: tuple[NDArray[np.float64], ...]

    __repr__ = short_repr

    @cached_property
    def node_of(self) -> tuple[int, ...]:
        """Node of each column."""
        places = {column: node for node, column in enumerate(self.columns) if column >= 0}
        return tuple(places[column] for column in range(len(places)))

    def log_probabilities(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the (N,) log-probabilities, in nats, of the known values of (N, V) rows.

        A row holds the index of the category in each column, or -1 if the category is unknown.
        """
        return self._upward(rows)[2]

    def posteriors(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """Return, for each node, the (N, states) distribution of its state in each row.

        It is conditional on the known values of the row.
        """
        beliefs, messages, _ = self._upward(rows)
        found: list[NDArray[np.float64]] = []
        for node, parent in enumerate(self.parents):
            if parent < 0:
                own = beliefs[node] * self.tables[node][0]
            else:
                # the parent's distribution contains the message of this node: divide it out
                told = np.maximum(messages[node], 1e-300)
                own = (found[parent] / told) @ self.tables[node] * beliefs[node]
            found.append(own / own.sum(axis=1, keepdims=True))
        return tuple(found)

    def conditionals(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """Return, for each column, the (N, c) distribution of its category in each row.

        It is conditional on the known values of the row. A known value has probability 1.
        """
        found = self.posteriors(rows)
        return tuple(found[node] for node in self.node_of)

    def expected(
        self, rows: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], ...]:
        """Return, for each node, how many rows are expected in each cell of its table.

        Each row counts as many times as `weights` says.
        """
        beliefs, messages, _ = self._upward(rows)
        shares: list[NDArray[np.float64]] = []
        found = []
        for node, (parent, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            above = np.ones((len(rows), 1)) if parent < 0 else shares[parent]
            given = above / np.maximum(messages[node], 1e-300)
            found.append(table * ((given * weights[:, None]).T @ beliefs[node]))
            shares.append((given @ table) * beliefs[node])
        return tuple(found)

    def completed(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Replace each unknown value of a row by its most likely category.

        Returns the completed rows, and the probability of each of their values.
        """
        given = self.conditionals(rows)
        likeliest = np.stack([one.argmax(axis=1) for one in given], axis=1)
        sure = np.stack([one.max(axis=1) for one in given], axis=1)
        return np.where(rows < 0, likeliest, rows), np.where(rows < 0, sure, 1.0)

    def marginals(self) -> tuple[NDArray[np.float64], ...]:
        """Return the (states,) distribution of each node."""
        found: list[NDArray[np.float64]] = []
        for parent, table in zip(self.parents, self.tables, strict=True):
            found.append(table[0] if parent < 0 else found[parent] @ table)
        return tuple(found)

    def sample(self, number: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Draw (number, nodes) states of all nodes from the tree."""
        found = np.empty((number, len(self.tables)), dtype=np.int64)
        for node, (parent, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            before = np.zeros(number, dtype=np.int64) if parent < 0 else found[:, parent]
            ends = np.cumsum(table, axis=1)[before]
            drawn = (rng.random(number)[:, None] > ends).sum(axis=1)
            found[:, node] = np.minimum(drawn, table.shape[1] - 1)
        return found

    def joints(self) -> list[list[NDArray[np.float64]]]:
        """Return the joint distributions of all pairs of columns, as V lists of V arrays."""
        marginals = self.marginals()
        neighbours: list[list[tuple[int, NDArray[np.float64]]]] = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                joint = marginals[parent][:, None] * self.tables[node]
                back = joint.T / np.maximum(marginals[node], 1e-300)[:, None]
                neighbours[parent].append((node, self.tables[node]))
                neighbours[node].append((parent, back))
        found = []
        for start in self.node_of:
            reached = {start: np.diag(marginals[start])}
            waiting = [start]
            while waiting:
                here = waiting.pop()
                for there, table in neighbours[here]:
                    if there not in reached:
                        reached[there] = reached[here] @ table
                        waiting.append(there)
            found.append([reached[node] for node in self.node_of])
        return found

    def _upward(
        self, rows: NDArray[np.int64]
    ) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]], NDArray[np.float64]]:
        """Send messages from the leaves to the root.

        Returns three things: for each node, its belief (a scaled likelihood of the values below it,
        given its state); for each node, the message to its parent; and the log-probability of each
        row.
        """
        N, logs = len(rows), np.zeros(len(rows))
        beliefs = [np.ones((N, table.shape[1])) for table in self.tables]
        messages: list[NDArray[np.float64]] = [np.empty(0)] * len(self.tables)
        for node in range(len(self.parents) - 1, -1, -1):
            column, belief = self.columns[node], beliefs[node]
            if column >= 0:
                known = np.flatnonzero(rows[:, column] >= 0)
                only = np.zeros((known.size, belief.shape[1]))
                only[np.arange(known.size), rows[known, column]] = 1.0
                belief[known] *= only
            scale = belief.max(axis=1)
            logs += np.log(scale)
            belief /= scale[:, None]
            messages[node] = belief @ self.tables[node].T
            if self.parents[node] >= 0:
                beliefs[self.parents[node]] *= messages[node]
        return beliefs, messages, logs + np.log(messages[0][:, 0])


def directed(
    neighbours: Sequence[Sequence[int]], root: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order the nodes of a tree so that each comes after its parent; return also their parents.

    Examples
    --------
    >>> directed([[1], [0, 2], [1]], root=1)
    ((1, 0, 2), (-1, 0, 0))
    """
    order, parents, seen = [root], [-1], {root}
    for place, node in enumerate(order):
        for beside in neighbours[node]:
            if beside not in seen:
                seen.add(beside)
                order.append(beside)
                parents.append(place)
    return tuple(order), tuple(parents)
