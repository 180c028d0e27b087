"""The rotation O that makes every whitened slice diagonal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from streaming_moments import kernels
from streaming_moments.errors import InvalidInput
from streaming_moments.packing import frobenius_weights, packed_size, unpack

_TOLERANCE = 1e-10  # radians
_MAX_SWEEPS = 200


@dataclass(frozen=True, eq=False)
class GapCandidate:
    """The slice of some rows whose singular values lie farthest apart (Remark 7).

    A mergeable statistic of slices: `+` keeps the wider gap, `zero` is the identity.

    Parameters
    ----------
    gap : float
        Smallest distance of two singular values; -1 for no slice.
    slice : (k, k) float64
        The slice.
    """

    gap: float
    slice: NDArray[np.float64]

    @classmethod
    def zero(cls, n_topics: int) -> GapCandidate:
        """No slice seen."""
        return cls(-1.0, np.zeros((n_topics, n_topics)))

    @classmethod
    def of(cls, slices: NDArray[np.float64], n_topics: int) -> GapCandidate:
        """Widest gap of (rows, k (k + 1) / 2) packed slices; the first of equals."""
        if not slices.shape[0]:
            return cls.zero(n_topics)
        full = unpack(slices, n_topics)
        # of a symmetric matrix the singular values are the absolute eigenvalues
        singular = np.sort(np.abs(np.linalg.eigvalsh(full)), axis=1)
        gaps = np.diff(singular, axis=1).min(axis=1) if n_topics > 1 else singular[:, 0]
        best = int(gaps.argmax())
        return cls(float(gaps[best]), full[best])

    def __add__(self, other: GapCandidate) -> GapCandidate:
        return other if other.gap > self.gap else self


def slice_gram(slices: NDArray[np.float64], n_topics: int) -> NDArray[np.float64]:
    """Gram matrix of packed slices under the Frobenius inner product; adds up over rows.

    Parameters
    ----------
    slices : (rows, k (k + 1) / 2) float64
        Packed slices.
    n_topics : int
        k.

    Returns
    -------
    (k (k + 1) / 2, k (k + 1) / 2) float64
    """
    weighted = slices * frobenius_weights(n_topics)
    gram: NDArray[np.float64] = weighted.T @ weighted
    return gram


def by_feature_gap(candidates: Iterable[GapCandidate]) -> NDArray[np.float64]:
    """Rotation from one slice: its singular vectors (Ruffini et al. 2018, Remark 7).

    Parameters
    ----------
    candidates : iterable of GapCandidate
        Of each row block, at least one.

    Returns
    -------
    (k, k) float64
        O, orthogonal.

    Raises
    ------
    InvalidInput
        No slice at all.

    Examples
    --------
    >>> slices = np.array([[2.0, 0.0, 1.0]])
    >>> np.abs(by_feature_gap([GapCandidate.of(slices, 2)]))
    array([[0., 1.],
           [1., 0.]])
    """
    best: GapCandidate | None = None
    for candidate in candidates:
        best = candidate if best is None else best + candidate
    if best is None or best.gap < 0:
        raise InvalidInput("no slice to take the rotation from; give the slices of all row blocks")
    return np.linalg.eigh(best.slice)[1]


def by_joint_diagonalization(gram: NDArray[np.float64], n_topics: int) -> NDArray[np.float64]:
    """Rotation from all slices at once: joint diagonalisation by Jacobi rotations.

    The slices enter by their Gram matrix only: its 2k leading eigenvectors, scaled by the square
    roots of the eigenvalues and unpacked, span what all slices together say; k of them carry the
    topics, the others noise that the angles weigh down.

    Parameters
    ----------
    gram : (k (k + 1) / 2, k (k + 1) / 2) float64
        Sum of `slice_gram` over all row blocks.
    n_topics : int
        k.

    Returns
    -------
    (k, k) float64
        O, orthogonal.

    Examples
    --------
    >>> slices = np.array([[2.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
    >>> np.abs(by_joint_diagonalization(slice_gram(slices, 2), 2)).round(4)
    array([[0.7071, 0.7071],
           [0.7071, 0.7071]])
    """
    size = packed_size(n_topics)
    number = min(2 * n_topics, size)
    if size <= 512 or number * 4 >= size:
        values, vectors = np.linalg.eigh(gram)
    else:
        start = np.ones(size)
        values, vectors = eigsh(gram, k=number, which="LA", v0=start)
    order = np.argsort(-values)[:number]
    values, vectors = np.clip(values[order], 0, None), vectors[:, order]
    packed = (vectors * np.sqrt(values)).T / frobenius_weights(n_topics)
    # a generic combination of the slices is almost diagonalised by the right rotation already:
    # starting there saves sweeps and keeps the result canonical
    matrices = unpack(packed, n_topics)
    rotation = np.linalg.eigh(np.tensordot(np.sqrt(values), matrices, axes=1))[1]
    turned = np.ascontiguousarray(rotation.T @ matrices @ rotation)
    rotation = np.ascontiguousarray(rotation)
    kernels.diagonalize_jointly(turned, rotation, _TOLERANCE, _MAX_SWEEPS)
    return rotation
