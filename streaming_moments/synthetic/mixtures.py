"""Numeric rows drawn from known mixtures of Gaussians, and from known independent factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.synthetic.checks import drawn

SOURCES = ("exponential", "laplace", "uniform", "normal")


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Rows of a Gaussian mixture, and the model from which they were drawn.

    Parameters
    ----------
    rows : (n, d) float64
        Rows; the last ones are outliers.
    labels : (n,) int64
        Component of each row, -1 for an outlier.
    means : (k, d) float64
        Means of the components.
    weights : (k,) float64
        Weights of the components, with sum 1.
    variances : (k, d) float64
        Variance of each coordinate in each component.
    """

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    means: NDArray[np.float64]
    weights: NDArray[np.float64]
    variances: NDArray[np.float64]

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class FactorRows:
    """Rows `A h + noise`, and the model from which they were drawn.

    Parameters
    ----------
    rows : (n, d) float64
        Rows, which have expectation 0.
    mixing : (d, k) float64
        Matrix A.
    factors : (n, k) float64
        Factors h of each row, with mean 0 and variance 1.
    """

    rows: NDArray[np.float64]
    mixing: NDArray[np.float64]
    factors: NDArray[np.float64]

    __repr__ = short_repr


@drawn
def mixture_rows(
    n_rows: int,
    dimensions: int,
    components: int,
    separation: float = 3.0,
    variances: str = "tied-spherical",
    uneven: float = 1.0,
    outliers: float = 0.0,
    seed: int = 0,
) -> MixtureRows:
    """Draw rows of a Gaussian mixture whose means have equal length and random directions.

    Parameters
    ----------
    n_rows : int
        Number of rows n.
    dimensions, components : int
        Number of coordinates d, and of components k.
    separation : float
        Length of the means.
    variances : {"tied-spherical", "spherical", "tied-diag", "diag"}
        With "tied-spherical", all variances are 1. Otherwise they are drawn from 1/2 to 3/2: one
        for each component, for each coordinate, or for each coordinate of each component.
    uneven : float
        Ratio of the largest to the smallest weight.
    outliers : float
        Share of the rows that are outliers, with five times the standard deviation of the others.
    seed : int
        Seed of all random numbers.

    Examples
    --------
    >>> drawn = mixture_rows(100, 5, 2, separation=10)
    >>> distances = np.linalg.norm(drawn.rows - drawn.means[drawn.labels], axis=1)
    >>> bool(np.median(distances) < 3)
    True
    """
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(components, dimensions))
    means *= separation / np.linalg.norm(means, axis=1, keepdims=True)
    weights = np.geomspace(uneven, 1.0, components)
    weights /= weights.sum()
    shape = {"spherical": (components, 1), "tied-diag": (1, dimensions)}.get(variances)
    if variances == "diag":
        shape = (components, dimensions)
    drawn = np.ones((1, 1)) if shape is None else rng.uniform(0.5, 1.5, shape)
    spread = np.broadcast_to(drawn, (components, dimensions))
    strange = round(outliers * n_rows)
    labels = rng.choice(components, size=n_rows, p=weights)
    rows = means[labels] + rng.normal(size=(n_rows, dimensions)) * np.sqrt(spread[labels])
    if strange:
        sizes = 5 * rows.std(axis=0)
        rows[-strange:] = rng.normal(size=(strange, dimensions)) * sizes
        labels[-strange:] = -1
    return MixtureRows(rows, labels, means, weights, np.array(spread))


@drawn
def factor_rows(
    n_rows: int,
    dimensions: int,
    factors: int,
    source: str = "exponential",
    noise: NDArray[np.float64] | float = 0.0,
    seed: int = 0,
) -> FactorRows:
    """Draw rows `A h + noise`, with independent factors h of one distribution and a normal A.

    Parameters
    ----------
    n_rows, dimensions, factors : int
        Numbers of rows n, coordinates d and factors k.
    source : {"exponential", "laplace", "uniform", "normal"}
        Distribution of the factors, scaled to mean 0 and variance 1.
    noise : float or (d, d) float64
        Variance of the normal noise of each coordinate, or the covariance of the noise.
    seed : int
        Seed of all random numbers.

    Raises
    ------
    InvalidInput
        The source is unknown.
    """
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(dimensions, factors))
    shape = n_rows, factors
    if source == "exponential":
        hidden = rng.exponential(size=shape) - 1
    elif source == "laplace":
        hidden = rng.laplace(scale=np.sqrt(0.5), size=shape)
    elif source == "uniform":
        hidden = rng.uniform(-np.sqrt(3), np.sqrt(3), size=shape)
    elif source == "normal":
        hidden = rng.normal(size=shape)
    else:
        raise InvalidInput(f'source is "{source}"; choose {", ".join(SOURCES)}')
    covariance = np.asarray(noise) * np.eye(dimensions) if np.ndim(noise) == 0 else noise
    rows = hidden @ mixing.T
    rows += rng.multivariate_normal(np.zeros(dimensions), covariance, size=n_rows)
    return FactorRows(rows, mixing, hidden)


def matched_means(
    found: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Match each true mean with a found mean.

    Return the (k,) distances and the (k,) indices of the found means.

    Examples
    --------
    >>> matched_means(np.array([[1.0, 0], [0, 3]]), np.array([[0, 2.0], [1, 0]]))
    (array([1., 0.]), array([1, 0]))
    """
    distances = np.linalg.norm(truth[:, None] - found[None], axis=2)
    own, other = optimize.linear_sum_assignment(distances)
    return distances[own, other], np.asarray(other, dtype=np.int64)


def amari_distance(mixing: NDArray[np.float64], unmixing: NDArray[np.float64]) -> float:
    """Return how far `unmixing' mixing` is from a scaled permutation, from 0 to 1.

    The distance is that of Amari, Cichocki, Yang 1996.

    Examples
    --------
    >>> amari_distance(np.eye(2), np.array([[0.0, 2.0], [3.0, 0.0]]))
    0.0
    """
    gains = np.abs(unmixing.T @ mixing)
    k = len(gains)
    rows = (gains.sum(axis=1) / gains.max(axis=1) - 1).sum()
    columns = (gains.sum(axis=0) / gains.max(axis=0) - 1).sum()
    return float((rows + columns) / (2 * k * (k - 1)))
