"""Polishing: passes over documents that maximise the likelihood of a topic model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.reading import topic_reading
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.expected_sums import IntegerSums, columns_of

SWEEPS = 15
PASSES = 2
# sweeps over a document end if one moves at most this share of its tokens to other topics
_TOLERANCE = 3e-4
# share of the mean distribution of words that is mixed into the topics before documents are read
_SMOOTHING = 1e-3
# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = (SWEEPS, _TOLERANCE, _SMOOTHING)

M = TypeVar("M", bound=TopicModel)


@dataclass(frozen=True, eq=False)
class ExpectedCounts(IntegerSums):
    """Expected sums of a pass over documents, in integers, so that they are exact in any order.

    counts : (n, k) int64, expected tokens of each word in each topic, in units of 2^-20 of a token
    prior : (k + 1,) int64, in the same units, for the update of the prior. For LDA, these are the
        `harmonics` of `topic_reading.expected_counts`. For single topics, these are the numbers of
        documents of each topic, then of all topics
    documents, tokens : number of documents and of tokens read
    """

    counts: NDArray[np.int64]
    prior: NDArray[np.int64]

    @classmethod
    def zero(cls, model: TopicModel) -> ExpectedCounts:
        """Return empty sums."""
        n, k = model.topics.shape
        return cls(np.zeros((n, k), dtype=np.int64), np.zeros(k + 1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Reader:
    """Topic model or Poisson mixture that is prepared for reading documents."""

    model: TopicModel
    _topics: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_topics", self.model.smoothed(_SMOOTHING))

    def add(self, batch: CountBatch, total: ExpectedCounts) -> ExpectedCounts:
        """Add the documents of a batch to `total` in place.

        Raises ForeignStatistics if the batch has another vocabulary than the model, and the errors
        of `IntegerSums.counting`.
        """
        model = self.model
        model.require_words(batch)
        found = total.counting(batch.documents, batch.tokens)
        if model.alpha_sum:
            topic_reading.expected_counts(
                batch.indptr,
                batch.words,
                batch.counts,
                self._topics,
                np.maximum(model.alpha, 1e-12),
                SWEEPS,
                _TOLERANCE,
                total.counts,
                total.prior,
            )
        else:
            shares = model.transform(batch, smoothing=_SMOOTHING)
            units = np.rint(shares * topic_reading.TOKEN).astype(np.int64)
            np.add(total.counts, batch.to_csr().T @ units, out=total.counts)
            total.prior[:-1] += units.sum(axis=0)
            total.prior[-1] += units.sum()
        return found


def improved(model: M, expected: ExpectedCounts, alpha: bool = False) -> M:
    """Return the model after a pass, with new topics and weights, and new alpha if requested.

    A topic without tokens keeps its column. Omega (the co-occurrence matrix of topics), error bars
    and held-out likelihood stay those of the fit. Passes hardly change these, and estimates of them
    by passes would be worse. Error bars would be too small: if the passes over two halves of the
    documents start with the same topics, the results differ by only half of their errors. Omega
    would be too near to that of the prior, because the second moments of inferred proportions are
    drawn towards those of the prior.
    """
    topics = columns_of(expected.counts, model.topics)
    changed: dict[str, Any] = {"topics": topics, "raw_topics": topics.copy()}
    if not (model.refined and model.alpha_sum):
        # drop the weights of pairs of topics, because they belong to the old weights of topics
        changed["pair_weights"] = np.empty((0, 0))
    prior = expected.prior.astype(np.float64)
    if not model.alpha_sum and prior[-1] > 0:
        changed["weights"] = prior[:-1] / prior[-1]
        if isinstance(model, PoissonMixture):
            units = np.where(prior[:-1] > 0, prior[:-1], 1.0)
            rates = expected.counts / units
            changed["raw_topics"] = np.where(prior[:-1] > 0, rates, model.raw_topics)
    elif alpha and prior[-1] > 0:
        steps = model.alpha_sum * prior[:-1] / prior[-1]
        model = model.with_alpha_sum(float(steps.sum()))
        changed["weights"] = steps / steps.sum()
    return replace(model, **changed).without_coherence()  # drop the coherence of the old topics


def require_alpha(model: TopicModel, alpha: bool) -> None:
    """Raise InvalidInput if alpha is to be learned for a model with one topic per document."""
    if alpha and not model.alpha_sum:
        raise InvalidInput(
            "a model with one topic per document has no alpha to learn; leave alpha out, or fit "
            "with an "
            "alpha0 above 0"
        )
