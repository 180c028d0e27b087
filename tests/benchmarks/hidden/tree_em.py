"""Expectation maximisation of the tables of a tree, over the rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree

_BESIDE = 1e-3  # counted beside each cell, so that nothing becomes impossible


def random_tables(tree: DirectedTree, rng: np.random.Generator) -> DirectedTree:
    """The same tree with tables drawn anew."""
    drawn = [rng.dirichlet(np.ones(t.shape[1]), t.shape[0]) for t in tree.tables]
    return replace(tree, tables=tuple(drawn))


def likelier_tree(
    tree: DirectedTree, rows: NDArray[np.int64], rounds: int, tolerance: float
) -> tuple[DirectedTree, float]:
    """The tree after so many rounds, or when one gains less, and nats a row of the last but one."""
    before, likelihood = -np.inf, -np.inf
    for _ in range(rounds):
        sums, likelihood = _expected(tree, rows)
        tables = [(one + _BESIDE) / (one + _BESIDE).sum(axis=1, keepdims=True) for one in sums]
        tree = replace(tree, tables=tuple(tables))
        if likelihood - before < tolerance:
            break
        before = likelihood
    return tree, likelihood


def _expected(
    tree: DirectedTree, rows: NDArray[np.int64]
) -> tuple[list[NDArray[np.float64]], float]:
    """Expected counts of each table, and nats a row; rows have no missing value."""
    parents, tables = tree.parents, tree.tables
    beliefs = [np.ones((len(rows), table.shape[1])) for table in tables]
    messages = [np.empty(0)] * len(tables)
    likelihood = 0.0
    for node in range(len(parents) - 1, -1, -1):
        if tree.columns[node] >= 0:
            beliefs[node] *= np.eye(tables[node].shape[1])[rows[:, tree.columns[node]]]
        scale = beliefs[node].max(axis=1, keepdims=True)
        likelihood += float(np.log(scale).mean())
        beliefs[node] /= scale
        messages[node] = beliefs[node] @ tables[node].T
        if parents[node] >= 0:
            beliefs[parents[node]] *= messages[node]
    likelihood += float(np.log(messages[0]).mean())
    sums, shares = [], []
    for node, parent in enumerate(parents):
        above = 1 / messages[node] if parent < 0 else shares[parent] / messages[node]
        sums.append(tables[node] * (above.T @ beliefs[node]))
        shares.append((above @ tables[node]) * beliefs[node])
    return sums, likelihood
