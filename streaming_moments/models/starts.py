"""Second start: passes begin elsewhere than at a fit if records are more likely after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

MOMENTS, PILOT = "moments", "pilot"
"""Where passes began: at a fit of statistics, or at the best start from a pilot of records."""
NOWHERE = "nowhere"
"""Start of a model that only says how many states there are."""
ROWS = 4000
"""Records of a pilot to which starts are fitted, and as many more by which they are compared."""
STARTS = 10
_KEPT = 3  # starts that continue until they are settled
_PASSES, _MOST = 10, 500  # that each start makes, and that a settled one makes at most
_SETTLED = 2e-6  # nats a record that so many passes add to a settled start
_ERRORS = 2.0  # standard errors of the gain in log-likelihood above which the pilot starts
_GAIN = 1e-3  # nats a record that a start gains at least: less is another rounding of one optimum

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Pilot(Generic[M]):
    """Records by which starts of passes are compared, and how a family reads them.

    Parameters
    ----------
    train : batch
        Records to which starts are fitted.
    held_out : batch or None
        Others, by which starts are compared; None if `train` has all records.
    after : callable
        `after(model, records, passes)` is a model after plain passes.
    logs : callable
        `logs(model, records)` are (records,) log-likelihoods.
    """

    train: Any
    held_out: Any
    after: Callable[[M, Any, int], M]
    logs: Callable[[M, Any], NDArray[np.float64]]

    @classmethod
    def of(
        cls,
        records: Any,
        seed: int,
        after: Callable[[M, Any, int], M],
        logs: Callable[[M, Any], NDArray[np.float64]],
    ) -> Pilot[M]:
        """Pilot drawn from records: all of up to 8,000, else 8,000 with half of them held out."""
        if records.held <= 2 * ROWS:
            return cls(records, None, after, logs)
        drawn = np.random.default_rng(seed).permutation(records.held)
        return cls(records.take(drawn[:ROWS]), records.take(drawn[ROWS : 2 * ROWS]), after, logs)

    def best_of(self, starts: Sequence[M]) -> M:
        """Start that makes the records it is fitted to most likely, after passes over them."""
        tried = [self.after(one, self.train, _PASSES) for one in starts]
        kept = sorted(tried, key=self.likelihood, reverse=True)[:_KEPT]
        return max((self.settled(one) for one in kept), key=self.likelihood)

    def chosen(self, model: M, other: M, settle: bool = False) -> M:
        """Another start if it makes records more likely than passes over a model do; or the model.

        It has to make records held out more likely by more than noise. If all records are known,
        those that both are fitted to decide; with `settle` the model is then the one after passes
        over them.
        """
        near = self.settled(model)
        if self.held_out is None:
            better = self.likelihood(other) > self.likelihood(near) + _GAIN
            return other if better else near if settle else model
        more = self.logs(other, self.held_out) - self.logs(near, self.held_out)
        return other if gains(more) else model

    def settled(self, model: M) -> M:
        """Model after passes until ten of them add little."""
        before = -math.inf
        for _ in range(_MOST // _PASSES):
            model = self.after(model, self.train, _PASSES)
            likelihood = self.likelihood(model)
            if likelihood < before + _SETTLED:
                break
            before = likelihood
        return model

    def likelihood(self, model: M) -> float:
        """Mean log-likelihood of the records that starts are fitted to."""
        return float(self.logs(model, self.train).mean())


def gains(more: NDArray[np.float64]) -> bool:
    """Whether records are more likely by two standard errors, and a thousandth of a nat each.

    Examples
    --------
    >>> gains(np.array([0.3, 0.1, 0.2])), gains(np.array([1e-4, 1e-4])), gains(np.array([3, -2.0]))
    (True, False, False)
    """
    noise = float(more.std()) / math.sqrt(max(more.size, 1))
    return bool(more.size and more.mean() > max(_GAIN, _ERRORS * noise))
