"""Rival decompositions of the same whitened third moment: CP by ALS, and the power method.

Both get this project's statistics and whitening; they decompose the k x k x k tensor and go back
by un-whitening the second moment, as is usual: `m_j ~ A W v_j`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from methods import Fitted, Prior
from numpy.typing import NDArray
from ours import gather

from streaming_moments import CountBatch, MomentStatistics
from streaming_moments.packing import unpack
from streaming_moments.slices import whitened_slices
from streaming_moments.svtd import recover
from streaming_moments.whitening import CoreMoments, Whitening, whiten

_ROWS = 1024
_RESTARTS, _ITERATIONS = 25, 20


@dataclass(frozen=True)
class Parafac:
    """tensorly's parafac (alternating least squares) at rank k; the mean of its three factors."""

    @property
    def name(self) -> str:
        return "tensorly parafac on our whitened moments"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import tensorly.decomposition  # noqa: F401 - imported outside the clock

        return batch, n_topics, prior

    def fit(self, prepared: Any) -> Fitted:
        from tensorly.decomposition import parafac

        batch, k, prior = prepared
        moments = WhitenedMoments.of(gather(batch, k), k, prior.alpha0)
        _, factors = parafac(
            moments.tensor, rank=k, n_iter_max=500, tol=1e-9, normalize_factors=True, random_state=0
        )
        first = factors[0]
        total = first.copy()
        for factor in factors[1:]:
            total += factor * np.where((factor * first).sum(axis=0) < 0, -1.0, 1.0)
        return moments.topics(total / np.linalg.norm(total, axis=0))

    def result(self, fitted: Fitted, n_words: int) -> Fitted:
        return fitted


@dataclass(frozen=True)
class PowerMethod:
    """Tensor power method with deflation: 25 restarts at once, 20 iterations, 20 more of the best.

    Anandkumar, Ge, Hsu, Kakade, Telgarsky, JMLR 15 (2014), Algorithm 1.
    """

    @property
    def name(self) -> str:
        return "tensor power method on our whitened moments"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        return batch, n_topics, prior

    def fit(self, prepared: Any) -> Fitted:
        batch, k, prior = prepared
        moments = WhitenedMoments.of(gather(batch, k), k, prior.alpha0)
        return moments.topics(power_method(moments.tensor, np.random.default_rng(0)))

    def result(self, fitted: Fitted, n_words: int) -> Fitted:
        return fitted


@dataclass(frozen=True, eq=False)
class WhitenedMoments:
    """The whitened third moment of the model, with what leads back from it.

    Parameters
    ----------
    tensor : (k, k, k) float64
        `sum_j sqrt((a0 + 1) / omega_j) o_j (x) o_j (x) o_j`.
    statistics : MomentStatistics
        All rows.
    whitening : Whitening
        Of them.
    """

    tensor: NDArray[np.float64]
    statistics: MomentStatistics
    whitening: Whitening

    @classmethod
    def of(cls, statistics: MomentStatistics, n_topics: int, alpha0: float) -> WhitenedMoments:
        core = statistics.basis.core
        moments = CoreMoments(
            statistics.pair_counts[:core],
            statistics.word_counts[:core],
            statistics.length_histogram,
        )
        whitening = whiten(moments, statistics.basis, n_topics, alpha0)
        tensor = np.zeros((n_topics, n_topics * n_topics))
        start = 0
        for packed in whitened_slices(statistics, whitening):
            w = whitening.vectors[start : start + len(packed)]
            if not len(w):
                break
            start += len(packed)
            slices = unpack(packed[: len(w)], n_topics)
            tensor += w.T @ slices.reshape(len(w), -1)
        cube = tensor.reshape(n_topics, n_topics, n_topics)
        # the first mode is exact and the others seen through the basis: make them equal
        turned = (cube + cube.transpose(1, 0, 2) + cube.transpose(2, 1, 0)) / 3
        return cls(turned, statistics, whitening)

    def topics(self, vectors: NDArray[np.float64]) -> Fitted:
        """Topics of (k, k) unit columns, by un-whitening."""
        statistics, whitening = self.statistics, self.whitening
        histogram, W = statistics.length_histogram, whitening.vectors
        M1 = statistics.word_counts / histogram.C1
        ratio = whitening.alpha0 / (whitening.alpha0 + 1)
        turned = W @ vectors
        rows = np.empty((M1.size, vectors.shape[1]))
        for start in range(0, M1.size, _ROWS):
            part = slice(start, start + _ROWS)
            rows[part] = statistics.pair_counts[part] @ turned / histogram.C2
        rows -= ratio * np.outer(M1, whitening.first @ vectors)
        found = recover(rows, (vectors.T @ whitening.first) ** 2)
        return Fitted(found.topics, whitening.alpha0 * found.weights)


def power_method(tensor: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """(k, k) unit columns, one after another by deflation."""
    k = tensor.shape[0]
    rest = tensor.copy()
    found = np.empty((k, k))
    for component in range(k):
        starts = rng.standard_normal((k, _RESTARTS))
        v = _iterated(rest, starts / np.linalg.norm(starts, axis=0))
        values = (_applied(rest, v) * v).sum(axis=0)
        best = _iterated(rest, v[:, [int(values.argmax())]])
        value = float((_applied(rest, best) * best).sum())
        found[:, component] = best[:, 0]
        rest -= value * np.einsum("a,b,c->abc", best[:, 0], best[:, 0], best[:, 0])
    return found


def _iterated(tensor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    for _ in range(_ITERATIONS):
        v = _applied(tensor, v)
        v = v / np.linalg.norm(v, axis=0)
    return v


def _applied(tensor: NDArray[np.float64], v: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, m) `T(I, v, v)` for each of m columns."""
    k = tensor.shape[0]
    once = (tensor.reshape(k * k, k) @ v).reshape(k, k, -1)
    return np.einsum("abm,bm->am", once, v)
