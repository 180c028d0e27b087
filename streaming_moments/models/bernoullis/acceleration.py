"""Acceleration: lets one pass over sets improve a mixture as much as many passes would.

If it is uncertain which component a row is of, some information about the parameters of the mixture
is missing. Let m be the missing share of the information along a direction of these parameters. A
pass takes only the share `1 - m` of the step to the maximum likelihood along this direction
(Dempster, Laird, Rubin 1977). Rows drawn at random from the mixture show how much information is
missing (Louis 1982), so a pass over the sets needs no additional sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.statistics.counts.batch import CountBatch

MOST = 512
"""Limit on parameters. With more, only the most distinctive features are accelerated."""
DRAWN = 48
"""Number of rows drawn for each parameter. With 16, steps of rare features are too long."""
FURTHEST = 10.0
"""Limit on the accelerated step, as a multiple of the step of a pass."""
CLEAR = 0.01
"""A pass is accelerated only if drawn rows have at least this mean of `1 - sum_h r_h^2`."""
# An accelerated step may bring a probability at most this many times nearer to 0 or 1 than it is
# before and after the pass.
_BORDER = 4.0
# The stored sums of earlier passes are used only if they were computed with the same values.
RULES = (MOST, DRAWN, FURTHEST, CLEAR, _BORDER)
_AT_A_TIME = 4096  # number of random rows drawn at a time; fewer if they have many features
_CELLS = 1 << 22
_LEAST = 1e-12


def accelerated(before: BernoulliMixture, after: BernoulliMixture) -> BernoulliMixture:
    """Extrapolate from the mixtures before and after one pass to the limit of many passes.

    The step of the pass, from `before` to `after`, is multiplied by `(I - M)^-1`, where M is the
    matrix of the missing information. Returns `after` itself if components are well separated, or
    if fewer features than components can be accelerated (see `MOST`).
    """
    chosen = _distinctive(before)
    n, k = chosen.size, before.n_topics
    missing = _missing_information(before, chosen) if n >= k > 1 else None
    if missing is None:
        return after
    scales, roots = _scales(before, chosen)
    old, new = before.probabilities[chosen], after.probabilities[chosen]
    step = np.append(((new - old) * scales).T.ravel(), (after.weights - before.weights) / roots)
    shares, directions = np.linalg.eigh(missing)
    step = directions @ ((directions.T @ step) / np.clip(1 - shares, 1 / FURTHEST, 1))
    found = old + step[: n * k].reshape(k, n).T / scales
    least, most = np.minimum(old, new), np.maximum(old, new)
    probabilities = after.probabilities.copy()
    probabilities[chosen] = np.clip(found, least / _BORDER, 1 - (1 - most) / _BORDER)
    weights = np.maximum(before.weights + step[n * k :] * roots, after.weights / _BORDER)
    return replace(after, probabilities=probabilities, weights=weights / weights.sum())


def _distinctive(model: BernoulliMixture) -> NDArray[np.int64]:
    """Return the indices of the features whose probabilities differ most between components.

    These have the largest share of their variance between, not within, components.
    """
    P, k = model.smoothed, model.n_topics
    mean = P @ model.weights
    between = np.square(P - mean[:, None]) @ model.weights / (mean * (1 - mean))
    return np.sort(np.argsort(-between, kind="stable")[: MOST // k - 1])


def _scales(
    model: BernoulliMixture, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (features, k) scales of the probabilities, and (k,) scales of the weights.

    Parameters are multiplied by these scales. If the component of a row is known, the row then has
    information 1 on each parameter.
    """
    P = model.smoothed[chosen]
    roots = np.sqrt(np.maximum(model.weights, _LEAST))
    return roots / np.sqrt(P * (1 - P)), roots


def _missing_information(
    model: BernoulliMixture, chosen: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    """Compute the missing information from random rows; None if components are well separated.

    The missing information is the covariance, given a row, of the derivatives of the log-likelihood
    of the row and its component. Its matrix has a row and a column for the probability of each
    feature in each component, and then for each weight.
    """
    P, (n, k) = model.smoothed, (chosen.size, model.n_topics)
    size = n * k + k
    scales, roots = _scales(model, chosen)
    number, rng = DRAWN * size, np.random.default_rng(0)
    ends = np.cumsum(model.weights)
    components = np.searchsorted(ends / ends[-1], (rng.permutation(number) + 0.5) / number)
    at_a_time = min(_AT_A_TIME, max(256, _CELLS // len(P)))
    found = np.zeros((size, size))
    for start in range(0, number, at_a_time):
        own = components[start : start + at_a_time]
        rows = rng.random((own.size, len(P))) < P.T[own]
        shares = model.posterior(CountBatch.from_csr(rows.astype(np.int8)))
        if not start and 1 - np.square(shares).sum(axis=1).mean() < CLEAR:
            return None
        expected = np.empty((own.size, size))
        for h in range(k):
            place, weight = slice(h * n, h * n + n), n * k + h
            derivatives = (rows[:, chosen] - P[chosen, h]) * (scales[:, h] / roots[h] ** 2)
            expected[:, place] = shares[:, h, None] * derivatives
            found[place, place] += expected[:, place].T @ derivatives
            beside = expected[:, place].sum(axis=0) / roots[h]
            found[place, weight] += beside
            found[weight, place] += beside
            found[weight, weight] += shares[:, h].sum() / roots[h] ** 2
        expected[:, n * k :] = shares / roots
        found -= expected.T @ expected
    return found / number
