"""Polishing: passes over documents that maximise the likelihood of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models import topic_reading
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import CountBatch

SWEEPS = 15
PASSES = 2
_TOLERANCE = 3e-4  # of a document's tokens: change at which its sweeps end
_SMOOTHING = 1e-3  # share of M1 mixed into the topics when documents are read
RULES = (SWEEPS, _TOLERANCE, _SMOOTHING)  # rules by which documents are read
_MOST_SHARES = 1 << 62  # units of tokens in one sum

M = TypeVar("M", bound=TopicModel)


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Expected sums of a pass over documents, in integers, so that they are exact in any order.

    counts : (n, k) int64, tokens of each word in each topic, in units of 2^-20 of a token
    prior : (k + 1,) int64, in the same units, for the update of the prior; LDA: as
        `topic_reading.expected_counts`; single topic: documents of each topic, then of all
    documents, tokens : numbers read
    """

    counts: NDArray[np.int64]
    prior: NDArray[np.int64]
    documents: int = 0
    tokens: int = 0

    @classmethod
    def zero(cls, model: TopicModel) -> ExpectedCounts:
        """Empty sums."""
        n, k = model.topics.shape
        return cls(np.zeros((n, k), dtype=np.int64), np.zeros(k + 1, dtype=np.int64))

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Arrays and numbers for `from_parts`."""
        arrays = {"counts": self.counts, "prior": self.prior}
        return arrays, {"documents": self.documents, "tokens": self.tokens}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]
    ) -> ExpectedCounts:
        """Sums from their `parts`."""
        return cls(arrays["counts"], arrays["prior"], numbers["documents"], numbers["tokens"])

    def add(self, other: ExpectedCounts) -> ExpectedCounts:
        """Add the sums of other documents to these in place.

        Raises BoundExceeded for more than 2^42 tokens.
        """
        tokens = self.tokens + other.tokens
        _require_room(tokens)
        np.add(self.counts, other.counts, out=self.counts)
        np.add(self.prior, other.prior, out=self.prior)
        return replace(self, documents=self.documents + other.documents, tokens=tokens)


@dataclass(frozen=True, eq=False)
class Reader:
    """Topic model or Poisson mixture prepared for reading documents."""

    model: TopicModel
    _topics: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_topics", self.model.smoothed(_SMOOTHING))

    def add(self, batch: CountBatch, total: ExpectedCounts) -> ExpectedCounts:
        """Add the documents of a batch to `total` in place.

        Raises ForeignStatistics for a batch of another vocabulary, and BoundExceeded as
        `ExpectedCounts.add`.
        """
        model, tokens = self.model, total.tokens + batch.tokens
        model.require_words(batch)
        _require_room(tokens)
        if model.alpha0:
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
        return replace(total, documents=total.documents + batch.documents, tokens=tokens)


def improved(model: M, expected: ExpectedCounts, alpha: bool = False) -> M:
    """Model after a pass: topics, weights, and alpha if requested.

    A topic without tokens keeps its column. Omega, error bars and held-out likelihood also stay as
    fitted. Passes hardly change them, and their own estimates are worse: halves that start with the
    same topics differ by only half of their errors, and the second moments of the inferred shares
    are shrunk to those of alpha.
    """
    counts = expected.counts / topic_reading.TOKEN
    sums = counts.sum(axis=0)
    topics = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), model.topics)
    changed: dict[str, Any] = {"topics": topics, "raw_topics": topics.copy()}
    if not (model.refined and model.alpha0):
        changed["pair_weights"] = np.empty((0, 0))  # they belong to the old weights
    prior = expected.prior.astype(np.float64)
    if not model.alpha0 and prior[-1] > 0:
        changed["weights"] = prior[:-1] / prior[-1]
        if isinstance(model, PoissonMixture):
            units = np.where(prior[:-1] > 0, prior[:-1], 1.0) / topic_reading.TOKEN
            changed["raw_topics"] = np.where(prior[:-1] > 0, counts / units, model.raw_topics)
    elif alpha and prior[-1] > 0:
        steps = model.alpha0 * prior[:-1] / prior[-1]
        changed |= {"alpha0": float(steps.sum()), "weights": steps / steps.sum()}
    return replace(model, **changed).without_coherence()  # it belongs to the old topics


def require_alpha(model: TopicModel, alpha: bool) -> None:
    """Raise InvalidInput if alpha is to be learned for single topics."""
    if alpha and not model.alpha0:
        raise InvalidInput(
            "a model with one topic per document has no alpha to learn; leave alpha out, or fit "
            "with an "
            "alpha0 above 0"
        )


def _require_room(tokens: int) -> None:
    most = _MOST_SHARES // topic_reading.TOKEN
    if tokens > most:
        raise BoundExceeded(
            f"{tokens:,} tokens are more than the {most:,} that a pass can sum; polish with fewer "
            "shards"
        )
