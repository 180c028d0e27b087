"""Expectation maximisation on the table of triples of three views; this reads no records.

Rounds maximise the composite likelihood `sum count log P(left, middle, right)` of hidden states.
Views are independent given the middle state, so a triple costs k steps. The result depends only on
the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view import triple_kernels
from streaming_moments.models.three_view.triples import Triples

# Before the first round, this share of a distribution is spread over all entries, because rounds
# never change a probability of 0.
_SPREAD = 1e-3


class Hidden(Protocol):
    """Parameters of hidden states, a dataclass of `tables`."""

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """All tables; columns sum to 1, and the first table (n, k) is of the middle view."""

    def drawn(self, rng: np.random.Generator) -> Self:
        """Draw random parameters of the same shapes."""

    def after_round(self, triples: Triples) -> tuple[Self, float]:
        """Return the parameters after a round, and the nats per triple of those before it."""


AnyHidden = TypeVar("AnyHidden", bound=Hidden)


def after_rounds(
    triples: Triples, start: AnyHidden, rounds: int, growth: float = 1.0
) -> tuple[AnyHidden, float]:
    """Return the best parameters of `rounds` rounds, and a score in nats per triple.

    The score is that of the parameters one round before the best ones.

    If `growth` is above 1, each step is longer than the last by this factor, in logarithms, while
    the likelihood increases. When it decreases, the next round starts from the last plain result
    (adaptive overrelaxation: Salakhutdinov and Roweis 2003).
    """
    hidden, found, best, reach = start, start, -np.inf, 1.0
    # too long a step can give NaN; the next round then starts from the last plain result
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
    """Mix a small share of every entry into the parameters, so that estimates of 0 can grow."""
    return _each(lambda table: (1 - _SPREAD) * table + _SPREAD / len(table), hidden)


def _further(hidden: AnyHidden, following: AnyHidden, reach: float) -> AnyHidden:
    """Extrapolate parameters beyond a round, by a multiple of the round's step."""

    def beyond(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        # Each distribution becomes one column. All arrays get the same memory order, because the
        # kernel is compiled for each order.
        before, after = (np.ascontiguousarray(one).reshape(len(one), -1) for one in (old, new))
        found = np.empty_like(after)
        triple_kernels.step_further(before, after, reach - 1, found)
        return found.reshape(new.shape)

    return _each(beyond, hidden, following)


def _each(function: Callable[..., NDArray[np.float64]], *hidden: AnyHidden) -> AnyHidden:
    made: Any = type(hidden[0])
    found: AnyHidden = made(*map(function, *(one.tables for one in hidden)))
    return found
