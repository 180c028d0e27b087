"""Expectation maximisation on the table of triples of three views; reads no records.

Maximises the composite likelihood `sum count log P(left, middle, right)` of hidden states. Views
are independent given the middle state, so a triple costs k steps, and the result depends only on
the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.three_view.triples import Triples
from streaming_moments.numerics.simplex import as_columns

# Share of a distribution spread over all entries before the first round: zeros would stay.
_SPREAD = 1e-3
# Limits of a step from round to round.
_RATIOS = 1e-3, 1e3


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
    """Best parameters after `rounds` rounds, and the nats per triple of the round before them.

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
    return _made(hidden, [(1 - _SPREAD) * one + _SPREAD / len(one) for one in hidden.tables])


def _further(hidden: AnyHidden, following: AnyHidden, reach: float) -> AnyHidden:
    """Parameters extrapolated from a round by a multiple of its step."""
    # of small tables a step takes as long for one as for all
    old, new = _joined(hidden), _joined(following)
    # zeros stay zero, and nothing else becomes zero
    ratio = np.divide(new, old, out=np.ones(new.shape), where=old > 0)
    # of a small table `clip` takes three times as long
    bounded = np.minimum(np.maximum(ratio, _RATIOS[0]), _RATIOS[1])
    beyond = new * bounded ** (reach - 1)
    tables, end = [], 0
    for table in following.tables:
        start, end = end, end + table.size
        tables.append(as_columns(beyond[start:end].reshape(table.shape)))
    return _made(following, tables)


def _joined(hidden: Hidden) -> NDArray[np.float64]:
    return np.concatenate([table.ravel() for table in hidden.tables])


def _made(hidden: AnyHidden, tables: Iterable[NDArray[np.float64]]) -> AnyHidden:
    made: Any = type(hidden)
    found: AnyHidden = made(*tables)
    return found
