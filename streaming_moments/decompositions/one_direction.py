"""Decompositions of a sum of slices of the whitened tensor, weighted by a random direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.whitened import Components, WhitenedMoments
from streaming_moments.errors import NotIdentifiable


def by_random_direction(whitened: WhitenedMoments, rng: np.random.Generator) -> Components:
    """Find components by Excess Correlation Analysis.

    The method is that of Anandkumar, Foster, Hsu, Kakade, Liu 2012.

    This is the second singular value decomposition of their Algorithm 2: that of `T(I, I, theta)`,
    the sum of the slices of the whitened tensor T, weighted by a random direction theta. The matrix
    `T(I, I, theta)` is symmetric, so this function uses its eigenvectors: they also separate
    components whose singular values are equal, but whose eigenvalues differ in sign. The tensor is
    symmetrised first: replaced by its mean over all orders of the indices. The vectors of the
    components are orthogonal.

    Raises NotIdentifiable if two eigenvalues are equal up to rounding, because their vectors are
    then undetermined.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> np.sort(np.abs(by_random_direction(whitened, np.random.default_rng(0)).values))
    array([2., 3.])
    """
    tensor = whitened.symmetrized().tensor
    theta = rng.standard_normal(whitened.n_topics)
    values, vectors = np.linalg.eigh(tensor @ (theta / np.linalg.norm(theta)))
    _require_gap(values, "Excess Correlation Analysis")
    return Components.along(tensor, vectors)


def by_eigenvectors(whitened: WhitenedMoments, rng: np.random.Generator) -> Components:
    """Find components as eigenvectors of an observable operator.

    The method is Algorithm A of Anandkumar, Hsu, Kakade 2012.

    `B(eta) = (U' M3(eta) V) (U' M2 V)^-1` has the eigenvectors `U' m_j`, with the eigenvalues
    `eta . m_j`. Here `eta = U theta`, with theta uniform on the unit sphere. The words of a
    document are exchangeable, so U and V can be the same: the k leading eigenvectors of M2. L are
    the k leading eigenvalues of M2. In whitened coordinates, the eigenvectors are
    `L^-1/2 U' m_j`, and B is `T(I, I, L^1/2 theta) (W' M2 W)^-1`.

    For symmetric moments B is similar to a symmetric matrix, so its eigenvalues are real. With
    moments of ordered words, as in the paper, this holds only in the limit of many documents. The
    vectors of the components need not be orthogonal.

    Raises NotIdentifiable if eigenvalues are complex or two are equal up to rounding.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> np.sort(np.abs(by_eigenvectors(whitened, np.random.default_rng(0)).values))
    array([2., 3.])
    """
    from scipy.linalg import eig, solve

    theta = rng.standard_normal(whitened.n_topics)
    theta /= np.linalg.norm(theta)
    seen = whitened.tensor @ (np.sqrt(whitened.spectrum) * theta)
    operator = solve(whitened.second.T, seen.T).T
    values, vectors = eig(operator)
    rounding = np.abs(values).max() * values.size * np.sqrt(np.finfo(float).eps)
    complex_ones = values[np.abs(values.imag) > rounding]
    if complex_ones.size:
        listed = ", ".join(f"{value:.3g}" for value in complex_ones[:4])
        raise NotIdentifiable(
            f"{complex_ones.size} of {values.size} eigenvalues are complex ({listed}): the moments "
            "are too far from a mixture; symmetrise them, add documents, ask for fewer topics, or "
            "use another seed"
        )
    _require_gap(np.sort(values.real), "the eigenvector method")
    return Components.along(whitened.symmetrized().tensor, vectors.real)


def _require_gap(rising: NDArray[np.float64], name: str) -> None:
    """Raise NotIdentifiable if two of k eigenvalues are equal up to rounding.

    The eigenvalues are given in increasing order.
    """
    gaps = np.diff(rising)
    rounding = np.abs(rising).max() * rising.size * np.finfo(float).eps
    if gaps.size and not gaps.min() > rounding:
        raise NotIdentifiable(
            f"two of {rising.size} eigenvalues are equal up to rounding (gap {gaps.min():.1g}), so "
            f"{name} cannot separate their topics; use another seed, ask for fewer topics, or "
            'use method "joint"'
        )
