"""Decompositions that contract the whitened tensor along one random direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.whitened import Components, WhitenedMoments
from streaming_moments.errors import NotIdentifiable


def by_random_direction(whitened: WhitenedMoments, rng: np.random.Generator) -> Components:
    """Excess Correlation Analysis (Anandkumar, Foster, Hsu, Kakade, Liu 2012, Algorithm 2).

    Implements its second singular value decomposition: of `T(I, I, theta)`, with theta uniform on
    the unit sphere. That matrix is symmetric, so its eigenvectors are its singular vectors; they
    also separate singular values that differ only in sign. The tensor is symmetrised: the mean over
    all orders of its indices. The vectors are orthogonal.

    Raises NotIdentifiable if two eigenvalues are equal up to rounding, as their vectors are then
    undetermined.

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
    """Eigenvectors of an observable operator (Anandkumar, Hsu, Kakade 2012, Algorithm A).

    `B(eta) = (U' M3(eta) V) (U' M2 V)^-1` has the eigenvectors `U' m_j`, with the eigenvalues
    `eta . m_j`; `eta = U theta`, theta uniform on the unit sphere. The words of a document are
    exchangeable, so U = V spans all three views: here the k leading eigenvectors of M2. In whitened
    coordinates, which change the eigenvectors by `L^-1/2` only, B is
    `T(I, I, L^1/2 theta) (W' M2 W)^-1`.

    For symmetric moments B is similar to a symmetric matrix, so its eigenvalues are real. Moments
    of ordered words, as in the paper, guarantee this only in the limit. The vectors are not
    orthogonal in general.

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
    """Refuse (k,) increasing eigenvalues if two are equal up to rounding."""
    gaps = np.diff(rising)
    rounding = np.abs(rising).max() * rising.size * np.finfo(float).eps
    if gaps.size and not gaps.min() > rounding:
        raise NotIdentifiable(
            f"two of {rising.size} eigenvalues are equal up to rounding (gap {gaps.min():.1g}), so "
            f"{name} cannot separate their topics; use another seed, ask for fewer topics, or "
            'use method "joint"'
        )
