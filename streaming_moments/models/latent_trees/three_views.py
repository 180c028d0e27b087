"""Three views: find the states of a hidden variable from three columns that depend on it.

Given the state, the three columns are independent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.moments import symmetrized
from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.errors import NotIdentifiable
from streaming_moments.numerics.simplex import nearest_distributions

_LEAST_WEIGHT = 1e-8


def three_views(
    triple: NDArray[np.float64], states: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (c, k) distributions of the first view in each state, and (k,) decreasing weights.

    `triple` is (c, c_left, c_right) float64, the joint probabilities of three columns, the views.
    The weights are the probabilities of the states.

    The joint probabilities of two views are marginal sums of those of three, so all are from the
    same rows. Let `LR` be those of the second and third view, `U S V'` its k leading singular
    triplets, `E = RL U S^-1/2` and `F = RR V S^-1/2`. Then `E F' = sum_j w_j m_j m_j'`. After
    whitening by this matrix, the third moment is orthogonal (Anandkumar, Ge, Hsu, Kakade, Telgarsky
    2014, section 4.1), and the columns are `(E F' W + F E' W) / 2 O`.

    Raises NotIdentifiable if `LR` has a rank below k, or if a state cannot be separated from the
    others.

    Examples
    --------
    >>> columns, weights = np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([0.6, 0.4])
    >>> found, shares = three_views(np.einsum("aj,bj,cj,j->abc", *[columns] * 3, weights), 2)
    >>> found.round(6), shares.round(6)
    (array([[0.9, 0.2],
           [0.1, 0.8]]), array([0.6, 0.4]))
    """
    k = states
    first = triple.sum(axis=(1, 2))
    U, S, Vt = np.linalg.svd(triple.sum(axis=0), full_matrices=False)
    if len(S) < k or not S[k - 1] > S[0] * max(triple.shape) * np.finfo(float).eps:
        raise NotIdentifiable(f"pairs of these columns have rank below {k}")
    B1, B2 = U[:, :k] / np.sqrt(S[:k]), Vt[:k].T / np.sqrt(S[:k])
    E, F = triple.sum(axis=2) @ B1, triple.sum(axis=1) @ B2
    values, vectors = np.linalg.eigh((E @ F.T + F @ E.T) / 2)
    order = np.argsort(-values)[:k]
    positive = int((values > values.max() * len(values) * np.finfo(float).eps).sum())
    if positive < k:
        raise NotIdentifiable(f"pairs of these columns have only {positive} positive eigenvalues")
    W = vectors[:, order] / np.sqrt(values[order])
    left, right = B1 @ (W.T @ F).T, B2 @ (W.T @ E).T
    tensor = symmetrized(np.einsum("ia,ijl,jb,lc->abc", W, triple, left, right, optimize=True))
    O = by_joint_diagonalization(tensor)
    O = O * np.where(np.einsum("abc,aj,bj,cj->j", tensor, O, O, O, optimize=True) < 0, -1.0, 1.0)
    weights = (O.T @ (W.T @ first)) ** 2
    columns = (E @ (F.T @ W) + F @ (E.T @ W)) / 2 @ O
    sums = columns.sum(axis=0)
    if not (weights > _LEAST_WEIGHT).all() or not (sums > 0).all():
        raise NotIdentifiable(f"one of {k} states has no weight, or negative probabilities")
    falling = np.argsort(-weights, kind="stable")
    found = nearest_distributions((columns / sums)[:, falling])
    return found, weights[falling] / weights.sum()
