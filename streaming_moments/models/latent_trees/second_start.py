"""Second start: also start the passes of a latent tree from latent classes of a sample of the rows.

The classes replace the tree if they make whole rows more likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.directed import DirectedTree
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.latent_trees.passes import ExpectedTables, TreeReader, improved
from streaming_moments.models.latent_trees.shapes import structure_of
from streaming_moments.models.latent_trees.triple_rounds import OWN_ROWS
from streaming_moments.models.reading.inference import posteriors
from streaming_moments.models.starts import PILOT, ROWS, STARTS, Pilot, gains
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.tables.columns import TableColumns

CLASSES = "latent_classes"
_GROUP = 4  # a latent class starts near the mean of this many random rows
# share of the mean of these rows in the start of a class; the rest is the mean of all rows
_OWN = 0.5


def better_start(
    model: LatentTree, records: CountBatch, seed: int = 0, numbers: Sequence[int] = ()
) -> LatentTree:
    """Choose the tree from which passes start: the fitted tree, or latent classes of sampled rows.

    It chooses the classes if held-out rows are more likely under them than under the fitted tree,
    each after some passes. The fit of a tree compares shapes only by triples of columns, so whole
    rows can favour another shape than the fit chose. If the options of the fit named a shape other
    than latent classes, the fitted tree stays.

    Parameters
    ----------
    model : LatentTree
        The fitted tree.
    records : CountBatch
        Rows of the table, at least two.
    seed : int
        Seed of the sample of rows and of the random starts.
    numbers : sequence of int
        Increasing numbers of classes to try. The search ends at the first number that does not make
        held-out rows more likely. By default, only the number of states of the fitted tree is
        tried.
    """
    if model.shape != CLASSES and CLASSES not in model.shape_scores:
        return model
    half = records.held // 2
    drawn = records.take(np.random.default_rng(seed).permutation(records.held)[: 2 * ROWS])
    train, held_out = drawn.select(0, half), drawn.select(half, drawn.held)
    rng = np.random.default_rng(seed)
    star = Pilot(train, held_out, _Classes.after, _Classes.logs)
    found, likely = None, np.empty(0)
    for number in numbers or (model.states,):
        tried = star.best_of(
            [_Classes.drawn(model.table, star.train, number, rng) for _ in range(STARTS)]
        )
        logs = tried.logs(star.held_out)
        if found is not None and not gains(logs - likely):
            break
        found, likely = tried, logs
    assert found is not None
    return Pilot(train, held_out, _after, _logs).chosen(model, found.tree_like(model))


def _after(model: LatentTree, rows: CountBatch, passes: int) -> LatentTree:
    for _ in range(passes):
        model = improved(model, TreeReader(model).add(rows, ExpectedTables.zero(model)))
    return model


def _logs(model: LatentTree, rows: CountBatch) -> NDArray[np.float64]:
    return model.tree.log_probabilities(model.table.codes(rows))


@dataclass(frozen=True, eq=False)
class _Classes:
    """Latent classes of a table: given the class of a row, its columns are independent.

    table : the columns of the table and their categories
    given : (n, k) float64, probability of each category of each column in each class
    weights : (k,) float64, shares of the classes
    """

    table: TableColumns
    given: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def drawn(
        cls, table: TableColumns, rows: CountBatch, number: int, rng: np.random.Generator
    ) -> _Classes:
        """Draw random classes, each between the mean of a few rows and the mean of all rows."""
        X = _known(table, rows)
        own = np.asarray(X.sum(axis=0), dtype=np.float64)[:, None]
        own /= np.maximum(_in_columns(table, own), 1.0)
        groups = rng.integers(0, rows.documents, (number, _GROUP))
        sums = np.stack([X[group].sum(axis=0) for group in groups], axis=1) / _GROUP
        return cls(table, _normed(table, _OWN * sums, own), np.full(number, 1 / number))

    def after(self, rows: CountBatch, passes: int) -> _Classes:
        """Return the classes after some rounds of expectation maximisation.

        In each round, `OWN_ROWS` rows are added to each class.
        """
        X, found = _known(self.table, rows), self
        seen = np.asarray(X.sum(axis=0), dtype=np.float64)[:, None]
        own = seen + OWN_ROWS / len(seen)
        own /= _in_columns(self.table, own)
        for _ in range(passes):
            shares = posteriors(found._joint(X))
            sums = shares.sum(axis=0) + OWN_ROWS
            given = _normed(self.table, X.T @ shares, OWN_ROWS * own)
            found = replace(found, given=given, weights=sums / sums.sum())
        return found

    def logs(self, rows: CountBatch) -> NDArray[np.float64]:
        """Return the (rows,) logarithm of the probability of the known values of each row."""
        return np.asarray(np.logaddexp.reduce(self._joint(_known(self.table, rows)), axis=1))

    def tree_like(self, model: LatentTree) -> LatentTree:
        """Replace the tree of a model by one in which the classes are the parent of all columns."""
        falling, V = np.argsort(-self.weights, kind="stable"), self.table.number
        ends = pairwise(self.table.starts.tolist())
        leaves = [self.given[first:last, falling].T.copy() for first, last in ends]
        tables = (self.weights[None, falling], *leaves)
        tree, order = DirectedTree((-1, *[0] * V), (-1, *range(V)), tables), (V, *range(V))
        return replace(
            model,
            structure=structure_of(tree, order),
            order=order,
            tree=tree,
            states=self.weights.size,
            shape=CLASSES,
            bars=None,
            held_out=None,
            start=PILOT,
        )

    def _joint(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(np.log(self.weights) + X @ np.log(self.given))


def _known(table: TableColumns, rows: CountBatch) -> Any:
    """Return a (rows, n) sparse array with a 1 for the category of each known value of a row.

    Words that were added to the vocabulary later are not categories of a column, and are left out.
    """
    return rows.to_csr()[:, : table.n_words]


def _in_columns(table: TableColumns, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each category, the sum over all categories of the same column: (n, k)."""
    return np.repeat(np.add.reduceat(sums, table.starts[:-1], axis=0), table.sizes, axis=0)


def _normed(
    table: TableColumns, sums: NDArray[np.float64], beside: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return (n, k) distributions of the categories of each column, from `sums + beside`."""
    found = sums + beside
    return np.asarray(found / _in_columns(table, found))
