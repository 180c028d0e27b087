"""Drift: how far a corpus has moved away from the state, the words and the basis of a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable, short
from streaming_moments.statistics import MomentStatistics


@dataclass(frozen=True)
class Drift:
    """Four numbers that say whether vocabulary, basis and model still fit.

    Parameters
    ----------
    captured : float or None
        Smallest share of a leading eigenvalue of the second moment that the basis sees; well
        below 1 it misses a topic. None where it was not computed.
    outside_share : float or None
        Share of tokens outside the vocabulary; None where no tokens are known.
    effective_documents : float
        `1 / W3`: below some hundreds a few long documents rule the third moment.
    pair_distance : float or None
        Total variation between the pair distributions of two states, 0 to 1; None where they
        cannot be compared.
    """

    captured: float | None
    outside_share: float | None
    effective_documents: float
    pair_distance: float | None


@dataclass(frozen=True)
class DriftBounds:
    """From where drift is too much; None bounds nothing.

    Parameters
    ----------
    captured : float, optional
        Least share of an eigenvalue.
    outside_share : float, optional
        Largest share of tokens outside the vocabulary.
    effective_documents : float, optional
        Least number.
    pair_distance : float, optional
        Largest total variation.
    """

    captured: float | None = None
    outside_share: float | None = None
    effective_documents: float | None = None
    pair_distance: float | None = None

    def passed_by(self, drift: Drift) -> tuple[str, ...]:
        """What of a drift is out of bounds, one phrase each; what is not known is within.

        Examples
        --------
        >>> DriftBounds(captured=0.5).passed_by(Drift(0.25, None, 900.0, None))
        ('captured spectrum 0.25 is below 0.5',)
        """
        compared: Sequence[tuple[str, float | None, float | None, bool]] = (
            ("captured spectrum", drift.captured, self.captured, True),
            ("share outside the vocabulary", drift.outside_share, self.outside_share, False),
            (
                "effective number of documents",
                drift.effective_documents,
                self.effective_documents,
                True,
            ),
            ("distance of pair distributions", drift.pair_distance, self.pair_distance, False),
        )
        phrases = []
        for name, value, bound, least in compared:
            if value is None or bound is None or (value >= bound if least else value <= bound):
                continue
            phrases.append(f"{name} {value:.3g} is {'below' if least else 'above'} {bound:g}")
        return tuple(phrases)


def outside_share(tokens: int, outside: int) -> float | None:
    """Share of tokens outside the vocabulary; None without tokens.

    Examples
    --------
    >>> outside_share(30, 10), outside_share(0, 0)
    (0.25, None)
    """
    total = tokens + outside
    return outside / total if total else None


@dataclass(frozen=True, eq=False)
class PairRows:
    """Core rows of the pair counts of one row block.

    Parameters
    ----------
    basis : str
        Fingerprint of the basis, which names the words.
    index, step : int
        The row block.
    pairs : (rows, core) int64
        Ordered pairs of distinct positions.
    """

    basis: str
    index: int
    step: int
    pairs: NDArray[np.int64]

    @classmethod
    def of(cls, statistics: MomentStatistics) -> PairRows:
        """Core rows of a block of statistics, sharing their memory."""
        block = statistics.block
        rows = block.size(statistics.basis.core)
        pairs = statistics.pair_counts[:rows]
        return cls(statistics.basis.fingerprint, block.index, block.step, pairs)

    @property
    def total(self) -> int:
        """Pairs in these rows, exactly."""
        return sum(self.pairs.sum(axis=1).tolist())


def pair_distance(blocks: Iterable[tuple[PairRows, PairRows]], before: int, after: int) -> float:
    """Total variation between the pair distributions of two states inside the core.

    `1/2 sum_ih |P_ih / S - P'_ih / S'|` over core words i and h, S and S' being the sums of P and
    P' there. Block by block: two blocks of rows are held at a time.

    Parameters
    ----------
    blocks : iterable of (PairRows, PairRows)
        Each row block once, before and after.
    before, after : int
        S and S', the sums of `PairRows.total`.

    Raises
    ------
    ForeignStatistics
        Blocks of different bases or rows.
    NotIdentifiable
        A state without pairs.
    InvalidInput
        Blocks whose pairs are more than S or S'.

    Examples
    --------
    >>> one, two = np.array([[0, 2], [2, 0]]), np.array([[0, 1], [1, 2]])
    >>> pair_distance([(PairRows("", 0, 1, one), PairRows("", 0, 1, two))], 4, 4)
    0.5
    """
    if not before or not after:
        raise NotIdentifiable(
            f"the states hold {before} and {after} pairs of core words; compare states with some"
        )
    return sum(pair_difference(one, two, before, after) for one, two in blocks)


def pair_difference(one: PairRows, other: PairRows, before: int, after: int) -> float:
    """What one row block adds to `pair_distance`; errors as there."""
    if one.basis != other.basis:
        raise ForeignStatistics(
            f"the states are of bases {short(one.basis)} and {short(other.basis)}; only states "
            "of one lineage have the same core"
        )
    if (one.index, one.step) != (other.index, other.step):
        raise ForeignStatistics(
            f"row block {one.index} of {one.step} and {other.index} of {other.step} are not of "
            "the same words; give the same row block of both"
        )
    if one.total > before or other.total > after:
        raise InvalidInput("a row block holds more pairs than its state; give the sums of all")
    return float(np.abs(one.pairs / before - other.pairs / after).sum() / 2)
