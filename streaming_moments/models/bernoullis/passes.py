"""Passes: expectation maximisation over sets, with sums that are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.sets.foundation import SetsFoundation

ROW = 1 << 20
"""Integer units of one row's responsibilities."""
_MOST = (1 << 62) // ROW
RULES = (ROW,)  # rules by which rows are read


@dataclass(frozen=True, eq=False)
class ExpectedSets:
    """Expected sums of a pass over rows, in integers, so that they are exact in any order.

    features : (n, k) int64, rows of each component with each feature, in units of 2^-20 of a row;
        other sums have the same unit
    rows : (k,) int64, rows of each component
    documents, tokens : rows read, and features in them
    """

    features: NDArray[np.int64]
    rows: NDArray[np.int64]
    documents: int = 0
    tokens: int = 0

    @classmethod
    def zero(cls, model: BernoulliMixture) -> ExpectedSets:
        """Empty sums."""
        like = model.probabilities, model.weights
        features, rows = (np.zeros(one.shape, dtype=np.int64) for one in like)
        return cls(features, rows)

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Arrays and numbers for `from_parts`."""
        arrays = {"features": self.features, "rows": self.rows}
        return arrays, {"documents": self.documents, "tokens": self.tokens}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]
    ) -> ExpectedSets:
        """Sums from their `parts`."""
        return cls(arrays["features"], arrays["rows"], numbers["documents"], numbers["tokens"])

    def add(self, other: ExpectedSets) -> ExpectedSets:
        """Sums including those of another, which are added in place.

        Raises BoundExceeded above 2^42 rows.
        """
        documents = self.documents + other.documents
        if documents > _MOST:
            raise BoundExceeded(
                f"{documents:,} rows are more than the {_MOST:,} that a pass can sum; polish with "
                "fewer shards"
            )
        np.add(self.features, other.features, out=self.features)
        np.add(self.rows, other.rows, out=self.rows)
        return replace(self, documents=documents, tokens=self.tokens + other.tokens)


@dataclass(frozen=True, eq=False)
class SetReader:
    """Mixture prepared for reading sets.

    model : mixture that assigns rows to components
    """

    model: BernoulliMixture

    def add(self, batch: CountBatch, total: ExpectedSets) -> ExpectedSets:
        """Add the rows of a batch to `total` in place; raises as `log_joint`."""
        own = SetsFoundation.distinct(batch)
        units = np.rint(self.model.posterior(own) * ROW).astype(np.int64)
        features: NDArray[np.int64] = own.to_csr().T @ units
        return total.add(ExpectedSets(features, units.sum(axis=0), own.documents, own.tokens))


def improved(model: BernoulliMixture, expected: ExpectedSets) -> BernoulliMixture:
    """Mixture after a pass: maximum likelihood, given the expected sums.

    A component without rows keeps its probabilities. Components keep their order, so weights need
    not decrease.
    """
    rows = expected.rows.astype(np.float64)
    found = expected.features / np.where(rows > 0, rows, 1.0)
    return replace(
        model,
        probabilities=np.where(rows > 0, found, model.probabilities),
        weights=rows / rows.sum() if rows.any() else model.weights,
    )
