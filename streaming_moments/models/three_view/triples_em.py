"""Expectation maximisation on the table of triples that three views hold: no record is read again.

The composite likelihood `sum count log P(left, middle, right)` of hidden states, whatever lies
between them; given the middle one the views are independent, so a triple costs k, and the result
depends on the table alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view.triples import Triples
from streaming_moments.numerics.simplex import as_columns

# Of a distribution, spread over all of it before the first round: what is 0 would stay 0.
_SPREAD = 1e-3
# How far a step from round to round may go.
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


AnyHidden = TypeVar("AnyHidden", bound=Hidden)


def after_rounds(
    triples: Triples, start: AnyHidden, rounds: int, growth: float = 1.0
) -> tuple[AnyHidden, float]:
    """The parameters after so many rounds, and the nats a triple of the last but one.

    With a growth above 1 each step goes by that factor further than the last one, in logarithms, as
    long as triples become likelier; else the next round begins anew where one before it led
    (adaptive overrelaxation: Salakhutdinov and Roweis 2003).
    """
    hidden, found, best, reach = start, start, -np.inf, 1.0
    # a step that went too far may leave what is no number, and is taken back
    with np.errstate(invalid="ignore", over="ignore"):
        for _ in range(rounds):
            following, score = hidden.after_round(triples)
            if not score >= best:
                hidden, reach = found, 1.0
                continue
            found, best = following, score
            hidden = _further(hidden, found, reach) if reach > 1 else found
            reach *= growth
    return found, best


def spread(hidden: AnyHidden) -> AnyHidden:
    """With a small share of everything, so that what was estimated as 0 can grow."""
    return _each(lambda table: (1 - _SPREAD) * table + _SPREAD / len(table), hidden)


def _further(hidden: AnyHidden, following: AnyHidden, reach: float) -> AnyHidden:
    """Beyond where a round led, by that multiple of its step."""

    def beyond(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        # what is 0 stays so, and nothing becomes 0
        ratio = np.divide(new, old, out=np.ones_like(new), where=old > 0)
        return as_columns(new * np.clip(ratio, *_RATIOS) ** (reach - 1))

    return _each(beyond, hidden, following)


def _each(function: Callable[..., NDArray[np.float64]], *hidden: AnyHidden) -> AnyHidden:
    made: Any = type(hidden[0])
    found: AnyHidden = made(*map(function, *(one.tables for one in hidden)))
    return found
