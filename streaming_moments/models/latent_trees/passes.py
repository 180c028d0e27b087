"""Passes: expectation maximisation of a latent tree over rows of a table.

The sums of a pass are integers, so that they are exact in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.triple_rounds import OWN_ROWS, with_tables
from streaming_moments.models.states import States
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.expected_sums import UNIT, IntegerSums

_ROWS = 4096  # number of rows that are read at a time
# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = (UNIT, OWN_ROWS)


@dataclass(frozen=True, eq=False)
class ExpectedTables(IntegerSums):
    """Expected counts of a pass over the rows of a table; integers, so that any order is exact.

    cells : (cells,) int64, expected rows in each cell of the tables of all nodes, one table after
        another, in units of 2^-20 of a row
    documents, tokens : number of rows with at least one known value, and number of known values
    """

    counted = "values"

    cells: NDArray[np.int64]

    @classmethod
    def zero(cls, model: LatentTree) -> ExpectedTables:
        """Return empty sums."""
        return cls(np.zeros(sum(table.size for table in model.tree.tables), dtype=np.int64))

    def tables(self, tree: DirectedTree) -> tuple[NDArray[np.int64], ...]:
        """Return, for the table of each node, the part of `cells` that belongs to it."""
        ends = np.cumsum([table.size for table in tree.tables])
        parts = np.split(self.cells, ends[:-1])
        return tuple(
            part.reshape(table.shape) for part, table in zip(parts, tree.tables, strict=True)
        )


@dataclass(frozen=True, eq=False)
class TreeReader:
    """Tree that is prepared to infer the hidden nodes of rows.

    What a row adds to the sums does not depend on other rows of its batch.

    model : latent tree whose hidden nodes are inferred
    """

    model: LatentTree

    def add(self, batch: CountBatch, total: ExpectedTables) -> ExpectedTables:
        """Add the rows of a batch to `total` in place.

        A row without a known value is skipped. Raises ForeignStatistics if the batch has another
        vocabulary than the model.
        """
        codes = self.model.codes(batch)
        codes = codes[(codes >= 0).any(axis=1)]
        found = total.counting(len(codes), int((codes >= 0).sum()))
        for begin in range(0, len(codes), _ROWS):
            _add_rows(self.model.tree, codes[begin : begin + _ROWS], total)
        return found


def improved(model: LatentTree, expected: ExpectedTables) -> LatentTree:
    """Return the tree of maximum likelihood, given the expected counts of a pass.

    To each state, `OWN_ROWS` rows are added.
    """
    sums = tuple(one / UNIT for one in expected.tables(model.tree))
    return replace(model, tree=with_tables(model.tree, sums))


def conditionals(model: LatentTree) -> States:
    """Return the rows of all probability tables as columns, each with its error bar.

    Short columns are padded with zeros.
    """
    tables, widest = model.tree.tables, max(table.shape[1] for table in model.tree.tables)
    columns = [np.pad(table, ((0, 0), (0, widest - table.shape[1]))) for table in tables]
    bars = None
    if model.bars is not None:
        bars = np.concatenate([table.sum(axis=1) for table in model.bars.tables])
    return States(np.vstack(columns).T, bars)


def _add_rows(tree: DirectedTree, codes: NDArray[np.int64], total: ExpectedTables) -> None:
    """Infer the nodes of some rows, and add their expected counts to `total` in place.

    Messages go from the leaves to the root; then each edge adds the pairs of states of its nodes.
    """
    beliefs = [np.ones((len(codes), table.shape[1])) for table in tree.tables]
    messages = [np.empty(0)] * len(tree.tables)
    for node in range(len(tree.tables) - 1, -1, -1):
        belief, column = beliefs[node], tree.columns[node]
        if column >= 0:
            known = codes[:, column] >= 0
            belief[known] *= np.eye(belief.shape[1])[codes[known, column]]
        belief /= belief.max(axis=1, keepdims=True)
        # Add one state after another. In a matrix product, the rounding of a row would depend on
        # the number of rows.
        messages[node] = np.zeros((len(codes), len(tree.tables[node])))
        for state, table in _states(tree, node):
            messages[node] += belief[:, state, None] * table
        if tree.parents[node] >= 0:
            beliefs[tree.parents[node]] *= messages[node]
    shares: list[NDArray[np.float64]] = []
    for node, sums in enumerate(total.tables(tree)):
        above = 1.0 if tree.parents[node] < 0 else shares[tree.parents[node]]
        given = above / messages[node]
        share = np.empty_like(beliefs[node])
        for state, table in _states(tree, node):
            pairs = given * table * beliefs[node][:, state, None]
            sums[:, state] += np.rint(pairs * UNIT).astype(np.int64).sum(axis=0)
            share[:, state] = pairs.sum(axis=1)
        shares.append(share)


def _states(tree: DirectedTree, node: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield each state of a node, with its probabilities given each state of the parent."""
    return enumerate(tree.tables[node].T)
