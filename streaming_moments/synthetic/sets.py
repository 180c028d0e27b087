"""Sets of features drawn from known mixtures of Bernoulli distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.synthetic.checks import columns_compared, drawn


@dataclass(frozen=True, eq=False)
class FeatureSets:
    """Rows of a Bernoulli mixture, and the model from which they were drawn.

    Parameters
    ----------
    batch : CountBatch
        The (n, d) rows, with count 1 for each feature of a row.
    labels : (n,) int64
        Component of each row.
    probabilities : (d, k) float64
        Probability of each feature in each component.
    weights : (k,) float64
        Weights of the components, with sum 1.
    """

    batch: CountBatch
    labels: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    weights: NDArray[np.float64]

    __repr__ = short_repr


@drawn
def feature_sets(
    n_rows: int, n_features: int, components: int, mean: float = 0.2, seed: int = 0
) -> FeatureSets:
    """Draw rows whose features are independent given the component.

    Parameters
    ----------
    n_rows, n_features, components : int
        Numbers of rows n, features d and components k.
    mean : float
        Mean probability of a feature in a component. Probabilities are drawn from a Beta
        distribution whose parameters have sum 1, so most of them are near 0 or 1.
    seed : int
        Seed of all random numbers.

    Examples
    --------
    >>> drawn = feature_sets(10, n_features=6, components=2)
    >>> drawn.batch.documents, drawn.probabilities.shape, int(drawn.batch.counts.max())
    (10, (6, 2), 1)
    """
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(components, 10.0))
    probabilities = rng.beta(mean, 1 - mean, size=(n_features, components))
    labels = rng.choice(components, size=n_rows, p=weights)
    drawn = rng.random((n_rows, n_features)) < probabilities.T[labels]
    return FeatureSets(CountBatch.from_csr(drawn.astype(np.int8)), labels, probabilities, weights)


def probability_error(found: ArrayLike, true: ArrayLike) -> float:
    """Return the root mean square error of (d, k) probabilities, for the best matching of columns.

    Examples
    --------
    >>> probability_error(np.array([[0.9, 0.1]]), np.array([[0.1, 0.8]])).__round__(3)
    0.071
    """
    found, true = columns_compared(found, true)
    squares = np.square(found[:, :, None] - true[:, None, :]).sum(axis=0)
    own, theirs = optimize.linear_sum_assignment(squares)
    return float(np.sqrt(squares[own, theirs].sum() / found.size))
