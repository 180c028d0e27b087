"""Expectation maximisation on the table of triples that three views hold: no record is read again.

The composite likelihood `sum count log P(left, middle, right)` of hidden states, whatever lies
between them; given the middle one the views are independent, so a triple costs k, and the result
depends on the table alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.views.triples import Triples
from streaming_moments.numerics.simplex import as_columns

FEWEST, MOST = 3, 24  # random starts beside the spectral ones
# Triples times states times rounds of a start, of which a second has room for some 10^8.
_WORK = 1e8
# Steps of all rounds, as many as two thirds of a second have room for; of the halves a third.
_MOST_WORK = 1.5e9
# Which share of the starts goes on for how many times the rounds.
_RACE = ((1, 0.5), (4, 1), (12, 2))
# Of a distribution, spread over all of it before the first round: what is 0 would stay 0.
_SPREAD = 1e-3
# Of a step from round to round, and how far one may go.
_GROWTH = 1.2
_RATIOS = 1e-3, 1e3


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


def likelier(
    triples: Triples,
    given: Sequence[_Hidden],
    rounds: int,
    seed: int = 0,
    drawn: bool = True,
    usual: int | None = None,
) -> tuple[_Hidden, float, int]:
    """The likeliest of the starts given and of some random ones, with nats a triple, and rounds.

    All take half of the rounds; the likeliest quarter as many again as there are, and of all the
    likeliest twelfth twice as many. There are 24 random starts, of large tables fewer, or none.
    Where the `usual` rounds would take above a second, which is told by the number of triples and
    states, rounds are fewer by as much, whatever was asked for.
    """
    rng = np.random.default_rng(seed)
    k = given[0].tables[0].shape[1]
    random = int(_WORK / max(1, triples.kinds * k * rounds))
    number = min(max(random, FEWEST), MOST) if drawn and k > 1 else 0
    begun = [*map(spread, given), *(given[0].drawn(rng) for _ in range(number))]
    going = [(math.ceil(len(begun) / share), of_rounds) for share, of_rounds in _RACE]
    work = triples.work(k) * sum(starts * of_rounds for starts, of_rounds in going)
    most = _MOST_WORK if drawn else _MOST_WORK / 3
    rounds = math.ceil(rounds * min(1, most / max(1.0, work * (usual or rounds))))
    found = [(start, -np.inf) for start in begun]
    for starts, of_rounds in going:
        kept = sorted(found, key=lambda one: -one[1])[:starts]
        more = math.ceil(rounds * of_rounds)
        found = [after_rounds(triples, hidden, more, _GROWTH) for hidden, _ in kept]
    return *max(found, key=lambda one: one[1]), rounds


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
