"""Passes: expectation maximisation over sets, with sums that are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.expected_sums import UNIT, IntegerSums
from streaming_moments.statistics.sets.foundation import SetsFoundation

# Passes reuse stored sums only if these rules of reading have not changed.
RULES = (UNIT,)


@dataclass(frozen=True, eq=False)
class ExpectedSets(IntegerSums):
    """Expected sums of a pass over rows, in integers, so that they are exact in any order.

    features : (n, k) int64, expected number of rows of each component that have each feature
    rows : (k,) int64, expected number of rows of each component. Its unit, and that of `features`,
        is 2^-20 of a row.
    documents, tokens : number of rows read, and of features in them
    """

    counted = "features"

    features: NDArray[np.int64]
    rows: NDArray[np.int64]

    @classmethod
    def zero(cls, model: BernoulliMixture) -> ExpectedSets:
        """Return empty sums."""
        return cls.zeros(model.probabilities, model.weights)


@dataclass(frozen=True, eq=False)
class SetReader:
    """Mixture prepared for reading sets.

    model : mixture that assigns rows to components
    """

    model: BernoulliMixture

    def add(self, batch: CountBatch, total: ExpectedSets) -> ExpectedSets:
        """Add the rows of a batch to `total` in place; raise the errors of `log_joint`."""
        own = SetsFoundation.distinct(batch)
        units = np.rint(self.model.posterior(own) * UNIT).astype(np.int64)
        features: NDArray[np.int64] = own.to_csr().T @ units
        found = ExpectedSets(features, units.sum(axis=0))
        return total.add(found.counting(own.documents, own.tokens))


def improved(model: BernoulliMixture, expected: ExpectedSets) -> BernoulliMixture:
    """Return the mixture after a pass: that of maximum likelihood, given the expected sums.

    The probabilities of a component without rows, and the order of components, stay unchanged. So
    weights need not decrease.
    """
    rows = expected.rows.astype(np.float64)
    found = expected.features / np.where(rows > 0, rows, 1.0)
    return replace(
        model,
        probabilities=np.where(rows > 0, found, model.probabilities),
        weights=rows / rows.sum() if rows.any() else model.weights,
    )
