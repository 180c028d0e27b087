"""Moments given as arrays, and what brings them to the form that decompositions take."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput

# Above it all documents have all topics in the same shares.
_LARGEST_ALPHA0 = 1e6


@dataclass(frozen=True, eq=False)
class Moments:
    """First three moments of a latent variable model.

    Decompositions take them in the form `M1 ~ sum_j w_j m_j`, `M2 = sum_j w_j m_j m_j'`,
    `M3 = sum_j w_j m_j^(x)3` with linearly independent columns m_j. The moments of single-topic
    documents have it; `dirichlet_moments` brings those of LDA to it.

    Parameters
    ----------
    M1 : (n,) float64
        First moment; only its direction counts.
    M2 : (n, n) float64
        Second moment.
    M3 : (n, n, n) float64
        Third moment.

    Raises
    ------
    InvalidInput
        Shapes that do not fit, or a number that is not finite.

    Examples
    --------
    >>> moments = Moments.of_mixture(np.eye(2), np.array([0.7, 0.3]))
    >>> moments.M2
    array([[0.7, 0. ],
           [0. , 0.3]])
    """

    M1: NDArray[np.float64]
    M2: NDArray[np.float64]
    M3: NDArray[np.float64]

    def __post_init__(self) -> None:
        n = self.M1.size
        shapes = self.M1.shape, self.M2.shape, self.M3.shape
        if shapes != ((n,), (n, n), (n, n, n)):
            raise InvalidInput(
                f"moments of shapes {', '.join(map(str, shapes))}; they must be (n,), (n, n), "
                "(n, n, n)"
            )
        for name in ("M1", "M2", "M3"):
            wrong = int((~np.isfinite(getattr(self, name))).sum())
            if wrong:
                raise InvalidInput(
                    f"{name} holds {wrong} numbers that are not finite; estimate it from documents "
                    "that have enough words"
                )

    @classmethod
    def of_mixture(cls, columns: NDArray[np.float64], weights: NDArray[np.float64]) -> Moments:
        """The exact moments of (n, k) columns m_j with (k,) weights w_j."""
        pairs = (columns * weights) @ columns.T
        triples = np.einsum("ij,kj,lj,j->ikl", columns, columns, columns, weights, optimize=True)
        return cls(columns @ weights, pairs, triples)

    @property
    def n_words(self) -> int:
        """Number of words, or of other observed features, n."""
        return int(self.M1.size)

    def symmetrized(self) -> Moments:
        """The mean over all orders of the indices; these very moments when they are symmetric.

        Estimates that take the words of a document in their order are not symmetric, though the
        true moments are: the mean is an estimate of smaller variance.
        """
        pairs = np.array_equal(self.M2, self.M2.T)
        turned = (np.swapaxes(self.M3, 0, 1), np.swapaxes(self.M3, 1, 2))
        if pairs and all(np.array_equal(self.M3, other) for other in turned):
            return self
        return Moments(self.M1, (self.M2 + self.M2.T) / 2, symmetrized(self.M3))


def symmetrized(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of an (n, n, n) tensor over the six orders of its indices.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 1] = 3
    >>> symmetrized(tensor)[1, 0, 0]
    np.float64(1.0)
    """
    total = np.zeros_like(tensor)
    for order in itertools.permutations(range(3)):
        total += tensor.transpose(order)
    return total / 6


def dirichlet_moments(moments: Moments, alpha0: float) -> Moments:
    """Moments of LDA documents brought to the form of a mixture (Ruffini et al. 2018, Theorem 3).

    With a0 the sum of the Dirichlet parameters and `omega = alpha / a0`,

        A = M2 - a0/(a0+1) M1 M1'
        T = (a0+2)/2 [ M3 - a0/(a0+2) (M2 (x) M1, in its three places)
                       + 2 a0^2/((a0+1)(a0+2)) M1 (x) M1 (x) M1 ]

    are `sum_j w_j m_j m_j'` and `sum_j w_j m_j^(x)3` with `w_j = omega_j / (a0 + 1)`.

    Parameters
    ----------
    moments : Moments
        As an estimator gives them.
    alpha0 : float
        a0, >= 0; 0 leaves the moments as they are.

    Returns
    -------
    Moments
        M1 as it was, A, T.

    Raises
    ------
    InvalidInput
        alpha0 outside 0 to 1e6.

    Examples
    --------
    >>> same = Moments.of_mixture(np.eye(2), np.array([0.7, 0.3]))
    >>> np.array_equal(dirichlet_moments(same, 0.0).M3, same.M3)
    True
    """
    if not 0 <= alpha0 <= _LARGEST_ALPHA0:
        raise InvalidInput(f"alpha0 is {alpha0}; it must be 0 to {_LARGEST_ALPHA0:g}")
    M1, M2 = moments.M1, moments.M2
    mean = np.outer(M1, M1)
    A = M2 - alpha0 / (alpha0 + 1) * mean
    crossed = M2[:, :, None] * M1
    crossed += M2[:, None, :] * M1[None, :, None]
    crossed += M1[:, None, None] * M2
    T = moments.M3 - alpha0 / (alpha0 + 2) * crossed
    T += 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2)) * mean[:, :, None] * M1
    return Moments(M1, A, (alpha0 + 2) / 2 * T)
