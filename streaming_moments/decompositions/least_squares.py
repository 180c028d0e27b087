"""Alternating least squares on the whitened third moment, a k x k x k tensor."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.whitened import Components, WhitenedMoments
from streaming_moments.errors import InvalidInput, NotIdentifiable

# A fit ends after a sweep that changes the share of the tensor which the components explain by less
# than `_TOLERANCE` in the best restart, and by less than `_TOLERANCE_OF_ALL` in each.
_TOLERANCE, _TOLERANCE_OF_ALL = 1e-12, 1e-8
# two components coincide if a singular value of the matrix of all components is below this
_NEARLY_EQUAL = 1e-6


def by_alternating_least_squares(
    whitened: WhitenedMoments,
    rng: np.random.Generator,
    restarts: int = 10,
    sweeps: int = 500,
    orthogonal_sweeps: int = 10,
) -> Components:
    """Find the components of the whitened tensor T by alternating least squares.

    The method is that of Kolda and Bader 2009, section 3.4.

    Fits `T = sum_j a_j (x) b_j (x) c_j`. In a sweep, each factor A, B and C in turn solves a linear
    system with the other two fixed: `A [(B'B) * (C'C)] = T_(1) (B (.) C)` for A. The fit ends after
    a sweep that changes the explained share of the tensor by less than 1e-12 in the best restart,
    and by less than 1e-8 in all. The restarts run together in batched products; the one with the
    smallest residual is returned. For symmetric tensors, the three factors are equal up to signs. A
    component is their mean with equal signs. Components need not be orthogonal. Their values are
    positive. The tensor is symmetrised first: replaced by its mean over all orders of the indices.

    Starts are random orthogonal matrices. In the first `orthogonal_sweeps` sweeps, each factor is
    made orthogonal before the next one is solved (Sharan and Valiant 2017, Hybrid-ALS). With
    `orthogonal_sweeps=0`, this is plain alternating least squares. But for ten or more components,
    two components then coincide in each restart. This was measured in 8 models of 12 and 20
    components: without these sweeps, none of 10 restarts was right. With 10 such sweeps, all were.

    Raises NotIdentifiable if two components of the best fit have the same direction, or one
    vanishes.

    Examples
    --------
    >>> tensor = np.zeros((2, 2, 2))
    >>> tensor[0, 0, 0], tensor[1, 1, 1] = 2.0, 3.0
    >>> whitened = WhitenedMoments(tensor, np.eye(2), np.ones(2))
    >>> found = by_alternating_least_squares(whitened, np.random.default_rng(0))
    >>> np.sort(found.values).round(4)
    array([2., 3.])
    """
    if restarts < 1 or sweeps < 1:
        raise InvalidInput(
            f"restarts is {restarts} and sweeps is {sweeps}; give at least 1 of each"
        )
    k = whitened.n_topics
    tensor = whitened.symmetrized().tensor
    unfolded = tensor.reshape(k, k * k)
    B, C = (np.linalg.qr(rng.standard_normal((restarts, k, k)))[0] for _ in range(2))
    for _ in range(orthogonal_sweeps):
        A = np.linalg.qr(_solved(unfolded, B, C))[0]
        B = np.linalg.qr(_solved(unfolded, C, A))[0]
        C = np.linalg.qr(_solved(unfolded, A, B))[0]
    explained = np.full(restarts, -np.inf)
    for _ in range(sweeps):
        A = _scaled(_solved(unfolded, B, _scaled(C)))
        B = _scaled(_solved(unfolded, _scaled(C), A))
        C = _solved(unfolded, A, B)
        before, explained = explained, _explained(unfolded, A, B, C)
        change = np.abs(explained - before)
        if change[explained.argmax()] < _TOLERANCE and (change < _TOLERANCE_OF_ALL).all():
            break
    best = int(explained.argmax())
    return _combined(A[best], B[best], C[best])


def _solved(
    unfolded: NDArray[np.float64], one: NDArray[np.float64], two: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (r, k, k) factor that fits the tensor best in each of r restarts.

    The other two factors, `one` and `two`, stay fixed.
    """
    k = unfolded.shape[0]
    pairs = (one[:, :, None, :] * two[:, None, :, :]).reshape(-1, k * k, k)
    gram = (one.transpose(0, 2, 1) @ one) * (two.transpose(0, 2, 1) @ two)
    # If two components of a restart coincide, its Gram matrix is singular. The pseudo-inverse then
    # still gives finite numbers. This restart is not chosen, because another fits better.
    fitted: NDArray[np.float64] = unfolded @ pairs @ np.linalg.pinv(gram, hermitian=True)
    return fitted


def _scaled(factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (r, k, k) factors with columns scaled to length 1; a zero column stays zero."""
    length = np.linalg.norm(factor, axis=-2, keepdims=True)
    return factor / np.where(length > 0, length, 1.0)


def _explained(
    unfolded: NDArray[np.float64],
    A: NDArray[np.float64],
    B: NDArray[np.float64],
    C: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the (r,) share of the tensor's squared norm that each of r restarts explains."""
    k = unfolded.shape[0]
    pairs = (B[:, :, None, :] * C[:, None, :, :]).reshape(-1, k * k, k)
    residual = unfolded - A @ pairs.transpose(0, 2, 1)
    total = (unfolded**2).sum()
    share: NDArray[np.float64] = 1 - (residual**2).sum(axis=(1, 2)) / (total if total else 1.0)
    return share


def _combined(A: NDArray[np.float64], B: NDArray[np.float64], C: NDArray[np.float64]) -> Components:
    """Return the components of a fit: means of the columns of the three factors, with equal signs.

    The values of the components are positive.
    """
    values = np.linalg.norm(C, axis=0)
    one, two = (np.sign((factor * C).sum(axis=0)) for factor in (A, B))
    # columns of one component are equal up to sign: if a = r c and b = s c, then a (x) b (x) c is r
    # s times the cube of c
    vectors = one * two * (one * A + two * B + _scaled(C))
    vectors = vectors / np.where(values > 0, np.linalg.norm(vectors, axis=0), 1.0)
    smallest = float(np.linalg.svd(vectors, compute_uv=False)[-1])
    if not (values > 0).all() or not smallest > _NEARLY_EQUAL:
        raise NotIdentifiable(
            f"alternating least squares put two of {values.size} components in one direction "
            f"(smallest singular value {smallest:.1g}); ask for fewer topics, add documents, "
            'or use another seed or method "joint"'
        )
    return Components(vectors, values)
