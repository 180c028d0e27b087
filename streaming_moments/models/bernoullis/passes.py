"""Passes: expectation maximisation over sets, in sums that are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.passes.polishing import ExpectedCounts
from streaming_moments.models.provenance import Polishing
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.sets.foundation import SetsFoundation

ROW = 1 << 20
"""Units of which the responsibilities of a row make one."""
RULES = (ROW,)  # by which rows are read


class ExpectedSets(ExpectedCounts):
    """As `ExpectedCounts`: features in each component, and rows of each, with all of them last."""

    @classmethod
    def zero(cls, model: Any) -> ExpectedSets:
        """Of no rows."""
        n, k = model.probabilities.shape
        return cls(np.zeros((n, k), dtype=np.int64), np.zeros(k + 1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class SetReader:
    """A mixture made ready to read sets.

    Parameters
    ----------
    model : BernoulliMixture
        By which rows are shared out.
    """

    model: BernoulliMixture

    def add(self, batch: CountBatch, total: ExpectedCounts) -> ExpectedCounts:
        """Add the rows of a batch to sums, which are changed in place; errors as `log_joint`."""
        own = SetsFoundation.distinct(batch)
        units = np.rint(self.model.posterior(own) * ROW).astype(np.int64)
        rows = np.append(units.sum(axis=0), units.sum())
        counts: NDArray[np.int64] = own.to_csr().T @ units
        return total.add(ExpectedSets(counts, rows, own.documents, own.tokens))


def improved(model: BernoulliMixture, expected: ExpectedCounts) -> BernoulliMixture:
    """The mixture that a pass makes: the likeliest, of the rows as they are shared out.

    A component that no row is of keeps its probabilities, and all keep their numbers: weights no
    longer need to fall.
    """
    rows, whole = expected.prior[:-1].astype(np.float64), float(expected.prior[-1])
    found = expected.counts / np.where(rows > 0, rows, 1.0)
    return replace(
        model,
        probabilities=np.where(rows > 0, found, model.probabilities),
        weights=rows / whole if whole else model.weights,
    )


def polished(model: BernoulliMixture, batch: CountBatch, passes: int = 2) -> BernoulliMixture:
    """The mixture after some passes over rows in memory; 0 leaves it as it is.

    Examples
    --------
    >>> begun = BernoulliMixture(np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([0.5, 0.5]))
    >>> polished(begun, CountBatch.from_csr([[1, 0], [1, 0], [0, 1]]), 9).probabilities.round(2)
    array([[1., 0.],
           [0., 1.]])
    """
    for number in range(1, passes + 1):
        expected = SetReader(model).add(batch, ExpectedSets.zero(model))
        told = Polishing("", number, False, 0, expected.documents, expected.tokens)
        model = replace(improved(model, expected), polishing=told)
    return model
