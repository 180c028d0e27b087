"""Evidence: sums, over row blocks, the part of the third moment that a decomposition needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.packing import unpack


@dataclass(frozen=True, eq=False)
class GapEvidence:
    """Slice of the third moment, a k x k matrix, whose singular values are farthest apart.

    The gap of a slice is the smallest distance between two of its singular values.

    See Ruffini et al. 2018, Remark 7. The sum `a + b` of two objects is the one with the wider gap.

    method : name of the decomposition that needs the slice
    gap : the gap of the slice; -1 if there is no slice
    slice : (k, k) float64
    """

    method: str
    gap: float
    slice: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of(cls, method: str, n_topics: int, slices: Iterable[NDArray[np.float64]]) -> GapEvidence:
        """Return the slice with the widest gap. Each array of `slices` holds several packed slices.

        If several slices have the same gap, the first of them is returned.

        Examples
        --------
        >>> GapEvidence.of("feature", 2, [np.array([[2.0, 0.0, 1.0], [3.0, 0.0, 1.0]])]).gap
        2.0
        """
        widest = cls(method, -1.0, np.zeros((n_topics, n_topics)))
        for part in slices:
            if not part.shape[0]:
                continue
            full = unpack(part, n_topics)
            # for a symmetric matrix, singular values are the absolute values of eigenvalues
            singular = np.sort(np.abs(np.linalg.eigvalsh(full)), axis=1)
            gaps = np.diff(singular, axis=1).min(axis=1) if n_topics > 1 else singular[:, 0]
            best = int(gaps.argmax())
            widest = widest + cls(method, float(gaps[best]), full[best])
        return widest

    def __add__(self, other: GapEvidence) -> GapEvidence:
        return other if other.gap > self.gap else self

    @property
    def n_topics(self) -> int:
        """Number of topics k."""
        return int(self.slice.shape[0])

    def leading(self, n_topics: int) -> GapEvidence:
        """Raise InvalidInput: a slice chosen for k topics cannot be used for fewer topics."""
        raise InvalidInput(
            f"the slice of the third moment was chosen for {self.n_topics} topics, and every "
            f"number of topics needs its own slice; gather the evidence for {n_topics} topics"
        )


def evidence_bytes(n_topics: int) -> int:
    """Return a bound on the bytes of the input of a decomposition: k x k x k floats for k topics.

    Examples
    --------
    >>> evidence_bytes(4)
    512
    """
    return 8 * n_topics**3


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions of the k topics in whitened coordinates, as a decomposition finds them.

    vectors : (k, k) float64, a unit column for each topic; columns need not be orthogonal
    values : (k,) float64, weight of each component of the whitened tensor, which is needed to
        compute word distributions. None for SVTD, which computes the distributions from slices.
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64] | None

    __sizeof__ = held_bytes
