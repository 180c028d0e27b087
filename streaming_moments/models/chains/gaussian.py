"""GaussianEmission: emission of a hidden Markov model whose states emit numeric rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.chains.emission import Likelihoods
from streaming_moments.models.chains.vector_sequences import VectorSequences
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr

# The variance of a state in any direction is at least this share of the mean variance of all rows.
_FLOOR = 1e-6
# The likelihood of a row in a state is at least this share of its likelihood in the most likely
# state, so that no sequence is impossible.
_LEAST = 1e-200


@dataclass(frozen=True, eq=False)
class GaussianEmission:
    """`Emission` of Gaussian rows, for `VectorSequences`.

    Parameters
    ----------
    means : (k, d) float64
        Mean row of each state.
    covariances : (k, d, d) float64
        Covariance of the rows in each state, positive definite.

    Raises
    ------
    InvalidInput
        The shapes do not match, or a covariance is not positive definite.

    Examples
    --------
    >>> emission = GaussianEmission(np.array([[0.0, 0.0]]), np.eye(2)[None])
    >>> emission.log_likelihoods(VectorSequences.of([[[0.0, 1.0]]])).table.round(3)
    array([[-2.338]])
    """

    means: NDArray[np.float64]
    covariances: NDArray[np.float64]

    __repr__ = short_repr

    __sizeof__ = held_bytes

    def __post_init__(self) -> None:
        if self.covariances.shape != (*self.means.shape, *self.means.shape[1:]):
            raise InvalidInput(
                f"means have shape {self.means.shape}, and covariances have shape "
                f"{self.covariances.shape}; give (k, d) and (k, d, d)"
            )
        if not (np.linalg.eigvalsh(self.covariances) > 0).all():
            raise InvalidInput(
                "a covariance is not positive definite; give symmetric matrices "
                "with positive eigenvalues"
            )

    def likelihoods(self, sequences: VectorSequences) -> Likelihoods:
        """Return the likelihood of each row in each state, divided by the row's largest likelihood.

        If the log-likelihoods of a row in two states differ by more than 460 nats, the difference
        is set to 460 nats.

        Raises
        ------
        ForeignStatistics
            The rows have another number of columns than the means.
        """
        found = self.log_likelihoods(sequences)
        scale = found.table.max(axis=1, initial=-np.inf)
        table = np.maximum(np.exp(found.table - scale[:, None]), _LEAST)
        return Likelihoods(found.rows, table, scale)

    def log_likelihoods(self, sequences: VectorSequences) -> Likelihoods:
        """Return the log density of each row in each state; raise the errors of `likelihoods`."""
        d = self.means.shape[1]
        width = sequences.values.shape[1]
        if width != d:
            raise ForeignStatistics(
                f"the rows have {of_number(width, 'number')}, but the model needs {d}"
            )
        seen = sequences.seen
        rows = np.where(seen, np.cumsum(seen) - 1, -1).astype(np.int32)
        values, roots = sequences.values[seen], np.linalg.cholesky(self.covariances)
        logs = np.empty((len(values), len(self.means)))
        for state, (mean, root) in enumerate(zip(self.means, roots, strict=True)):
            squares = np.square((values - mean) @ np.linalg.inv(root).T).sum(axis=1)
            norm = np.log(np.diag(root)).sum() + d * np.log(2 * np.pi) / 2
            logs[:, state] = -squares / 2 - norm
        return Likelihoods(rows, logs)

    def maximised(
        self, sequences: VectorSequences, posterior: NDArray[np.float64]
    ) -> GaussianEmission:
        """Return the emission with the mean and covariance of the rows in each state.

        `posterior` has the probability of each state for each row.

        If a variance is too small, it is raised to a minimum.
        """
        values, shares = sequences.values[sequences.seen], posterior[sequences.seen]
        least = _FLOOR * values.var(axis=0).mean() if len(values) else 0.0
        means, covariances = self.means.copy(), self.covariances.copy()
        for state, weights in enumerate(shares.T):
            total = weights.sum()
            if total > 0 and least > 0:
                means[state] = weights @ values / total
                apart = values - means[state]
                covariances[state] = no_narrower((weights * apart.T) @ apart / total, least)
        return GaussianEmission(means, covariances)


def no_narrower(covariance: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Return a covariance matrix whose eigenvalues below `least` are raised to `least`.

    Examples
    --------
    >>> no_narrower(np.diag([2.0, -1.0]), 0.5)
    array([[2. , 0. ],
           [0. , 0.5]])
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
