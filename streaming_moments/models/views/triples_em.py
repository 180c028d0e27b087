"""Expectation maximisation on the table of triples that three views hold: no record is read again.

The composite likelihood `sum count log P(left, middle, right)` of hidden states, whatever lies
between them; given the middle one the views are independent, so a triple costs k, and the result
depends on the table alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.rows import Rows
from streaming_moments.models.views import decoding
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics

FEWEST, MOST = 3, 24  # random starts beside the spectral ones
# Triples times states times rounds of a start, of which a second has room for some 10^8.
_WORK = 1e8
# Which share of the starts goes on for how many times the rounds.
_RACE = ((1, 0.5), (4, 1), (12, 2))
# Of a distribution, spread over all of it before the first round: what is 0 would stay 0.
_SPREAD = 1e-3
# Of a step from round to round, and how far one may go.
_GROWTH = 1.2
_RATIOS = 1e-3, 1e3


@dataclass(frozen=True, eq=False)
class Triples:
    """Distinct triples with their counts.

    Parameters
    ----------
    cells : (triples, 3) int64
        Words of the left view, of the middle one, which has rows, and of the right one.
    counts : (triples,) float64
        How often each was seen.
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of_table(cls, table: NDArray[np.int64]) -> Triples:
        """Of a table (middle, left, right) of counts."""
        middle, left, right = np.nonzero(table)
        cells = np.stack([left, middle, right], axis=1)
        return cls(cells, table[middle, left, right].astype(np.float64))


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


class Hidden(Protocol):
    """Parameters of hidden states, a dataclass of its `tables`."""

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """All of them; columns sum to 1, the first (n, k) is of the middle view."""

    def drawn(self, rng: np.random.Generator) -> Self:
        """Others of these shapes, at random."""

    def after_round(self, triples: Triples) -> tuple[Self, float]:
        """Likelier ones, and the nats a triple of these."""


_Hidden = TypeVar("_Hidden", bound=Hidden)


def triple_table(rows: Rows) -> NDArray[np.int64]:
    """(n, l, r) int64 counts of triples, middle view first, of sketches that are identities."""
    return interleaved(rows.gathered("triples", _table))


def posteriors(
    triples: Triples,
    before: NDArray[np.float64],
    middle: NDArray[np.float64],
    after: NDArray[np.float64],
) -> Posteriors:
    """Of `P(left, middle, right, h) = before[left, h] middle[middle, h] after[right, h]`."""
    left, own, right = (np.zeros_like(one) for one in (before, middle, after))
    cells = triples.cells, triples.counts
    score = decoding.triple_posteriors(*cells, before, middle, after, left, own, right)
    return Posteriors(left, own, right, float(score / triples.counts.sum()))


def likelier(
    triples: Triples, given: Sequence[_Hidden], rounds: int, seed: int = 0, drawn: bool = True
) -> tuple[_Hidden, float]:
    """The likeliest of the starts given and of some random ones, with nats a triple.

    All take half of the rounds; the likeliest quarter as many again as there are, and of all the
    likeliest twelfth twice as many. There are 24 random starts, of large tables fewer, or none.
    """
    rng = np.random.default_rng(seed)
    k = given[0].tables[0].shape[1]
    random = int(_WORK / max(1, triples.counts.size * k * rounds))
    number = min(max(random, FEWEST), MOST) if drawn and k > 1 else 0
    begun = [*map(spread, given), *(given[0].drawn(rng) for _ in range(number))]
    found = [(start, -np.inf) for start in begun]
    for share, of_rounds in _RACE:
        kept = sorted(found, key=lambda one: -one[1])[: math.ceil(len(begun) / share)]
        more = math.ceil(rounds * of_rounds)
        found = [after_rounds(triples, hidden, more, _GROWTH) for hidden, _ in kept]
    return max(found, key=lambda one: one[1])


def after_rounds(
    triples: Triples, start: _Hidden, rounds: int, growth: float = 1.0
) -> tuple[_Hidden, float]:
    """The parameters after so many rounds, and the nats a triple of the last but one.

    With a growth above 1 each step goes by that factor further than the last one, in logarithms, as
    long as triples become likelier; else the next round begins anew where one before it led
    (adaptive overrelaxation: Salakhutdinov and Roweis 2003).
    """
    hidden, found, best, reach = start, start, -np.inf, 1.0
    for _ in range(rounds):
        following, score = hidden.after_round(triples)
        if score < best:
            hidden, reach = found, 1.0
            continue
        found, best = following, score
        hidden = _further(hidden, found, reach) if reach > 1 else found
        reach *= growth
    return found, best


def spread(hidden: _Hidden) -> _Hidden:
    """With a small share of everything, so that what was estimated as 0 can grow."""
    return _each(lambda table: (1 - _SPREAD) * table + _SPREAD / len(table), hidden)


def as_columns(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column divided by its sum; what nothing is of any longer is as any other could be."""
    sums = table.sum(axis=0)
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / len(table)))


def _further(hidden: _Hidden, following: _Hidden, reach: float) -> _Hidden:
    """Beyond where a round led, by that multiple of its step."""

    def beyond(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        # what is 0 stays so, and nothing becomes 0
        ratio = np.divide(new, old, out=np.ones_like(new), where=old > 0)
        return as_columns(new * np.clip(ratio, *_RATIOS) ** (reach - 1))

    return _each(beyond, hidden, following)


def _each(function: Callable[..., NDArray[np.float64]], *hidden: _Hidden) -> _Hidden:
    made: Any = type(hidden[0])
    found: _Hidden = made(*map(function, *(one.tables for one in hidden)))
    return found


def _table(statistics: ViewStatistics) -> NDArray[np.int64]:
    return statistics.sums[TRIPLES][:, 1:, 1:]
