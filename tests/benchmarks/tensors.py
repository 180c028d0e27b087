"""Rival decompositions of the same whitened third moment: CP by ALS, and the power method.

Both get this project's statistics and whitening, decompose the k x k x k tensor, and go back to
words by the second moment, as is usual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from methods import Fitted, Prior
from numpy.typing import NDArray
from ours import gather

from streaming_moments import CountBatch, fit_by
from streaming_moments.decompositions.evidence import Directions
from streaming_moments.decompositions.forms import form_of
from streaming_moments.decompositions.moments import symmetrized
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.tensor import unwhitened_rows, whitened_tensor
from streaming_moments.statistics.counts.whitening import CoreMoments, whiten


@dataclass(frozen=True)
class Parafac:
    """tensorly's parafac (alternating least squares) at rank k; the mean of its three factors."""

    seed: None = None

    @property
    def name(self) -> str:
        return "tensorly parafac on our whitened moments"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        import tensorly.decomposition  # noqa: F401 - imported outside the clock

        return batch, n_topics, prior

    def fit(self, prepared: Any) -> TopicModel:
        from tensorly.decomposition import parafac

        batch, k, prior = prepared
        statistics = gather(batch, k)
        basis, lengths = statistics.basis, statistics.row_lengths
        pairs, counts = statistics.pair_counts[: basis.core], statistics.word_counts[: basis.core]
        whitening = whiten(
            CoreMoments(pairs, counts, statistics.length_histogram),
            basis,
            k,
            form_of(prior.alpha0),
        )
        tensor = symmetrized(whitened_tensor(statistics, whitening))
        _, factors = parafac(
            tensor, rank=k, n_iter_max=500, tol=1e-9, normalize_factors=True, random_state=0
        )
        first = factors[0]
        total = first.copy()
        for factor in factors[1:]:
            total += factor * np.where((factor * first).sum(axis=0) < 0, -1.0, 1.0)
        vectors = total / np.linalg.norm(total, axis=0)
        rows = unwhitened_rows(statistics, whitening) @ vectors
        found, parts = Directions(vectors, None), [(rows, statistics.word_counts)]
        return TopicModel.finished(whitening, found, parts, lengths, basis, "parafac")

    def result(self, fitted: TopicModel, prepared: Any) -> Fitted:
        return Fitted(fitted.topics, fitted.alpha)

    def proportions(self, fitted: TopicModel, prepared: Any) -> NDArray[np.float64]:
        return fitted.transform(prepared[0])


@dataclass(frozen=True)
class PowerMethod:
    """Tensor power method with deflation, 25 restarts: Anandkumar, Ge et al., JMLR 15 (2014)."""

    seed: None = None

    @property
    def name(self) -> str:
        return "tensor power method on our whitened moments"

    def prepare(self, batch: CountBatch, n_topics: int, prior: Prior) -> Any:
        return batch, n_topics, prior

    def fit(self, prepared: Any) -> TopicModel:
        batch, k, prior = prepared
        return fit_by(gather(batch, k), k, prior.alpha0, "power", refine=0)

    def result(self, fitted: TopicModel, prepared: Any) -> Fitted:
        return Fitted(fitted.topics, fitted.alpha)

    def proportions(self, fitted: TopicModel, prepared: Any) -> NDArray[np.float64]:
        return fitted.transform(prepared[0])
