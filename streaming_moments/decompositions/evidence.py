"""Evidence: the part of the third moment that a decomposition needs; row blocks add up."""

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
    """Slice with the widest gap between singular values (Ruffini et al. 2018, Remark 7).

    `+` keeps the wider gap.

    method : decomposition for which it was gathered
    gap : smallest distance between two singular values; -1 without a slice
    slice : (k, k) float64
    """

    method: str
    gap: float
    slice: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of(cls, method: str, n_topics: int, slices: Iterable[NDArray[np.float64]]) -> GapEvidence:
        """Slice with the widest gap among packed slices, which are given in parts.

        Of several slices with this gap it is the first.

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
            # the singular values of a symmetric matrix are the absolute eigenvalues
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
        """Refuse fewer topics: the slice was chosen for one number of topics."""
        raise InvalidInput(
            f"the slice of the widest gap was chosen for {self.n_topics} topics, and other numbers "
            f"need another slice; gather the evidence for {n_topics} topics"
        )


def evidence_bytes(n_topics: int) -> int:
    """Bytes of the input of a decomposition of k topics: at most a k x k x k tensor.

    Examples
    --------
    >>> evidence_bytes(4)
    512
    """
    return 8 * n_topics**3


@dataclass(frozen=True, eq=False)
class Directions:
    """The topics in whitened coordinates.

    vectors : (k, k) float64, a unit column for each topic, not necessarily orthogonal
    values : (k,) float64, of the components of the whitened tensor; they scale the way back to
        words. None for SVTD, which reads the topics off the slices
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64] | None

    __sizeof__ = held_bytes
