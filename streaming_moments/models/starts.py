"""Second start: passes begin from a pilot instead of a fit if that makes records more likely."""

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
_KEPT = 3  # number of starts that continue until they converge
# Number of passes of each start, and largest number of passes of a start that continues.
_PASSES, _MOST = 10, 500
# a start has converged if `_PASSES` more passes gain less than this, in nats per record
_SETTLED = 2e-6
# The start from the pilot is used only if its gain in log-likelihood exceeds this many standard
# errors.
_ERRORS = 2.0
# A start also has to gain more than this, in nats per record. A smaller gain can be rounding at the
# same optimum.
_GAIN = 1e-3

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Pilot(Generic[M]):
    """Records by which starts of passes are compared, and how a family reads them.

    Parameters
    ----------
    train : batch
        Records to which starts are fitted.
    held_out : batch or None
        Other records, by which starts are compared; None if `train` has all records.
    after : callable
        `after(model, records, passes)` returns a model after plain passes.
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
        """Draw a pilot: all of at most 8,000 records, else 8,000 records with half held out."""
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
        """Return the other start if it makes records more likely than the model; else the model.

        Both are compared after passes over the training records. The gain of the other start on
        held-out records must exceed noise. If the pilot has all records, the training records
        decide. If `settle` is then true, the returned model is the one after these passes.
        """
        near = self.settled(model)
        if self.held_out is None:
            better = self.likelihood(other) > self.likelihood(near) + _GAIN
            return other if better else near if settle else model
        more = self.logs(other, self.held_out) - self.logs(near, self.held_out)
        return other if gains(more) else model

    def settled(self, model: M) -> M:
        """Make passes until ten more of them gain little."""
        before = -math.inf
        for _ in range(_MOST // _PASSES):
            model = self.after(model, self.train, _PASSES)
            likelihood = self.likelihood(model)
            if likelihood < before + _SETTLED:
                break
            before = likelihood
        return model

    def likelihood(self, model: M) -> float:
        """Return the mean log-likelihood of the records to which starts are fitted."""
        return float(self.logs(model, self.train).mean())


def gains(more: NDArray[np.float64]) -> bool:
    """Whether the gain exceeds two standard errors, and a thousandth of a nat per record.

    Examples
    --------
    >>> gains(np.array([0.3, 0.1, 0.2])), gains(np.array([1e-4, 1e-4])), gains(np.array([3, -2.0]))
    (True, False, False)
    """
    noise = float(more.std()) / math.sqrt(max(more.size, 1))
    return bool(more.size and more.mean() > max(_GAIN, _ERRORS * noise))
