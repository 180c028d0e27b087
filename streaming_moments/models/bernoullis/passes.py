"""Passes: expectation maximisation over sets of features, with exact integer sums."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.expected_sums import UNIT, IntegerSums
from streaming_moments.statistics.sets.foundation import SetsFoundation

# The stored sums of earlier passes are used only if they were computed with the same values.
RULES = (UNIT,)


@dataclass(frozen=True, eq=False)
class ExpectedSets(IntegerSums):
    """Expected sums of a pass over rows. They are integers, so the order of rows does not matter.

    features : (n, k) int64, expected number of rows of each component that have each feature
    rows : (k,) int64, expected number of rows of each component. The unit of `rows` and `features`
        is 2^-20 of a row.
    documents, tokens : number of rows read, and number of features in these rows
    """

    counted = "features"

    features: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def zero(cls, model: BernoulliMixture) -> ExpectedSets:
        """Return sums of a pass that has read no rows yet."""
        return cls.zeros(model.probabilities, model.weights)


@dataclass(frozen=True, eq=False)
class SetReader:
    """A mixture, prepared to infer the components of many sets.

    model : mixture that assigns rows to components
    """

    model: BernoulliMixture

    def add(self, batch: CountBatch, total: ExpectedSets) -> ExpectedSets:
        """Add the expected sums of the rows of a batch to `total`, in place.

        Raises the errors of `log_joint`.
        """
        own = SetsFoundation.distinct(batch)
        units = np.rint(self.model.posterior(own) * UNIT).astype(np.int64)
        features: NDArray[np.int64] = own.to_csr().T @ units
        found = ExpectedSets(features, units.sum(axis=0))
        return total.add(found.counting(own.documents, own.tokens))


def improved(model: BernoulliMixture, expected: ExpectedSets) -> BernoulliMixture:
    """Return the mixture after a pass: the one of maximum likelihood, given the expected sums.

    A component without rows keeps its probabilities. The order of components stays unchanged, so
    their weights need not decrease.
    """
    rows = expected.rows.astype(np.float64)
    found = expected.features / np.where(rows > 0, rows, 1.0)
    return replace(
        model,
        probabilities=np.where(rows > 0, found, model.probabilities),
        weights=rows / rows.sum() if rows.any() else model.weights,
    )
