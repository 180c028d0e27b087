"""Whitens moments that are given as arrays, for decompositions of the whitened tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.moments import Moments, require_topics, symmetrized
from streaming_moments.errors import NotIdentifiable
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr


@dataclass(frozen=True, eq=False)
class WhitenedMoments:
    """Whitened second and third moments: the input of decompositions of a k x k x k tensor.

    W is the (n, k) whitening of moments M2 and M3 of n words. For exact moments of a mixture with
    columns m_j and weights w_j, the whitened second moment is the identity. The tensor is
    `T = sum_j w_j^-1/2 o_j^(x)3` with orthonormal `o_j = w_j^1/2 W' m_j`.

    Parameters
    ----------
    tensor : (k, k, k) float64
        `T = M3(W, W, W)`; symmetric if M3 is symmetric.
    second : (k, k) float64
        `W' M2 W`; the identity if M2 is symmetric.
    spectrum : (k,) float64
        The k largest eigenvalues L of M2, in decreasing order. W is `U L^-1/2`, where U are the
        eigenvectors.
    """

    tensor: NDArray[np.float64]
    second: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    __repr__ = short_repr

    @property
    def n_topics(self) -> int:
        """Number of latent states k."""
        return int(self.spectrum.size)

    def symmetrized(self) -> WhitenedMoments:
        """Return the moments averaged over all orders of their indices."""
        return WhitenedMoments(
            symmetrized(self.tensor), (self.second + self.second.T) / 2, self.spectrum
        )


@dataclass(frozen=True, eq=False)
class Components:
    """Components of the whitened tensor: `T = sum_j values_j vectors_j^(x)3`.

    Parameters
    ----------
    vectors : (k, k) float64
        Unit columns; orthogonal for exact moments.
    values : (k,) float64
        `w_j^-1/2`, where w_j is the weight of the component.
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64]

    __repr__ = short_repr

    @classmethod
    def along(cls, tensor: NDArray[np.float64], vectors: NDArray[np.float64]) -> Components:
        """Make components of unit columns v_j along `vectors`, with values `T(v_j, v_j, v_j)`."""
        unit = vectors / np.linalg.norm(vectors, axis=0)
        return cls(unit, np.einsum("abc,aj,bj,cj->j", tensor, unit, unit, unit, optimize=True))


def whiten_moments(moments: Moments, k: int) -> tuple[WhitenedMoments, NDArray[np.float64]]:
    """Whiten moments by the k leading eigenvectors U and eigenvalues L of M2: `W = U L^-1/2`.

    Parameters
    ----------
    moments : Moments
        Moments of a mixture, as `Moments` describes.
    k : int
        Number of latent states.

    Returns
    -------
    WhitenedMoments, (n, k) float64
        The whitened moments, and W.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues; the message says how many.

    Examples
    --------
    >>> whitened, W = whiten_moments(Moments.of_mixture(np.eye(2), np.array([0.64, 0.36])), 2)
    >>> whitened.tensor.diagonal().diagonal().round(4)
    array([1.25  , 1.6667])
    """
    spectrum, U = leading_states(moments.M2, k)
    W = U / np.sqrt(spectrum)
    tensor = np.tensordot(W.T, W.T @ (moments.M3 @ W), axes=1)
    return WhitenedMoments(tensor, W.T @ moments.M2 @ W, spectrum), W


def leading_states(
    M2: NDArray[np.float64], k: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the k largest eigenvalues of a second moment, decreasing, and their (n, k) vectors.

    Raises NotIdentifiable if fewer than k eigenvalues are positive.
    """
    require_topics(k)
    values, vectors = np.linalg.eigh((M2 + M2.T) / 2)
    # count only eigenvalues that are larger than the rounding error of the largest one
    positive = int((values > values.max() * values.size * np.finfo(float).eps).sum())
    if positive < k:
        raise NotIdentifiable(
            f"{k} latent states are asked for, but M2 has "
            f"{of_number(positive, 'positive eigenvalue')}; ask for at most {positive}, lower "
            "alpha0, or add documents"
        )
    order = np.argsort(-values)[:k]
    return values[order], vectors[:, order]
