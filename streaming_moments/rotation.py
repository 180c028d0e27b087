"""The rotation O that makes every whitened slice diagonal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments import kernels
from streaming_moments.errors import InvalidInput
from streaming_moments.packing import unpack

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


def by_joint_diagonalization(slices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotation from some slices at once: joint diagonalisation by Jacobi rotations.

    Of exact moments the slices of all n words are k combinations of k matrices `o_j o_j'`, so k
    sums of slices say as much as all: `sum_i u_i H_i` with u_i row i of the k leading eigenvectors
    of M2. The same sums keep the noise of the slices down to that in the span of the topics:
    measured, the topics err as much as with all slices, to three digits.

    Parameters
    ----------
    slices : (m, k, k) float64
        Symmetric matrices; the k sums of all slices.

    Returns
    -------
    (k, k) float64
        O, orthogonal.

    Examples
    --------
    >>> slices = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> np.abs(by_joint_diagonalization(slices)).round(4)
    array([[0.7071, 0.7071],
           [0.7071, 0.7071]])
    """
    # a generic combination of the slices is almost diagonalised by the right rotation already:
    # starting there saves sweeps and keeps the result canonical
    sizes = np.linalg.norm(slices, axis=(1, 2))
    rotation = np.ascontiguousarray(np.linalg.eigh(np.tensordot(sizes, slices, axes=1))[1])
    turned = rotation.T @ slices @ rotation
    kernels.diagonalize_jointly(turned, rotation, _TOLERANCE, _MAX_SWEEPS)
    return rotation
