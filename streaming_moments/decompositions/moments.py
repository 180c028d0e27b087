"""Moments given as arrays, and their conversion to the moments of a mixture."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from streaming_moments.arguments import checked
from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr, shown


@checked
@dataclass(frozen=True, eq=False)
class Moments:
    """First, second and third moment of n words or other observed features, given as arrays.

    Decompositions need moments of a mixture: `M1 ~ sum_j w_j m_j`, `M2 = sum_j w_j m_j m_j'`,
    `M3 = sum_j w_j m_j^(x)3`. Its columns m_j must be linearly independent. Moments of documents
    with one topic each have this form; `dirichlet_moments` converts those of LDA.

    Parameters
    ----------
    M1 : (n,) float64
        First moment. Only its direction is used.
    M2 : (n, n) float64
        Second moment.
    M3 : (n, n, n) float64
        Third moment. Nested lists, and arrays of other numbers, become arrays of float64.

    Raises
    ------
    InvalidInput
        The shapes do not match, or a number is not finite.

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

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for name in ("M1", "M2", "M3"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        n = self.M1.size
        shapes = self.M1.shape, self.M2.shape, self.M3.shape
        if shapes != ((n,), (n, n), (n, n, n)):
            raise InvalidInput(
                f"the moments have shapes {', '.join(map(str, shapes))}; give (n,), (n, n) and "
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
        """Return the exact moments of a mixture with (n, k) columns m_j and (k,) weights w_j.

        Raises
        ------
        InvalidInput
            The arrays have other shapes.
        """
        columns, weights = _numbers("columns", columns), _numbers("weights", weights)
        if columns.ndim != 2 or weights.shape != columns.shape[1:]:
            raise InvalidInput(
                f"the columns have shape {columns.shape} and the weights {weights.shape}; give "
                "(n, k) and (k,)"
            )
        pairs = (columns * weights) @ columns.T
        triples = np.einsum("ij,kj,lj,j->ikl", columns, columns, columns, weights, optimize=True)
        return cls(columns @ weights, pairs, triples)

    @property
    def n_words(self) -> int:
        """Number of words, or of other observed features, n."""
        return int(self.M1.size)

    def symmetrized(self) -> Moments:
        """Return the moments averaged over all orders of their indices; `self` if symmetric.

        True moments are symmetric, but estimates from ordered words are not. The mean over the
        orders has a smaller variance.
        """
        pairs = np.array_equal(self.M2, self.M2.T)
        turned = (np.swapaxes(self.M3, 0, 1), np.swapaxes(self.M3, 1, 2))
        if pairs and all(np.array_equal(self.M3, other) for other in turned):
            return self
        return Moments(self.M1, (self.M2 + self.M2.T) / 2, symmetrized(self.M3))


def _numbers(name: str, given: object) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} is not an array of real numbers ({error})") from error


def symmetrized(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of an (n, n, n) tensor over the six orders of its indices.

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


@checked
def dirichlet_moments(moments: Moments, alpha0: float) -> Moments:
    """Convert moments of LDA documents to those of a mixture (Ruffini et al. 2018, Theorem 3).

    Computes the moments A and T that `forms.Dirichlet` defines.

    Parameters
    ----------
    moments : Moments
        Moments estimated from documents.
    alpha0 : float
        Sum a0 of the Dirichlet parameters, at least 0. With 0, the moments stay unchanged.

    Returns
    -------
    Moments
        The unchanged M1, and A and T as second and third moment.

    Raises
    ------
    InvalidInput
        alpha0 is not in 0 to 1e6.

    Examples
    --------
    >>> same = Moments.of_mixture(np.eye(2), np.array([0.7, 0.3]))
    >>> np.array_equal(dirichlet_moments(same, 0.0).M3, same.M3)
    True
    """
    form, M1, M2 = form_of(alpha0), moments.M1, moments.M2
    mean = np.outer(M1, M1)

    def crossed() -> NDArray[np.float64]:
        total = M2[:, :, None] * M1
        total += M2[:, None, :] * M1[None, :, None]
        total += M1[:, None, None] * M2
        return total

    T = form.third(moments.M3.copy(), crossed, lambda times: times * mean[:, :, None] * M1)
    return Moments(M1, M2 - form.mean_share * mean, T)


def require_topics(n_topics: int) -> None:
    """Raise InvalidInput unless the number of topics is an integer of at least 1."""
    if not isinstance(n_topics, Integral):
        raise InvalidInput(
            f"{shown(n_topics)} topics are asked for; give a whole number, at least 1"
        )
    if n_topics < 1:
        raise InvalidInput(f"{n_topics} topics are asked for; give at least 1")
