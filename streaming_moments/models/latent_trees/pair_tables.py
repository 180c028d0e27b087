"""PairTables: number of rows with each combination of two values, for all pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.statistics.counts.tables.columns import FEWEST_COLUMNS, TableColumns

# A singular value below this counts as this one: it is no evidence that two columns depend on each
# other.
_LEAST_CORRELATION = 1e-6


@dataclass(frozen=True, eq=False)
class PairTables:
    """Counts of pairs of categories in the rows of a table, one block for each pair of columns.

    A row with a missing value adds only to the blocks of its other columns. Each block is divided
    by its own sum, which is correct if values are missing at random.

    table : the V columns of the table, which have n categories in all
    counts : (n, n) float64, number of rows with both of two categories
    word_counts : (n,) float64, number of rows with each category

    Examples
    --------
    >>> table = TableColumns.of_terms(["a=0", "a=1", "b=0", "b=1"])
    >>> counts = np.array([[0, 0, 3, 1], [0, 0, 1, 3], [3, 1, 0, 0], [1, 3, 0, 0]])
    >>> tables = PairTables(table, counts, np.array([4, 4, 4, 4]))
    >>> tables.joint(0, 1), round(tables.distance(0, 1, 2), 4)
    (array([[0.375, 0.125],
           [0.125, 0.375]]), 0.6931)
    """

    table: TableColumns
    counts: NDArray[np.float64]
    word_counts: NDArray[np.float64]

    def joint(self, one: int, other: int) -> NDArray[np.float64]:
        """Return the (c_one, c_other) joint probabilities of the categories of two columns.

        They are shares of the rows in which both columns have a value. Raises NotIdentifiable if
        there is no such row.
        """
        block = self.counts[self.table.words(one), self.table.words(other)]
        total = block.sum()
        if not total > 0:
            raise NotIdentifiable(
                f"no row has a value in both columns {self.table.names[one]!r} and "
                f"{self.table.names[other]!r}; leave one of them out, or add rows"
            )
        return np.asarray(block / total)

    def rows(self, one: int, other: int) -> float:
        """Return the number of rows that have values in both columns."""
        return float(self.counts[self.table.words(one), self.table.words(other)].sum())

    def marginal(self, column: int) -> NDArray[np.float64]:
        """Return the (c,) probabilities of the categories of a column, in rows that have one."""
        own = self.word_counts[self.table.words(column)]
        return np.asarray(own / own.sum())

    def distance(self, one: int, other: int, states: int) -> float:
        """Return the distance `- sum_{j=2..k} log sigma_j(D^-1/2 P D'^-1/2)` of two columns.

        P is their joint distribution, D and D' are diagonal matrices of their marginals, and k is
        the number of hidden states. If a tree explains the columns, their distance is the sum of
        the lengths of the edges between them. If the columns have as many categories as hidden
        nodes have states, this is the log-determinant distance.
        """
        return length_of(self.joint(one, other), states)

    def distances(self, states: int) -> NDArray[np.float64]:
        """Return the (V, V) distances between all columns; `states` is k in `distance`."""
        V = self.table.number
        found = np.zeros((V, V))
        for one, other in combinations(range(V), 2):
            found[one, other] = found[other, one] = self.distance(one, other, states)
        return found

    def information(self) -> NDArray[np.float64]:
        """Return the (V, V) mutual information between all columns, in nats."""
        V = self.table.number
        found = np.zeros((V, V))
        for one, other in combinations(range(V), 2):
            joint = self.joint(one, other)
            apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
            there = joint > 0
            value = float((joint[there] * np.log(joint[there] / apart[there])).sum())
            found[one, other] = found[other, one] = value
        return found

    def mean_log(self, joints: Sequence[Sequence[NDArray[np.float64]]]) -> float:
        """Return the log-likelihood of pairs: the mean of `sum P log Q` over pairs of columns.

        It is in nats. P are the counted joint distributions. `joints` has the expected ones, an
        array Q of shape (c_one, c_other) for each of V by V pairs of columns. Q has to be positive
        where P is.
        """
        every = list(combinations(range(self.table.number), 2))
        total = 0.0
        for one, other in every:
            joint = self.joint(one, other)
            there = joint > 0
            total += float((joint[there] * np.log(joints[one][other][there])).sum())
        return total / len(every)


def length_of(joint: NDArray[np.float64], states: int = 0) -> float:
    """Return the `PairTables.distance` of two variables, from their joint probabilities.

    If `states` is 0, it is set to the number of categories of the variable that has fewer.
    """
    states = states or min(joint.shape)
    left, right = joint.sum(axis=1, keepdims=True), joint.sum(axis=0)
    # if no row has a category, all its probabilities are 0: divide them by 1
    scaled = joint / np.sqrt(np.where(left > 0, left, 1.0))
    scaled /= np.sqrt(np.where(right > 0, right, 1.0))
    values = np.linalg.svd(scaled, compute_uv=False)[1:states]
    # There are fewer singular values than states if a column has fewer categories. Multiply their
    # mean instead of adding them, so that each then stands for several states.
    return float(-np.log(np.maximum(values, _LEAST_CORRELATION)).mean() * (states - 1))


def require_states(table: TableColumns, states: int) -> None:
    """Raise NotIdentifiable if fewer than three columns have as many categories as states."""
    few = [
        name for name, own in zip(table.names, table.categories, strict=True) if len(own) < states
    ]
    if table.number - len(few) < FEWEST_COLUMNS:
        raise NotIdentifiable(
            f"{states} states are asked for, but columns {', '.join(map(repr, few[:5]))} have "
            "fewer categories; ask for fewer states, or leave these columns out"
        )
