"""Second start of a tree: latent classes of a pilot, used if they make whole rows more likely."""

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
_GROUP = 4  # a class starts from the mean of this many rows
_OWN = 0.5  # share of this mean in the start of the class; the rest is the mean of all rows


def better_start(
    model: LatentTree, records: CountBatch, seed: int = 0, numbers: Sequence[int] = ()
) -> LatentTree:
    """Choose the tree from which passes start: the fit, or latent classes of a pilot of the rows.

    It chooses classes if held-out rows are more likely under them than under the fit, both after
    passes. A fit compares shapes only by triples of columns, so whole rows can favour another
    shape. If the options name another shape than latent classes, that shape stays.

    Parameters
    ----------
    model : LatentTree
        The fit.
    records : CountBatch
        Rows of the table, at least two.
    seed : int
        Seed of the pilot and the starts.
    numbers : sequence of int
        Increasing numbers of classes to try. The search ends at a number that makes held-out rows
        no more likely. By default, it tries only the number of states.
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

    table : the columns
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
        """Draw classes that lie between the mean of a few rows and the mean of all rows."""
        X = _known(table, rows)
        own = np.asarray(X.sum(axis=0), dtype=np.float64)[:, None]
        own /= np.maximum(_in_columns(table, own), 1.0)
        groups = rng.integers(0, rows.documents, (number, _GROUP))
        sums = np.stack([X[group].sum(axis=0) for group in groups], axis=1) / _GROUP
        return cls(table, _normed(table, _OWN * sums, own), np.full(number, 1 / number))

    def after(self, rows: CountBatch, passes: int) -> _Classes:
        """Run rounds of expectation maximisation, in which `OWN_ROWS` rows are added per class."""
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
        """Replace a model's tree by one hidden node of these classes between all columns."""
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
    """Return a (rows, n) sparse array with 1 for each known value.

    Words that were added to the vocabulary later belong to no column, and are left out.
    """
    return rows.to_csr()[:, : table.n_words]


def _in_columns(table: TableColumns, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each word, the sum over all categories of its column: (n, k)."""
    return np.repeat(np.add.reduceat(sums, table.starts[:-1], axis=0), table.sizes, axis=0)


def _normed(
    table: TableColumns, sums: NDArray[np.float64], beside: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (n, k) distributions of categories in each column, from `sums + beside`."""
    found = sums + beside
    return np.asarray(found / _in_columns(table, found))
