"""Passes: expectation maximisation over sets, in sums that are exact in any order."""

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
"""Units of which the responsibilities of a row make one."""
_MOST = (1 << 62) // ROW
RULES = (ROW,)  # by which rows are read


@dataclass(frozen=True, eq=False)
class ExpectedSets:
    """What a pass over some rows expects: integers, so that sums are exact in any order.

    features : (n, k) int64, rows of each component with each feature, in units of 2^-20 of a row;
        so the others
    rows : (k,) int64, rows of each component
    documents, tokens : rows that were read, and features in them
    """

    features: NDArray[np.int64]
    rows: NDArray[np.int64]
    documents: int = 0
    tokens: int = 0

    @classmethod
    def zero(cls, model: BernoulliMixture) -> ExpectedSets:
        """Of no rows."""
        like = model.probabilities, model.weights
        features, rows = (np.zeros(one.shape, dtype=np.int64) for one in like)
        return cls(features, rows)

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Arrays and numbers."""
        arrays = {"features": self.features, "rows": self.rows}
        return arrays, {"documents": self.documents, "tokens": self.tokens}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]
    ) -> ExpectedSets:
        """The sums of `parts`."""
        return cls(arrays["features"], arrays["rows"], numbers["documents"], numbers["tokens"])

    def add(self, other: ExpectedSets) -> ExpectedSets:
        """With the rows of another, whose sums are added to these in place.

        BoundExceeded if more than 2^42 rows.
        """
        documents = self.documents + other.documents
        if documents > _MOST:
            raise BoundExceeded(
                f"{documents:,} rows are more than the {_MOST:,} of which a pass can add up; "
                "polish with fewer shards"
            )
        np.add(self.features, other.features, out=self.features)
        np.add(self.rows, other.rows, out=self.rows)
        return replace(self, documents=documents, tokens=self.tokens + other.tokens)


@dataclass(frozen=True, eq=False)
class SetReader:
    """A mixture made ready to read sets.

    model : by which rows are shared out
    """

    model: BernoulliMixture

    def add(self, batch: CountBatch, total: ExpectedSets) -> ExpectedSets:
        """Add the rows of a batch to sums, which are changed in place; errors as `log_joint`."""
        own = SetsFoundation.distinct(batch)
        units = np.rint(self.model.posterior(own) * ROW).astype(np.int64)
        features: NDArray[np.int64] = own.to_csr().T @ units
        return total.add(ExpectedSets(features, units.sum(axis=0), own.documents, own.tokens))


def improved(model: BernoulliMixture, expected: ExpectedSets) -> BernoulliMixture:
    """The mixture that a pass makes: the likeliest, of the rows as they are shared out.

    A component that no row is of keeps its probabilities, and all keep their numbers: weights no
    longer need to fall.
    """
    rows = expected.rows.astype(np.float64)
    found = expected.features / np.where(rows > 0, rows, 1.0)
    return replace(
        model,
        probabilities=np.where(rows > 0, found, model.probabilities),
        weights=rows / rows.sum() if rows.any() else model.weights,
    )
