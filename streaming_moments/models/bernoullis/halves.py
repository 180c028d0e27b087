"""Halves: refits the components of all sets to each half of the sets, for error bars and scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.distinct import (
    Components,
    SetMoments,
    by_pairs,
)
from streaming_moments.models.halves import HeldOut
from streaming_moments.numerics.pooled import pooled

_ROWS = 256
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Error bars and held-out likelihood of components, from both halves of the sets.

    bars : (k,) float64, expected L1 error of the probabilities of each component, scaled to sum 1
    probability_bars : (n, k) float64, standard error of each probability
    held_out : log-likelihood of the feature pairs of each half under a model of the other half
    """

    bars: NDArray[np.float64]
    probability_bars: NDArray[np.float64]
    held_out: HeldOut


def cross_fit(
    moments: SetMoments, found: Components, even_pairs: NDArray[np.int64]
) -> CrossFit | None:
    """Compute error bars and held-out likelihood from probabilities refitted to each half.

    Returns None if a half has no feature pairs. The triples of all rows separate the components, so
    the error bars do not include the error of this separation. Half of the difference of a
    probability between the two fits is a random draw of its error. The square of this draw is
    averaged with the variance of counting, which is `p (1 - p)` times a factor of the component.

    moments : moments of all rows
    found : components of all rows
    even_pairs : (n, core) int64, pair counts of the even half
    """
    even_counts = even_pairs.astype(np.float64)
    halves = even_counts, moments.pairs - even_counts
    if not all(pairs.any() for pairs in halves):
        return None
    even, odd = (by_pairs(pairs, moments.rows / 2, found) for pairs in halves)
    shares = [one / np.maximum(one.sum(axis=0), _LEAST) for one in (even, odd)]
    squares = np.square(even - odd) / 4
    variances = pooled(squares, found.probabilities * (1 - found.probabilities))
    scores = [
        mean_logarithm(pairs, other, found.weights)
        for pairs, other in zip(halves, (odd, even), strict=True)
    ]
    bars = np.abs(shares[0] - shares[1]).sum(axis=0) / 2
    return CrossFit(bars, np.sqrt(variances), HeldOut(*scores))


def mean_logarithm(
    pairs: NDArray[np.float64], probabilities: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return the mean log-likelihood of a counted pair of distinct features under a mixture.

    One of the two features is in the core.

    Examples
    --------
    >>> even = mean_logarithm(np.array([[0.0, 5.0], [5.0, 0.0]]), np.full((2, 1), 0.5), np.ones(1))
    >>> round(float(np.exp(even)), 9)
    0.5
    """
    core = pairs.shape[1]
    # add at least `_LEAST`, to avoid the logarithm of 0 for features that do not occur in a half
    mean = probabilities @ weights
    smoothed = 0.999 * probabilities + 0.001 * np.maximum(mean, _LEAST)[:, None]
    total = seen = 0.0
    for start in range(0, len(pairs), _ROWS):
        rows = slice(start, start + _ROWS)
        expected = (smoothed[rows] * weights) @ smoothed[:core].T
        own = np.arange(start, min(start + _ROWS, core))
        expected[own - start, own] = 0.0
        seen += float(expected.sum())
        counted = pairs[rows] > 0
        total += float(pairs[rows][counted] @ np.log(expected[counted]))
    return float(total / pairs.sum() - np.log(seen))
