"""Passes: expectation maximisation of a mixture over records of three views.

The sums of a pass are integers, so that they are exact in any order of the records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.statistics.expected_sums import (
    BESIDE,
    MIXED,
    UNIT,
    IntegerSums,
    columns_of,
    mixed_columns,
)
from streaming_moments.statistics.views.foundation import VIEWS
from streaming_moments.statistics.views.records import ViewBatch

# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = (UNIT, MIXED, BESIDE)


@dataclass(frozen=True, eq=False)
class ExpectedViews(IntegerSums):
    """Expected sums of a pass over records, in integers, so that they are exact in any order.

    rows, left, right : (n, k) int64, expected number of each word of a view in each state, in units
        of 2^-20 of a word
    records : (k,) int64, expected number of records of each state, in units of 2^-20 of a record
    documents, tokens : number of records read, and number of words in them
    """

    counted = "words"

    rows: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    records: NDArray[np.int64]

    @classmethod
    def zero(cls, model: MultiViewMixture) -> ExpectedViews:
        """Return empty sums."""
        return cls.zeros(model.rows, model.left, model.right, model.weights)


@dataclass(frozen=True, eq=False)
class ViewReader:
    """Mixture that is prepared for reading records of views.

    model : mixture that assigns records to states
    """

    model: MultiViewMixture

    def add(self, batch: ViewBatch, total: ExpectedViews) -> ExpectedViews:
        """Add the records of a batch to `total` in place.

        A record that lacks views is read by its other views. A record without words is skipped.
        Raises the same errors as `MultiViewMixture.posterior`.
        """
        views = dict(zip(VIEWS, batch.views, strict=True))
        units = np.rint(self.model.posterior(views) * UNIT).astype(np.int64)
        held = batch.lengths > 0
        units[~held] = 0
        rows, left, right = (view.to_csr().T @ units for view in batch.views)
        found = ExpectedViews(rows, left, right, units.sum(axis=0))
        return total.add(found.counting(int(held.sum()), int(batch.lengths.sum())))


def begun(model: MultiViewMixture) -> MultiViewMixture:
    """Return the mixture with which the first pass after a fit reads records.

    A share `MIXED` of the mean over all states is mixed into the distribution of each state. Passes
    never change a probability of 0, so words that a state lacks would otherwise be excluded for
    ever.
    """
    tables = model.rows, model.left, model.right
    rows, left, right = (mixed_columns(table, table @ model.weights) for table in tables)
    return replace(model, rows=rows, left=left, right=right)


def improved(model: MultiViewMixture, expected: ExpectedViews) -> MultiViewMixture:
    """Return the mixture of maximum likelihood, given the expected sums of a pass.

    First, `BESIDE` is added to the sums of each word. A state without words of a view keeps its
    distribution of this view. States keep their order, also if their weights no longer decrease.
    """
    records = expected.records
    return replace(
        model,
        rows=columns_of(expected.rows, model.rows, BESIDE),
        left=columns_of(expected.left, model.left, BESIDE),
        right=columns_of(expected.right, model.right, BESIDE),
        weights=records / records.sum() if records.any() else model.weights,
    )
