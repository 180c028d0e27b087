"""Expectation maximisation on the table of triples of three views; this reads no records.

Rounds maximise the composite likelihood `sum count log P(left, middle, right)` of hidden states.
The views are independent given the state of the middle word, so a triple costs k steps for k
states. The result depends only on the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view import triple_kernels
from streaming_moments.models.three_view.triples import Triples

# Before the first round, this share of each distribution is spread over all its entries, because
# rounds never change a probability of 0.
_SPREAD = 1e-3


class Hidden(Protocol):
    """Parameters of hidden states, as a dataclass whose fields are `tables`."""

    @property
    def tables(self) -> tuple[NDArray[np.float64], ...]:
        """All tables of probabilities; columns sum to 1.

        The first table (n, k) has the words of the middle view in each state.
        """

    def drawn(self, rng: np.random.Generator) -> Self:
        """Draw random parameters of the same shapes as these."""

    def after_round(self, triples: Triples) -> tuple[Self, float]:
        """Return the parameters after a round, and the nats per triple of the parameters before."""


AnyHidden = TypeVar("AnyHidden", bound=Hidden)


def after_rounds(
    triples: Triples, start: AnyHidden, rounds: int, growth: float = 1.0
) -> tuple[AnyHidden, float]:
    """Make `rounds` rounds; return the best parameters, and a score in nats per triple.

    A round computes the likelihood of the parameters before it. So the score is that of the
    parameters one round before the returned ones.

    If `growth` is above 1, rounds take longer steps in the logarithms of the parameters (adaptive
    overrelaxation: Salakhutdinov and Roweis 2003). As long as the likelihood increases, each step
    is longer than the last by this factor. When it decreases, the next round starts from the last
    result before extrapolation.
    """
    hidden, found, best, reach = start, start, -np.inf, 1.0
    # too long a step can give NaN; the next round then starts from the last result before
    # extrapolation
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
    """Give every entry of each distribution a small share, so that estimates of 0 can grow."""
    return _each(lambda table: (1 - _SPREAD) * table + _SPREAD / len(table), hidden)


def _further(hidden: AnyHidden, following: AnyHidden, reach: float) -> AnyHidden:
    """Extrapolate the parameters after a round: go further in the direction of their change.

    The step of the round is multiplied by `reach`.
    """

    def beyond(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        # Each distribution becomes one column. All arrays get the same memory order, because the
        # kernel is compiled again for another order.
        before, after = (np.ascontiguousarray(one).reshape(len(one), -1) for one in (old, new))
        found = np.empty_like(after)
        triple_kernels.step_further(before, after, reach - 1, found)
        return found.reshape(new.shape)

    return _each(beyond, hidden, following)


def _each(function: Callable[..., NDArray[np.float64]], *hidden: AnyHidden) -> AnyHidden:
    made: Any = type(hidden[0])
    found: AnyHidden = made(*map(function, *(one.tables for one in hidden)))
    return found
