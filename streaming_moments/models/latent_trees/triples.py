"""Triples: choose triples of columns, and estimate their counts in halves of the rows.

The statistics have pair counts of each half of the rows, but triple counts only of all rows. So
this module draws the triple counts of a half at random from those of all rows, and adjusts them to
the pair counts of the half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.parameters import Triple
from streaming_moments.models.latent_trees.triple_rounds import as_rows
from streaming_moments.statistics.counts.tables.columns import TableColumns

# Limit of the number of cells in the tables of all triples to which latent classes are fitted.
# There are always at least as many triples as columns, even if their tables have more cells.
_CELLS = 10_000
_MOST_ROUNDS = 200
_FITTED = 1e-9  # rounds end if each pair probability is as near as this to the counted one


@dataclass(frozen=True, eq=False)
class Triples:
    """Counts of values in T triples of columns, padded with zeros to C categories per column.

    views : (T, 3) int64, columns of each triple
    counts : (T, C, C, C) float64, number of rows with each combination of three values
    """

    views: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, wanted: Sequence[Triple], counts: Mapping[Triple, NDArray[np.float64]]) -> Triples:
        """Collect the counts of the `wanted` triples, padded with zeros to the same shape."""
        most = max(max(counts[one].shape) for one in wanted)
        found = np.zeros((len(wanted), most, most, most))
        for place, one in enumerate(wanted):
            a, b, c = counts[one].shape
            found[place, :a, :b, :c] = counts[one]
        return cls(np.array(wanted), found)

    def mean_log(self, tree: DirectedTree) -> float:
        """Return the mean log-probability of the first column of a triple, given the other two.

        It is in nats.
        """
        counts = dict(zip(map(tuple, self.views.tolist()), self.counts, strict=True))
        rows, weights = as_rows(counts, len(tree.node_of))
        first = np.repeat(self.views[:, 0], np.count_nonzero(self.counts, axis=(1, 2, 3)))
        others = rows.copy()
        others[np.arange(len(rows)), first] = -1
        logs = tree.log_probabilities(rows) - tree.log_probabilities(others)
        return float(weights @ logs / weights.sum())


def ring_triples(table: TableColumns, seed: int) -> tuple[Triple, ...]:
    """Arrange all columns in random rings, and return the triples of adjacent columns.

    The triples of a ring link all columns. So a class that is fitted to them means the same in all
    columns.
    """
    V, rng = table.number, np.random.default_rng(seed)
    most = max(V, _CELLS // max(table.sizes) ** 3)
    every = V * (V - 1) * (V - 2) // 6
    found: set[Triple] = set()
    while len(found) < min(most, every):
        ring = rng.permutation(V)
        around = np.sort(np.stack([ring, np.roll(ring, 1), np.roll(ring, 2)], axis=1), axis=1)
        found |= {(a, b, c) for a, b, c in around.tolist()}
    return tuple(sorted(found))


def nearest_triples(tables: PairTables) -> tuple[Triple, ...]:
    """Return a triple for each column: the column, and the two with most information about it."""
    told = tables.information()
    np.fill_diagonal(told, -np.inf)
    nearest = np.argsort(-told, axis=1, kind="stable")[:, :2].tolist()
    return tuple((column, one, other) for column, (one, other) in enumerate(nearest))


def halves_of(
    counts: Mapping[Triple, NDArray[np.float64]], halves: Sequence[PairTables], seed: int
) -> tuple[dict[Triple, NDArray[np.float64]], ...]:
    """Draw triples for two halves of the rows, and fit them to the pairs of each half.

    Each row falls into one cell of the table of a triple, so the counts of a random half of the
    rows are a binomial sample of each cell. The result is empty if there are no halves, or if in a
    half two columns never have values in the same row.
    """
    whole = Triples.of([*counts], counts)
    rounded = np.rint(whole.counts).astype(np.int64)
    even = np.random.default_rng(seed).binomial(rounded, 0.5)
    found = []
    for tables, drawn in zip(halves, (even, rounded - even), strict=False):
        try:
            fitted = fitted_to_pairs(Triples(whole.views, drawn.astype(np.float64)), tables)
        except NotIdentifiable:
            return ()
        shapes = (tuple(slice(size) for size in one.shape) for one in counts.values())
        found.append(
            {views: one[shape] for views, one, shape in zip(counts, fitted, shapes, strict=True)}
        )
    return tuple(found)


def fitted_to_pairs(triples: Triples, tables: PairTables) -> NDArray[np.float64]:
    """Change counts of triples as little as possible (in entropy), so that they match pair counts.

    Iterative proportional fitting (Deming, Stephan 1940) runs until the pair counts match, for at
    most 200 rounds. A pair of values that is in no sampled triple never matches. Raises
    NotIdentifiable if no row has values in both of two columns.
    """
    totals = np.maximum(triples.counts.sum(axis=(1, 2, 3), keepdims=True), 1.0)
    found = triples.counts / totals
    T, C = found.shape[:2]
    wanted = []
    for axis, ends in ((3, (0, 1)), (2, (0, 2)), (1, (1, 2))):
        pairs = np.zeros((T, C, C))
        for place, (one, other) in enumerate(triples.views[:, ends].tolist()):
            joint = tables.joint(one, other)
            pairs[place, : joint.shape[0], : joint.shape[1]] = joint
        wanted.append((axis, pairs))
    for _ in range(_MOST_ROUNDS):
        off = 0.0
        for axis, pairs in wanted:
            sums = found.sum(axis=axis)
            off = max(off, float(np.abs(sums - pairs).max()))
            factors = np.divide(pairs, sums, out=np.zeros_like(sums), where=sums > 0)
            found = found * np.expand_dims(factors, axis)
        if off <= _FITTED:
            break
    return np.asarray(found / np.maximum(found.sum(axis=(1, 2, 3), keepdims=True), 1e-300) * totals)
