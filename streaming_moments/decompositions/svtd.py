"""SVTD: decomposes moments given as arrays by singular values; orders the topics by weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from streaming_moments.arguments import checked
from streaming_moments.decompositions.evidence import GapEvidence
from streaming_moments.decompositions.moments import Moments
from streaming_moments.decompositions.rotation import by_feature_gap, by_joint_diagonalization
from streaming_moments.decompositions.whitened import leading_states
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.numerics.packing import pack, unpack
from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.printing.short_repr import short_repr

Rotation = Literal["joint", "feature"]


@dataclass(frozen=True, eq=False)
class Recovered:
    """Topics and their weights, ordered by decreasing weight.

    Parameters
    ----------
    topics : (n, k) float64
        The distributions nearest to the columns of `raw`.
    weights : (k,) float64
        Weights of the topics, not negative, with sum 1.
    raw : (n, k) float64
        The estimated columns, with signs that make their sums positive.
    order : (k,) int64
        Index of each topic among the columns before they were ordered.
    """

    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    raw: NDArray[np.float64]
    order: NDArray[np.int64]

    __repr__ = short_repr


@checked
def svtd(
    M1: NDArray[np.float64],
    M2: NDArray[np.float64],
    M3: NDArray[np.float64],
    k: int,
    rotation: Rotation = "joint",
) -> Recovered:
    """Decompose moments into columns and weights of k states (Ruffini et al. 2018, Algorithm 1).

    The moments must be those of a mixture: `M1 = sum_j w_j m_j`, `M2 = sum_j w_j m_j m_j'`,
    `M3 = sum_j w_j m_j^(x)3` with linearly independent columns m_j and weights w_j. Moments of
    documents with one topic each have this form. For other models, the caller first converts the
    moments.

    Parameters
    ----------
    M1 : (n,) float64
        First moment.
    M2 : (n, n) float64
        Second moment, symmetric.
    M3 : (n, n, n) float64
        Third moment, symmetric.
    k : int
        Number of latent states.
    rotation : {"joint", "feature"}
        "joint" diagonalises k weighted sums of slices of M3 at once. "feature" takes the rotation
        from a single slice (Remark 7 of the paper). With "joint", a column is the mean of two
        estimates. One is computed from the slices, and has errors in all n directions. The other is
        the projection of this estimate on the k leading eigenvectors of M2, and has the errors of
        these eigenvectors. On 300 to 1,000 documents, the mean had a smaller error than either
        estimate.

    Returns
    -------
    Recovered
        Columns of `raw` are the m_j; use `topics` if the columns are distributions.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues.
    InvalidInput
        The shapes do not match, a number is not finite, or the rotation is unknown.

    Examples
    --------
    >>> M, w = np.array([[0.7, 0.1], [0.2, 0.2], [0.1, 0.7]]), np.array([0.6, 0.4])
    >>> moments = M @ w, (M * w) @ M.T, np.einsum("ij,kj,lj,j->ikl", M, M, M, w)
    >>> np.allclose(svtd(*moments, k=2).topics, M)
    True
    """
    require_rotation(rotation)
    moments = Moments(M1, M2, M3)
    M1, M2, M3, n = moments.M1, moments.M2, moments.M3, moments.n_words
    spectrum, U = leading_states(M2, k)
    W = U / np.sqrt(spectrum)
    slices = W.T @ (M3.reshape(n * n, n) @ W).reshape(n, n, k)
    packed = pack(slices)
    if rotation == "joint":
        O = by_joint_diagonalization(unpack(U.T @ packed, k))
    else:
        O = by_feature_gap(GapEvidence.of(rotation, k, [packed]))
    rows = np.einsum("aj,iab,bj->ij", O, slices, O, optimize=True)
    if rotation == "joint":
        rows = (rows + U @ (U.T @ rows)) / 2
    return recover(rows, (O.T @ (W.T @ M1)) ** 2)


def require_rotation(rotation: str) -> None:
    """Raise InvalidInput for a name that is not a `Rotation`."""
    if rotation not in ("joint", "feature"):
        raise InvalidInput(f'rotation is "{rotation}"; choose "joint" or "feature"')


def recover(rows: NDArray[np.float64], shares: NDArray[np.float64]) -> Recovered:
    """Turn estimated columns into topics: fix their signs, and take the nearest distributions.

    Also computes the weights, and orders the topics by weight.

    W is the whitening, and o_j the column j of the rotation. The whitened topic j is
    `o_j sqrt((a0 + 1) / omega_j)`, so `u = W' M1` gives the weights directly:
    `omega_j = (o_j . u)^2 / (a0 + 1)`. In measurements, weights from non-negative least squares on
    `M1 = M omega` have the same error. But small topics then get the weight 0, so inference never
    uses them.

    Parameters
    ----------
    rows : (n, k) float64
        Columns are the topics, up to sign.
    shares : (k,) float64
        `(o_j . u)^2`: the weights up to a factor.

    Raises
    ------
    NotIdentifiable
        A column has no positive entry, so it is not a distribution.
    """
    sums = rows.sum(axis=0)
    raw = rows * np.where(sums < 0, -1.0, 1.0)
    positive = (raw > 0).any(axis=0)
    if not positive.all():
        raise NotIdentifiable(
            f"{int((~positive).sum())} of {positive.size} topics have no positive entry; "
            "ask for fewer topics or add documents"
        )
    topics = nearest_distributions(raw)
    total = shares.sum()
    # all shares are 0 if M1 is orthogonal to all topics, which happens if a few texts are repeated
    weights = shares / total if total else np.full_like(shares, 1 / shares.size)
    # order by rounded weights, because equal weights can differ by rounding errors; order topics of
    # equal weight by their most frequent words
    order = np.lexsort((topics.argmax(axis=0), -weights.round(9)))
    return Recovered(
        np.ascontiguousarray(topics[:, order]),
        weights[order],
        np.ascontiguousarray(raw[:, order]),
        order,
    )
