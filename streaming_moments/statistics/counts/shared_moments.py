"""SharedMoments: small moments from which the topics of every alpha0 follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form, Mixture
from streaming_moments.decompositions.rotation import by_joint_diagonalization
from streaming_moments.decompositions.svtd import Recovered, recover
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.tensor import TensorSums, unwhitened_rows
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.counts.whitening import (
    SeenMoments,
    Whitening,
    positive,
    require_eigenvalues,
)
from streaming_moments.statistics.row_block import interleaved

# Radians: of trials with 20 or 50 topics the likelihood then changes by a hundredth of its noise.
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class SharedMoments:
    """Moments in the m leading directions U of M2, and rows of M2 for the most frequent words.

    Another alpha0 subtracts another multiple of `M1 M1'` from M2. For exact moments that leaves the
    span of U, so one reading of the statistics serves all of them. m is k + 1, as the direction of
    M1 can fall behind the next one.

    spectrum : (m,) float64, eigenvalues of M2
    mean : (m,) float64 `U' M1`
    third : (m, m, m) float64 `M3(U, U, U)`
    rows : (words, m) float64 `M2 U`
    M1 : (words,) float64, frequencies of the words
    """

    spectrum: NDArray[np.float64]
    mean: NDArray[np.float64]
    third: NDArray[np.float64]
    rows: NDArray[np.float64]
    M1: NDArray[np.float64]

    __sizeof__ = held_bytes

    @classmethod
    def of(
        cls, sums: TensorSums, whitening: Whitening, parts: Sequence[NDArray[np.float64]]
    ) -> SharedMoments:
        """From sums under a `widest` whitening and the `leading_rows` of all blocks, in order."""
        roots = np.sqrt(whitening.spectrum)
        gathered = interleaved(parts)
        third = np.einsum("abc,a,b,c->abc", sums.tensor(whitening), roots, roots, roots)
        return cls(
            whitening.spectrum,
            roots * whitening.first,
            third,
            gathered[:, :-1] * roots,
            gathered[:, -1],
        )

    def recovered(self, form: Form, n_topics: int) -> Recovered:
        """Topics of the most frequent words, as if the others did not exist.

        They are read off the second moment: `A W o_j` is a topic but for a factor. Raises
        NotIdentifiable if A of this form has fewer positive eigenvalues than topics.
        """
        share = form.mean_share
        values, vectors = np.linalg.eigh(
            np.diag(self.spectrum) - share * np.outer(self.mean, self.mean)
        )
        require_eigenvalues(n_topics, positive(values), form)
        spectrum = values[::-1][:n_topics]
        B = vectors[:, ::-1][:, :n_topics] / np.sqrt(spectrum)
        u, second = B.T @ self.mean, (B.T * self.spectrum) @ B
        raw = np.tensordot(self.third, B, axes=(2, 0))
        raw = np.tensordot(np.tensordot(raw, B, axes=(0, 0)), B, axes=(0, 0))

        def crossed() -> NDArray[np.float64]:
            one = np.multiply.outer(u, second)
            return one + one.transpose(1, 0, 2) + one.transpose(1, 2, 0)

        tensor = form.third(raw, crossed, lambda times: times * np.multiply.outer(u, np.outer(u, u)))
        O = by_joint_diagonalization(np.sqrt(spectrum)[:, None, None] * tensor, _TOLERANCE)
        rows = (self.rows @ B - share * np.outer(self.M1, u)) @ O
        return recover(rows / rows.sum(axis=0), (O.T @ u) ** 2)


def widest(seen: SeenMoments, basis: Basis, n_topics: int) -> Whitening:
    """Whitening of M2 for one direction more than topics, if it has as many."""
    found = positive(seen.eigenpairs(Mixture())[0])
    return seen.whitened(basis, max(n_topics, min(n_topics + 1, found)), Mixture())


def leading_rows(statistics: Statistics, whitening: Whitening, words: int) -> NDArray[Any]:
    """(r, m + 1) rows of `M2 W` of a block for so many first words, and their share of M1."""
    number = statistics.block.size(words)
    rows = unwhitened_rows(statistics, whitening, number)
    counts = statistics.moment_counts[:number, None] / statistics.row_lengths.whole.C1
    return np.hstack([rows, counts])
