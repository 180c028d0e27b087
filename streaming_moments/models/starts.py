"""Second start: passes start from a sample of the records, not from a fit, if that is better.

It is better if it makes other records of the sample more likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

MOMENTS, PILOT = "moments", "pilot"
"""Starts of passes: a fit of statistics, or the best start from a pilot of records."""
NOWHERE = "nowhere"
"""Start of a blank model, which has only the number of states."""
ROWS = 4000
"""Number of records of a pilot to which starts are fitted; as many others compare the starts."""
STARTS = 10
_KEPT = 3  # number of starts that are continued until they converge
# Number of passes that each start gets at first, and largest number of passes of a start that is
# continued.
_PASSES, _MOST = 10, 500
# a start has converged if `_PASSES` more passes gain less than this, in nats per record
_SETTLED = 2e-6
# The start from the sample is used only if its gain in log-likelihood exceeds this many standard
# errors.
_ERRORS = 2.0
# Its gain also has to exceed this, in nats per record. A smaller gain can be rounding at the same
# optimum.
_GAIN = 1e-3

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Pilot(Generic[M]):
    """Sample of the records by which starts of passes are compared, and how a model reads them.

    Parameters
    ----------
    train : batch
        Records to which starts are fitted.
    held_out : batch or None
        Other records, by which starts are compared; None if `train` has all records.
    after : callable
        `after(model, records, passes)` returns the model after `passes` passes over records.
    logs : callable
        `logs(model, records)` returns the (records,) log-likelihoods.
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
        """Draw a pilot from the records.

        Up to 8,000 records are all used. Of more records, 8,000 are drawn, and half of these are
        held out.
        """
        if records.held <= 2 * ROWS:
            return cls(records, None, after, logs)
        drawn = np.random.default_rng(seed).permutation(records.held)
        return cls(records.take(drawn[:ROWS]), records.take(drawn[ROWS : 2 * ROWS]), after, logs)

    def best_of(self, starts: Sequence[M]) -> M:
        """Return the start that makes the training records most likely after passes over them."""
        tried = [self.after(one, self.train, _PASSES) for one in starts]
        kept = sorted(tried, key=self.likelihood, reverse=True)[:_KEPT]
        return max((self.settled(one) for one in kept), key=self.likelihood)

    def chosen(self, model: M, other: M, settle: bool = False) -> M:
        """Choose between `model` and another start, `other`, from which passes begin.

        Both are compared after passes over the training records. The other one is returned if its
        gain on held-out records exceeds noise. If no records are held out, the training records
        decide; if `settle` is then true, `model` is returned as it is after these passes.
        """
        near = self.settled(model)
        if self.held_out is None:
            better = self.likelihood(other) > self.likelihood(near) + _GAIN
            return other if better else near if settle else model
        more = self.logs(other, self.held_out) - self.logs(near, self.held_out)
        return other if gains(more) else model

    def settled(self, model: M) -> M:
        """Make passes over the training records until ten more passes gain little."""
        before = -math.inf
        for _ in range(_MOST // _PASSES):
            model = self.after(model, self.train, _PASSES)
            likelihood = self.likelihood(model)
            if likelihood < before + _SETTLED:
                break
            before = likelihood
        return model

    def likelihood(self, model: M) -> float:
        """Return the mean log-likelihood of the training records."""
        return float(self.logs(model, self.train).mean())


def gains(more: NDArray[np.float64]) -> bool:
    """Whether the mean of `more` exceeds two standard errors, and a thousandth of a nat.

    `more` has the gain in log-likelihood of each record.
    """
    noise = float(more.std()) / math.sqrt(max(more.size, 1))
    return bool(more.size and more.mean() > max(_GAIN, _ERRORS * noise))
