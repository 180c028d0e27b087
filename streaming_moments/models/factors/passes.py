"""Passes over rows, which raise the likelihood of independent factors.

What a pass sums over rows are integers, so that the sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics
from streaming_moments.models.factors import interval_kernels
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.states import Clusters
from streaming_moments.statistics.expected_sums import IntegerSums
from streaming_moments.statistics.vectors.grid import Grid, rounded_for_sums
from streaming_moments.statistics.vectors.rows import VectorBatch

FACTOR = 1 << 8
"""Number of integer units in a standard deviation of a factor, when a pass reads it."""
_FURTHEST = 1 << 5  # values are clipped to this many standard deviations
# The score of a factor is linear between two neighbouring ones of these values. They are in
# standard deviations of the factor.
_ENDS = (-4.0, -3.0, -2.25, -1.6, -1.2, -0.8, -0.4, 0.0, 0.4, 0.8, 1.2, 1.6, 2.25, 3.0, 4.0)
_POWER = 1 << 6  # sums of third and fourth powers are integers, in units of 1 / 64
# variance that rounding of coordinates to the grid adds, in squared steps of the grid
_ROUNDING = 1 / 12
_LARGEST = (FACTOR * _FURTHEST) ** 2  # largest value that a row adds to a sum
# Slopes of the score in neighbouring intervals are drawn towards each other with the weight of this
# many rows. Measured: a smaller weight fits the noise of 1,000 rows, and a larger weight misses the
# edges of uniform and exponential factors.
_SMOOTH = 10.0
# A pass separates two factors by likelihood only if at least about this many rows show that their
# scores are not linear. The likelihood cannot separate two factors with linear scores.
_LINEAR = 50.0
_LONGEST = 0.3  # a pass adds at most this multiple of one factor to another
# the variance of a factor without noise is at least this share of its variance with noise
_LEAST_SHARE = 0.01
# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = (FACTOR, _FURTHEST, _POWER, *_ENDS)


@dataclass(frozen=True, eq=False)
class FactorSums(IntegerSums):
    """Sums of a pass over rows, in integers, so that they are exact in any order.

    The values of each factor j are split into b intervals, and each interval has sums of its own.
    Values are in units of 2^-8 standard deviations.

    rows : (k, b) int64, number of rows in which the value of factor j lies in the interval
    first : (k, b, k) int64, sums of all factors over these rows
    products : (k, b, k) int64, sums of the products of factor j and all factors over these rows
    powers : (2, k) int64, sums of third and fourth powers over all rows, in units of 2^-6
    documents, tokens : both the number of rows read
    """

    counted = "rows"
    largest: ClassVar[int] = _LARGEST

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    products: NDArray[np.int64]
    powers: NDArray[np.int64]

    @classmethod
    def zero(cls, model: IndependentFactors) -> FactorSums:
        """Return empty sums."""
        k, intervals = model.n_topics, len(_ENDS) + 1
        shapes = (k, intervals), (k, intervals, k), (k, intervals, k), (2, k)
        return cls(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


@dataclass(frozen=True, eq=False)
class FactorReader:
    """Unmixing matrix, prepared to read rows that are integers of a grid.

    What a row adds to the sums does not depend on other rows of its batch. For this, the parameters
    are rounded so that float64 multiplies and adds them without further rounding.
    """

    model: IndependentFactors
    grid: Grid
    _linear: NDArray[np.float64] = field(init=False, repr=False)
    _constant: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        model, grid = self.model, self.grid
        if model.dimension != grid.dimension:
            raise ForeignStatistics(
                f"the model has {model.dimension} dimensions, but the grid has "
                f"{grid.dimension}; read rows of the store that the model was fitted to"
            )
        unmixing = model.unmixing / _spreads(model, grid)
        linear = unmixing * grid.step
        # rounding of coordinates can lengthen a row by at most the last two terms
        reach = grid.radius + grid.dimension**0.5 + 1
        largest = reach * np.linalg.norm(linear, axis=0).max()
        object.__setattr__(self, "_linear", rounded_for_sums(linear, largest))
        object.__setattr__(self, "_constant", (grid.offset - model.mean) @ unmixing)

    def add(self, batch: VectorBatch, total: FactorSums) -> FactorSums:
        """Add the rows of a batch to `total` in place.

        Raises the same errors as `IntegerSums.counting`.
        """
        rows = self.grid.quantised(batch.values)[0]
        found = total.counting(len(rows), len(rows))
        values = rows.astype(np.float64) @ self._linear + self._constant
        most = float(FACTOR * _FURTHEST)
        units = np.clip(np.rint(values * FACTOR), -most, most)
        ends = np.rint(np.array(_ENDS) * FACTOR)
        places = np.searchsorted(ends, units.ravel()).reshape(units.shape)
        interval_kernels.add_rows(
            units.astype(np.int64), places, found.rows, found.first, found.products
        )
        cubes = (units / FACTOR) ** 3
        for own, power in zip(found.powers, (cubes, cubes * units / FACTOR), strict=True):
            own += np.rint(power * _POWER).astype(np.int64).sum(axis=0)
        return found


def improved(model: IndependentFactors, sums: FactorSums, grid: Grid) -> IndependentFactors:
    """Return the model after a pass: a Newton step that raises the likelihood, corrected for noise.

    The score of a factor is minus the derivative of its log density. The step replaces this score
    by the piecewise linear function that is nearest to it in mean square (Pham and Garat 1997). At
    the true unmixing, the score of a factor is uncorrelated with other factors, except through
    noise. By Stein's identity, the noise contributes its covariance times the mean slope of the
    score. If this covariance is unknown, the step subtracts the linear part of the score, which
    contains the noise. Factors keep their order and signs. Skewness and kurtosis are computed from
    the values that the pass read.
    """
    n, k = sums.documents, model.n_topics
    if not n:
        return model
    spreads = _spreads(model, grid)
    every = np.einsum("jbl->jl", sums.first)[0] / (n * FACTOR)
    spread = np.einsum("jbl->jl", sums.products) / (n * FACTOR**2) - np.outer(every, every)
    slopes, scores = np.empty(k), np.empty((k, k))
    for j in range(k):
        slopes[j], scores[j] = _score(sums.rows[j], sums.first[j], sums.products[j], j, every, n)
    noise = _noise_of(model, model.unmixing / spreads, grid)
    if model.noise_kind == "full":
        moved = _free_of_noise(scores, slopes, spread, n)
    else:
        moved = _known_noise(scores, slopes, spread, noise, n)
    turn = np.eye(k) - np.clip(moved, -_LONGEST, _LONGEST)
    unmixing = model.unmixing / spreads @ turn.T
    mixing = np.linalg.solve(turn.T, (model.mixing * spreads).T).T
    left = np.diag(turn @ spread @ turn.T)
    own = left - np.diag(_noise_of(model, unmixing, grid))
    lengths = np.sqrt(np.maximum(own, _LEAST_SHARE * left))
    return replace(
        model,
        mixing=mixing * lengths,
        unmixing=unmixing / lengths,
        **_cumulants(sums, every, spread, noise),
    )


def shape_of(model: IndependentFactors) -> tuple[int, int]:
    """Return the shape (rows, k) of a table that takes as much memory as a pass.

    A pass holds its sums, the columns of the model, and the values of a batch.
    """
    return 2 * (len(_ENDS) + 1) * model.n_topics + 2 * model.dimension, model.n_topics


def columns_of(model: IndependentFactors) -> Clusters:
    """Return the columns of the mixing matrix as clusters, with mean squares and error bars."""
    sizes = np.square(model.mixing).mean(axis=0)
    return Clusters(model.mixing.T, sizes[:, None], model.bars)


def _noise_of(
    model: IndependentFactors, unmixing: NDArray[np.float64], grid: Grid
) -> NDArray[np.float64]:
    """Return the (k, k) covariance of the estimated factors that is due to noise and rounding.

    It is 0 if the covariance of the noise is unknown.
    """
    if model.noise_kind == "full":
        return np.zeros((unmixing.shape[1],) * 2)
    rounding = 0.0 if grid.whole else _ROUNDING * grid.step**2
    noise = (model.noise if model.noise.size else 0.0) + np.full(model.dimension, rounding)
    return np.asarray((unmixing.T * noise) @ unmixing)


def _spreads(model: IndependentFactors, grid: Grid) -> NDArray[np.float64]:
    """Return (k,) standard deviations of estimated factors, which are factors plus noise.

    A factor without noise has variance 1.
    """
    return np.asarray(np.sqrt(1 + np.diag(_noise_of(model, model.unmixing, grid))))


def _score(
    rows: NDArray[np.int64],
    first: NDArray[np.int64],
    products: NDArray[np.int64],
    own: int,
    every: NDArray[np.float64],
    n: int,
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean slope of a factor's score, and the score's (k,) covariances with all factors.

    The score of a value is a sum over intervals: the value clipped to the interval, times the
    slope of the interval. The slopes are fitted to the true score; for this, the share of rows in
    each interval is enough.
    """
    sizes, sums, squares = rows / n, first / (n * FACTOR), products / (n * FACTOR**2)
    ends = np.rint(np.array(_ENDS) * FACTOR) / FACTOR
    low, high = np.concatenate([ends[:1], ends]), np.concatenate([ends, ends[-1:]])
    # a value that lies in interval b, clipped to another interval a, becomes `fixed[a, b]`, which
    # is the lower or upper bound of a
    below, above = np.tri(low.size, k=-1), np.tri(low.size, k=-1).T
    fixed = low[:, None] * below + high[:, None] * above
    mean = fixed @ sizes + sums[:, own]
    crossed = fixed * sums[:, own]
    gram = (fixed * sizes) @ fixed.T + crossed + crossed.T + np.diag(squares[:, own])
    gram -= np.outer(mean, mean)
    steps = np.diff(np.eye(low.size), axis=0)
    slopes = np.linalg.lstsq(gram + _SMOOTH / n * (steps.T @ steps), sizes, rcond=None)[0]
    covariances = fixed @ sums + squares - np.outer(mean, every)
    return float(slopes @ sizes), slopes @ covariances


def _known_noise(
    scores: NDArray[np.float64],
    slopes: NDArray[np.float64],
    spread: NDArray[np.float64],
    noise: NDArray[np.float64],
    n: int,
) -> NDArray[np.float64]:
    """Return the Newton step for all pairs of factors, if the covariance of the noise is known.

    Row i of the (k, k) result says how much of each other factor to subtract from factor i.
    """
    left = scores - slopes[:, None] * noise
    own, other = spread.diagonal() - noise.diagonal(), 1 - noise.diagonal() * slopes
    straight = slopes[:, None] * own
    size = straight * straight.T - np.outer(other, other)
    told = size > _LINEAR / n
    moved = (straight.T * left - other[:, None] * left.T) / np.where(told, size, 1.0)
    # for two normal factors, the likelihood says only how they correlate: subtract half of the
    # correlation from each
    moved = np.where(told, moved, (spread - noise) / 2)
    np.fill_diagonal(moved, 0.0)
    return np.asarray(moved)


def _free_of_noise(
    scores: NDArray[np.float64], slopes: NDArray[np.float64], spread: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """Return the Newton step for all pairs of factors, if the covariance of the noise is unknown.

    It uses only the non-linear parts of the scores, which contain no noise.
    """
    left = scores - slopes[:, None] * spread
    size = slopes * spread.diagonal() - 1
    told = size > _LINEAR / n
    moved = np.where(told, -left.T / np.where(told, size, 1.0), 0.0)
    np.fill_diagonal(moved, 0.0)
    return np.asarray(moved)


def _cumulants(
    sums: FactorSums,
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
    noise: NDArray[np.float64],
) -> dict[str, Any]:
    """Return skewness and kurtosis of factors, corrected for noise, and their standard errors."""
    n, variances = sums.documents, spread.diagonal()
    third, fourth = sums.powers / (n * _POWER)
    raw = variances + mean**2
    skewed = third - 3 * mean * raw + 2 * mean**3
    kurtotic = fourth - 4 * mean * third + 6 * mean**2 * raw - 3 * mean**4 - 3 * variances**2
    own = np.maximum(variances - noise.diagonal(), _LEAST_SHARE * variances)
    sizes = variances / own
    return {
        "skewness": skewed / own**1.5,
        "kurtosis": kurtotic / own**2,
        "skewness_error": np.sqrt(6 / n) * sizes**1.5,
        "kurtosis_error": np.sqrt(24 / n) * sizes**2,
    }
