"""Triples: counts of triples of words in three views, and posteriors of their middle states.

This module reads no records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.rows import Rows
from streaming_moments.models.three_view import triple_kernels
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

# A table is used instead of a list if it has at most this many cells, and at least this share of
# its cells is nonzero. It is then faster than a list.
_DENSE, _FILLED = 1 << 18, 0.2
# Estimated steps of computation: a triple in a list costs this many steps, plus one for each state.
# A cell of a table costs this share of what a triple in a list costs.
_BESIDE, _PLACE = 40, 0.2
_LEAST = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Expected counts of words in each state of the middle word of their triples.

    left, right : (n, k) float64, expected counts of the words of the left and right view, divided
        by the parameters of these words
    middle : (n, k) float64, expected counts of the words of the middle view
    score : mean log-likelihood of a triple, in nats
    """

    left: NDArray[np.float64]
    middle: NDArray[np.float64]
    right: NDArray[np.float64]
    score: float


class Triples(Protocol):
    """Distinct triples of words, with the number of times that each was counted."""

    @property
    def kinds(self) -> int:
        """Number of distinct triples in a list, or of possible triples in a table."""

    def work(self, k: int) -> float:
        """Return how many steps of computation `posteriors` takes with k states."""

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """Infer the state of the middle word of each triple.

        The probability of a triple and a state h is `before[x1, h] middle[x2, h] after[x3, h]`.
        """


@dataclass(frozen=True, eq=False)
class ListedTriples:
    """List of the distinct triples; implements `Triples`."""

    cells: NDArray[np.int64]
    counts: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of_table(cls, table: NDArray[np.int64]) -> ListedTriples:
        """List the triples that a table counts; its axes are the middle, left and right words."""
        middle, left, right = np.nonzero(table)
        cells = np.stack([left, middle, right], axis=1)
        return cls(cells, table[middle, left, right].astype(np.float64))

    @property
    def kinds(self) -> int:
        """Number of distinct triples."""
        return self.counts.size

    @cached_property
    def total(self) -> float:
        """Sum of all counts."""
        return float(self.counts.sum())

    def work(self, k: int) -> float:
        """Return how many steps of computation `posteriors` takes with k states."""
        return float(self.kinds * (_BESIDE + k))

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """Return the posteriors, as `Triples` defines them."""
        left, own, right = (np.zeros(one.shape) for one in (before, middle, after))
        score = triple_kernels.triple_posteriors(
            self.cells, self.counts, before, middle, after, left, own, right
        )
        return Posteriors(left, own, right, float(score / self.total))


@dataclass(frozen=True, eq=False)
class TripleTable:
    """Table of the counts of all possible triples, to seven digits; implements `Triples`.

    table : (m, l, r) float32, number of occurrences of each triple; the axes are the middle, left
        and right words
    """

    table: NDArray[np.float32]

    __sizeof__ = held_bytes

    @property
    def kinds(self) -> int:
        """Number of possible triples."""
        return self.table.size

    @cached_property
    def total(self) -> float:
        """Sum of all counts."""
        return float(self.table.sum(dtype=np.float64))

    def work(self, k: int) -> float:
        """Return how many steps of computation `posteriors` takes with k states."""
        return _PLACE * self.kinds * (_BESIDE + k)

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """Return the posteriors, as `Triples` defines them."""
        given = [one.astype(np.float32) for one in (before, middle, after)]
        left, own, right = (np.zeros_like(one) for one in given)
        before32, middle32, after32 = given
        score = 0.0
        for word, counts in enumerate(self.table):
            pairs = before32 * middle32[word]
            shares = pairs @ after32.T
            shares += _LEAST
            score += float((counts * np.log(shares)).sum(dtype=np.float64))
            np.divide(counts, shares, out=shares)
            seen = shares @ after32
            left += middle32[word] * seen
            own[word] = (pairs * seen).sum(axis=0)
            right += shares.T @ pairs
        double = [one.astype(np.float64) for one in (left, own, right)]
        return Posteriors(double[0], double[1], double[2], score / self.total)


def triple_table(rows: Rows) -> NDArray[np.int64]:
    """Return the (n, l, r) counts of triples; the axes are middle, left and right words.

    The statistics must have identities as sketches.
    """
    return interleaved(rows.gathered("triples", _table))


def triples_of(table: NDArray[np.int64]) -> Triples:
    """Make the faster of a list and a table from a table of counts (middle, left, right)."""
    kinds = int(np.count_nonzero(table))
    if kinds < max(_DENSE, _FILLED * table.size):
        return ListedTriples.of_table(table)
    return TripleTable(table.astype(np.float32))


def _table(statistics: ViewStatistics) -> NDArray[np.int64]:
    return statistics.sums[TRIPLES][:, 1:, 1:]
