"""Triples that three views hold, and what they say of their middle states; no record is read."""

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

# Of so many kinds, which fill so much of their table, the table is read faster than a list of them.
_DENSE, _FILLED = 1 << 18, 0.2
# Steps for a triple beside those for its states; those for one place of a table take a fifth.
_BESIDE, _PLACE = 40, 0.2
_LEAST = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Posteriors:
    """What triples say of their middle states.

    Parameters
    ----------
    left, right : (n, k) float64
        Expected counts of the words of the outer views, over what they were expected by.
    middle : (n, k) float64
        Those of the middle view.
    score : float
        Nats a triple.
    """

    left: NDArray[np.float64]
    middle: NDArray[np.float64]
    right: NDArray[np.float64]
    score: float


class Triples(Protocol):
    """Distinct triples with their counts."""

    @property
    def kinds(self) -> int:
        """How many there are, or could be."""

    def work(self, k: int) -> float:
        """Steps that `posteriors` takes with k states."""

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """Of `P(left, middle, right, h) = before[left, h] middle[middle, h] after[right, h]`."""


@dataclass(frozen=True, eq=False)
class ListedTriples:
    """Triples one by one: `Triples`.

    Parameters
    ----------
    cells : (triples, 3) int64
        Words of the left view, of the middle one, which has rows, and of the right one.
    counts : (triples,) float64
        How often each was seen.
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of_table(cls, table: NDArray[np.int64]) -> ListedTriples:
        """Of a table (middle, left, right) of counts."""
        middle, left, right = np.nonzero(table)
        cells = np.stack([left, middle, right], axis=1)
        return cls(cells, table[middle, left, right].astype(np.float64))

    @property
    def kinds(self) -> int:
        """How many there are."""
        return self.counts.size

    def work(self, k: int) -> float:
        """Steps of `posteriors`."""
        return float(self.kinds * (_BESIDE + k))

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """As of `Triples`."""
        left, own, right = (np.zeros_like(one) for one in (before, middle, after))
        score = triple_kernels.triple_posteriors(
            self.cells, self.counts, before, middle, after, left, own, right
        )
        return Posteriors(left, own, right, float(score / self.counts.sum()))


@dataclass(frozen=True, eq=False)
class TripleTable:
    """Triples as a table, most of which were seen: `Triples`, to seven digits.

    Parameters
    ----------
    table : (m, l, r) float32
        How often each was seen, middle view first.
    """

    table: NDArray[np.float32]

    __sizeof__ = held_bytes

    @property
    def kinds(self) -> int:
        """How many there could be."""
        return self.table.size

    @cached_property
    def total(self) -> float:
        """Of all counts."""
        return float(self.table.sum(dtype=np.float64))

    def work(self, k: int) -> float:
        """Steps of `posteriors`."""
        return _PLACE * self.kinds * (_BESIDE + k)

    def posteriors(
        self, before: NDArray[np.float64], middle: NDArray[np.float64], after: NDArray[np.float64]
    ) -> Posteriors:
        """As of `Triples`."""
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
    """(n, l, r) int64 counts of triples, middle view first, of sketches that are identities."""
    return interleaved(rows.gathered("triples", _table))


def triples_of(table: NDArray[np.int64]) -> Triples:
    """Triples of a table (middle, left, right) of counts, as they are read fastest.

    Examples
    --------
    >>> triples_of(np.array([[[2, 0], [1, 0]]])).kinds
    2
    """
    kinds = int(np.count_nonzero(table))
    if kinds < max(_DENSE, _FILLED * table.size):
        return ListedTriples.of_table(table)
    return TripleTable(table.astype(np.float32))


def _table(statistics: ViewStatistics) -> NDArray[np.int64]:
    return statistics.sums[TRIPLES][:, 1:, 1:]
