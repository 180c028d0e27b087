"""Distance between the distributions of word pairs in two states of a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable, short
from streaming_moments.statistics.counts.statistics import MomentStatistics


@dataclass(frozen=True, eq=False)
class PairRows:
    """Core rows of the pair counts of one row block.

    basis : fingerprint of the basis, which names the words
    index, step : the row block
    pairs : (rows, core) int64, ordered pairs of distinct positions
    """

    basis: str
    index: int
    step: int
    pairs: NDArray[np.int64]

    @classmethod
    def of(cls, statistics: MomentStatistics) -> PairRows:
        """Return the core rows of a block of statistics, without copying them."""
        block = statistics.block
        rows = block.size(statistics.basis.core)
        pairs = statistics.pair_counts[:rows]
        return cls(statistics.basis.fingerprint, block.index, block.step, pairs)

    @property
    def total(self) -> int:
        """Number of pairs in these rows, exactly."""
        return sum(self.pairs.sum(axis=1).tolist())


def pair_distance(blocks: Iterable[tuple[PairRows, PairRows]], before: int, after: int) -> float:
    """Return the total variation between the distributions of core word pairs in two states.

    It is `1/2 sum_ih |P_ih / S - P'_ih / S'|` over core words i and h. `before` and `after` are S
    and S', the sums of P and P' over these words, which `PairRows.total` gives for each block.
    `blocks` yields each row block once, of both states, so that only two blocks are in memory.

    Raises ForeignStatistics for blocks of different bases or rows, NotIdentifiable for a state
    without pairs, and InvalidInput if a block has more pairs than S or S'.

    Examples
    --------
    >>> one, two = np.array([[0, 2], [2, 0]]), np.array([[0, 1], [1, 2]])
    >>> pair_distance([(PairRows("", 0, 1, one), PairRows("", 0, 1, two))], 4, 4)
    0.5
    """
    if not before or not after:
        raise NotIdentifiable(
            f"the states have {before} and {after} pairs of core words; compare states that have "
            "some"
        )
    return sum(pair_difference(one, two, before, after) for one, two in blocks)


def pair_difference(one: PairRows, other: PairRows, before: int, after: int) -> float:
    """Return the contribution of one row block to `pair_distance`; raises the same errors."""
    if one.basis != other.basis:
        raise ForeignStatistics(
            f"the states have bases {short(one.basis)} and {short(other.basis)}; compare "
            "states of one lineage, because only these have the same core"
        )
    if (one.index, one.step) != (other.index, other.step):
        raise ForeignStatistics(
            f"row block {one.index} of {one.step} and {other.index} of {other.step} have "
            "different words; give the same row block of both"
        )
    if one.total > before or other.total > after:
        raise InvalidInput(
            "a row block has more pairs than the total `before` or `after`; these must be sums "
            "over all row blocks"
        )
    return float(np.abs(one.pairs / before - other.pairs / after).sum() / 2)
