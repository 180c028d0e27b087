"""Rotation O that diagonalises every whitened slice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.evidence import GapEvidence
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics import jacobi

_TOLERANCE = 1e-10  # the sweeps end when all angles of rotation are smaller, in radians
_MAX_SWEEPS = 200


def by_feature_gap(evidence: GapEvidence) -> NDArray[np.float64]:
    """Orthogonal (k, k) rotation O: singular vectors of a slice (Ruffini et al. 2018, Remark 7).

    The evidence must cover all row blocks. Raises InvalidInput if it has no slice.

    Examples
    --------
    >>> slices = np.array([[2.0, 0.0, 1.0]])
    >>> np.abs(by_feature_gap(GapEvidence.of("feature", 2, [slices])))
    array([[0., 1.],
           [1., 0.]])
    """
    if evidence.gap < 0:
        raise InvalidInput(
            "there are no slices to compute the rotation from; pass the slices of all row blocks"
        )
    return np.linalg.eigh(evidence.slice)[1]


def by_joint_diagonalization(
    slices: NDArray[np.float64], tolerance: float = _TOLERANCE
) -> NDArray[np.float64]:
    """Orthogonal (k, k) rotation O: joint diagonalisation of slices by Jacobi rotations.

    The slices are (m, k, k) symmetric matrices: the k sums of all slices. For exact moments the
    slices of all n words are combinations of k matrices `o_j o_j'`, so k sums of slices contain the
    same information: `sum_i u_i H_i`, with u_i row i of the k leading eigenvectors of M2. The sums
    also restrict the noise to the span of the topics. Measured, the error of the topics equals that
    with all slices to three digits.

    Examples
    --------
    >>> slices = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]])
    >>> np.abs(by_joint_diagonalization(slices)).round(4)
    array([[0.7071, 0.7071],
           [0.7071, 0.7071]])
    """
    # The right rotation almost diagonalises a generic combination of slices, so start with the
    # eigenvectors of one. This saves sweeps and makes the result canonical.
    sizes = np.linalg.norm(slices, axis=(1, 2))
    rotation = np.ascontiguousarray(np.linalg.eigh(np.tensordot(sizes, slices, axes=1))[1])
    turned = rotation.T @ slices @ rotation
    jacobi.diagonalize_jointly(turned, rotation, tolerance, _MAX_SWEEPS)
    return rotation
