"""Expectation maximisation on the table of triples of three views; reads no records.

Maximises the composite likelihood `sum count log P(left, middle, right)` of hidden states. Views
are independent given the middle state, so a triple costs k steps, and the result depends only on
the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view import triple_kernels
from streaming_moments.models.three_view.triples import Triples

# Share of a distribution that is spread over all entries before the first round, because rounds
# never change a probability of 0.
_SPREAD = 1e-3


class Hidden(Protocol):
    """Parameters of hidden states, a dataclass of `tables`."""

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """All tables; columns sum to 1, and the first table (n, k) is of the middle view."""

    def drawn(self, rng: np.random.Generator) -> Self:
        """Random parameters of the same shapes."""

    def after_round(self, triples: Triples) -> tuple[Self, float]:
        """Parameters after a round, and the nats per triple of the current ones."""


AnyHidden = TypeVar("AnyHidden", bound=Hidden)


def after_rounds(
    triples: Triples, start: AnyHidden, rounds: int, growth: float = 1.0
) -> tuple[AnyHidden, float]:
    """Best parameters of `rounds` rounds, and a score in nats per triple.

    The score is that of the parameters before the round that led to the best ones.

    With a growth above 1 each step is longer than the last by that factor, in logarithms, while the
    likelihood increases. Otherwise the next round restarts from the last plain result (adaptive
    overrelaxation: Salakhutdinov and Roweis 2003).
    """
    hidden, found, best, reach = start, start, -np.inf, 1.0
    # too long a step can give NaN; it is then undone
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
    """Parameters mixed with a small share of every entry, so that estimates of 0 can grow."""
    return _each(lambda table: (1 - _SPREAD) * table + _SPREAD / len(table), hidden)


def _further(hidden: AnyHidden, following: AnyHidden, reach: float) -> AnyHidden:
    """Parameters extrapolated from a round by a multiple of its step."""

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
