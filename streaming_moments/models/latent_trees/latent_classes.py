"""Latent classes: fit one hidden class, given which the columns of a table are independent.

The fit is by expectation maximisation over counts of the values of three columns at a time
(Lazarsfeld, Henry 1968; the composite likelihood of Lindsay 1988). It reads no rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.triple_rounds import OWN_ROWS
from streaming_moments.models.latent_trees.triples import Triples

_STARTS = 2
_MOST_ROUNDS = 150
# rounds end if one raises the mean log-likelihood of a triple by fewer nats than this
_SETTLED = 1e-6


def latent_classes(tables: PairTables, triples: Triples, classes: int, seed: int) -> DirectedTree:
    """Fit a tree in which one hidden node is the parent of all columns.

    The fit runs from two random starts, and returns the better result.
    """
    rng = np.random.default_rng(seed)
    found = [_from_start(tables, triples, classes, rng) for _ in range(_STARTS)]
    weights, given, _ = max(found, key=lambda one: one[2])
    falling = np.argsort(-weights, kind="stable")
    sizes = tables.table.sizes
    leaves = [own[:size, falling].T for own, size in zip(given, sizes, strict=True)]
    V = len(sizes)
    return DirectedTree((-1, *[0] * V), (-1, *range(V)), (weights[None, falling], *leaves))


def _from_start(
    tables: PairTables, triples: Triples, classes: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Fit the classes from one random start.

    Returns their (k,) weights, the (V, C, k) distributions of the columns in each class, and the
    mean log-likelihood of a triple of columns.
    """
    (T, C), V = triples.counts.shape[:2], tables.table.number
    own = np.zeros((V, C))
    for column, size in enumerate(tables.table.sizes):
        own[column, :size] = tables.marginal(column)
    given = own[:, :, None] * rng.gamma(2.0, size=(V, C, classes))
    given /= given.sum(axis=1, keepdims=True)
    weights, before, mean = np.full(classes, 1 / classes), -np.inf, 0.0
    # the counts of a column are summed over all triples of columns that contain it: divide by the
    # number of these triples
    often = np.maximum(np.bincount(triples.views.ravel(), minlength=V), 1)[:, None, None]
    counts, total = triples.counts.reshape(T, C, C * C), triples.counts.sum()
    for _ in range(_MOST_ROUNDS):
        first, second, third = (given[triples.views[:, axis]] for axis in range(3))
        first = first * weights
        both = (second[:, :, None] * third[:, None]).reshape(T, C * C, classes)
        chance = first @ both.transpose(0, 2, 1)
        there = counts > 0
        ratio = np.divide(counts, chance, out=np.zeros_like(counts), where=there)
        back = (ratio.transpose(0, 2, 1) @ first).reshape(T, C, C, classes)
        expected = (
            first * (ratio @ both),
            second * (back * third[:, None]).sum(axis=2),
            third * (back * second[:, :, None]).sum(axis=1),
        )
        sums = np.zeros_like(given)
        for axis, rows in enumerate(expected):
            np.add.at(sums, triples.views[:, axis], rows)
        mean = float((counts[there] * np.log(chance[there])).sum() / total)
        if mean - before < _SETTLED:
            break
        before = mean
        sums = sums / often + OWN_ROWS * own[:, :, None]
        shares = expected[0].sum(axis=(0, 1)) / T + OWN_ROWS
        weights, given = shares / shares.sum(), sums / sums.sum(axis=1, keepdims=True)
    return weights, given, mean
