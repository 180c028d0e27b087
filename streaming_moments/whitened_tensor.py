"""The whitened third moment, from given moments or from statistics, and the way back to words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.moments import Moments, symmetrized
from streaming_moments.packing import unpack
from streaming_moments.slices import whitened_slices
from streaming_moments.statistics import MomentStatistics
from streaming_moments.whitening import Whitening, require_topics

# Rows of pair counts made float64 at a time: 4,096 core words are 8 MB.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class WhitenedMoments:
    """All that a decomposition of the k x k x k tensor sees.

    Of the exact moments of columns m_j with weights w_j, the second moment is the identity and
    `T = sum_j w_j^-1/2 o_j^(x)3` with orthonormal `o_j = w_j^1/2 W' m_j`.

    Parameters
    ----------
    tensor : (k, k, k) float64
        `T = M3(W, W, W)`; not symmetric when M3 is not.
    second : (k, k) float64
        `W' M2 W`: the identity when M2 is symmetric.
    spectrum : (k,) float64
        Eigenvalues L of M2 that were kept, falling: `W = U L^-1/2`.
    """

    tensor: NDArray[np.float64]
    second: NDArray[np.float64]
    spectrum: NDArray[np.float64]

    @property
    def n_topics(self) -> int:
        """Number of latent states k."""
        return int(self.spectrum.size)

    def symmetrized(self) -> WhitenedMoments:
        """The mean over all orders of the indices."""
        return WhitenedMoments(
            symmetrized(self.tensor), (self.second + self.second.T) / 2, self.spectrum
        )


@dataclass(frozen=True, eq=False)
class Components:
    """What a decomposition of the tensor finds: `T = sum_j values_j vectors_j^(x)3`.

    Parameters
    ----------
    vectors : (k, k) float64
        Unit columns; orthogonal for exact moments.
    values : (k,) float64
        `w_j^-1/2`.
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def along(cls, tensor: NDArray[np.float64], vectors: NDArray[np.float64]) -> Components:
        """Unit columns along `vectors` with `values_j = T(v_j, v_j, v_j)`."""
        unit = vectors / np.linalg.norm(vectors, axis=0)
        return cls(unit, np.einsum("abc,aj,bj,cj->j", tensor, unit, unit, unit, optimize=True))


def whiten_moments(moments: Moments, k: int) -> tuple[WhitenedMoments, NDArray[np.float64]]:
    """Whiten given moments by the k leading eigenpairs (U, L) of M2: `W = U L^-1/2`.

    Parameters
    ----------
    moments : Moments
        In the form of a mixture.
    k : int
        Number of latent states.

    Returns
    -------
    WhitenedMoments, (n, k) float64
        The tensor, and W.

    Raises
    ------
    NotIdentifiable
        M2 has fewer than k positive eigenvalues: says how many.

    Examples
    --------
    >>> whitened, W = whiten_moments(Moments.of_mixture(np.eye(2), np.array([0.64, 0.36])), 2)
    >>> whitened.tensor.diagonal().diagonal().round(4)
    array([1.25  , 1.6667])
    """
    require_topics(k, 0.0)
    values, vectors = np.linalg.eigh((moments.M2 + moments.M2.T) / 2)
    # below rounding of the largest eigenvalue a direction is noise, not a state
    positive = int((values > values.max() * values.size * np.finfo(float).eps).sum())
    if positive < k:
        raise NotIdentifiable(
            f"{k} latent states asked for but M2 has {positive} positive eigenvalues; "
            f"ask for at most {positive}, lower alpha0, or add documents"
        )
    order = np.argsort(-values)[:k]
    W = vectors[:, order] / np.sqrt(values[order])
    tensor = np.tensordot(W.T, W.T @ (moments.M3 @ W), axes=1)
    return WhitenedMoments(tensor, W.T @ moments.M2 @ W, values[order]), W


def whitened_tensor(statistics: MomentStatistics, whitening: Whitening) -> NDArray[np.float64]:
    """`T = M3(W, W, W) = sum_i w_i (x) H_i` over the core words of a block; adds up over blocks.

    W has no rows outside the core, so the core words' slices hold all of T.

    Parameters
    ----------
    statistics : MomentStatistics
        One block of rows.
    whitening : Whitening
        From the core moments of the same statistics.

    Returns
    -------
    (k, k, k) float64
        Summed over all blocks it is symmetric up to rounding.
    """
    k = whitening.n_topics
    words = np.arange(statistics.basis.n_words)[statistics.block.rows]
    tensor = np.zeros((k, k, k))
    start = 0
    for slices in whitened_slices(statistics, whitening):
        mine = words[start : start + len(slices)]
        inside = mine < whitening.vectors.shape[0]
        w = whitening.vectors[mine[inside]]
        tensor += unpack(w.T @ slices[inside], k)
        start += len(slices)
    return tensor


def unwhitened_rows(statistics: MomentStatistics, whitening: Whitening) -> NDArray[np.float64]:
    """Rows of `A W = sum_j w_j^1/2 m_j o_j'` for all words of a block.

    Of exact moments it is, inside the core, the pseudo-inverse of W', by which the sources go back
    from whitened vectors to words. `A = P / C2 - a0 / (a0 + 1) M1 M1'` has a row for every other
    word too.

    Parameters
    ----------
    statistics : MomentStatistics
        One block of r rows.
    whitening : Whitening
        Of the same statistics.

    Returns
    -------
    (r, k) float64
    """
    a0, C1 = whitening.alpha0, statistics.length_histogram.C1
    rows = statistics.word_counts.size
    products = np.empty((rows, whitening.n_topics))
    for start in range(0, rows, _ROWS):
        part = slice(start, start + _ROWS)
        products[part] = statistics.pair_counts[part].astype(np.float64) @ whitening.vectors
    mean = statistics.word_counts[:, None] / C1
    return products / statistics.length_histogram.C2 - a0 / (a0 + 1) * mean * whitening.first
