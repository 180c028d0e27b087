"""The whitened third moment, from given moments or from statistics, and the way back to words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.moments import Moments, symmetrized
from streaming_moments.packing import pack, packed_size, unpack
from streaming_moments.row_lengths import quotients
from streaming_moments.weighted import Statistics, row_constants
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


def whitened_tensor(statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
    """`T = M3(W, W, W) = sum_i w_i (x) H_i` from the core rows of a block; adds up over blocks.

    W has no rows outside the core, so the core words' slices hold all of T, and none of them is
    computed: with `v = G W` and the sums over the rows i of

        C3 T = B' (sum w_i (x) T_i) B - sum (v_i (x) w_i w_i' in its three orders)
               + 2 sum word_counts_i w_i (x) w_i w_i'

    the sketch is read once, where the slices would take k times the work.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        One block of rows.
    whitening : Whitening
        From the core moments of the same statistics.

    Returns
    -------
    (k, k, k) float64
        Summed over all blocks it is symmetric up to rounding.
    """
    k, s = whitening.n_topics, statistics.basis.columns
    W, B, core = whitening.vectors, whitening.coefficients, statistics.basis.core
    words = np.arange(core)[statistics.block.rows]
    first, second = np.zeros(k), np.zeros((k, k))
    sketched = np.zeros((k, packed_size(s)))
    crossed, cubes = np.zeros((2, k, packed_size(k)))
    for start in range(0, words.size, _ROWS):
        rows = slice(start, min(start + _ROWS, words.size))
        w = W[words[rows]]
        weighted = statistics.word_counts[rows, None] * w
        products = statistics.pair_counts[rows].astype(np.float64) @ W
        squares = pack(w[:, :, None] * w[:, None, :])
        sketched += w.T @ statistics.triple_sketch[rows].astype(np.float64)
        crossed += (products + weighted).T @ squares
        cubes += weighted.T @ squares
        first += weighted.sum(axis=0)
        second += w.T @ products
    C1, C2 = statistics.length_histogram.C1, statistics.length_histogram.C2
    raw: NDArray[np.float64] = np.matmul(B.T, unpack(sketched, s) @ B)
    tensor = raw - _three_orders(unpack(crossed, k))
    tensor = (tensor + 2 * unpack(cubes, k)) / statistics.length_histogram.C3
    if whitening.alpha0:
        a0, u, first, second = whitening.alpha0, whitening.first, first / C1, second / C2
        mixed = np.multiply.outer(first, whitening.second) + np.multiply.outer(second, u)
        mixed += second[:, None, :] * u[:, None]
        tensor -= a0 / (a0 + 2) * mixed
        tensor += 2 * a0**2 / ((a0 + 1) * (a0 + 2)) * np.multiply.outer(first, np.outer(u, u))
        tensor *= (a0 + 2) / 2
    return tensor


def _three_orders(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over the places the first index may take; symmetric in the other two."""
    return tensor + tensor.transpose(1, 0, 2) + tensor.transpose(1, 2, 0)


def unwhitened_rows(statistics: Statistics, whitening: Whitening) -> NDArray[np.float64]:
    """Rows of `A W = sum_j w_j^1/2 m_j o_j'` for all words of a block.

    Of exact moments it is, inside the core, the pseudo-inverse of W', by which the sources go back
    from whitened vectors to words. `A = P / C2 - a0 / (a0 + 1) M1 M1'` has a row for every other
    word too, from the documents that count it.

    Parameters
    ----------
    statistics : MomentStatistics or WeightedStatistics
        One block of r rows.
    whitening : Whitening
        Of the same statistics.

    Returns
    -------
    (r, k) float64
    """
    a0, rows = whitening.alpha0, statistics.word_counts.size
    products = np.empty((rows, whitening.n_topics))
    for start in range(0, rows, _ROWS):
        part = slice(start, start + _ROWS)
        products[part] = statistics.pair_counts[part].astype(np.float64) @ whitening.vectors
    C1, C2, _ = row_constants(statistics)
    mean = quotients(statistics.word_counts[:, None].astype(np.float64), C1)
    return quotients(products, C2) - a0 / (a0 + 1) * mean * whitening.first
