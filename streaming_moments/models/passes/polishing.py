"""Polishing: passes over documents that bring a model to where their likelihood is highest."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, InvalidInput
from streaming_moments.models import topic_reading
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import CountBatch

SWEEPS = 15
PASSES = 2
_TOLERANCE = 3e-4  # of a document's tokens
_SMOOTHING = 1e-3  # share of M1 in the topics that documents are read with
RULES = (SWEEPS, _TOLERANCE, _SMOOTHING)  # by which documents are read
_MOST_SHARES = 1 << 62  # of tokens in one sum

M = TypeVar("M", bound=TopicModel)


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """What a pass over some documents expects: integers, so that sums are exact in any order.

    Parameters
    ----------
    counts : (n, k) int64
        Tokens of each word in each topic, in units of 2^-20 of a token.
    prior : (k + 1,) int64
        In the same units, for the step of the prior. LDA: as `topic_reading.expected_counts`;
        single topic: documents of each topic, and all.
    documents, tokens : int
        That were read.
    """

    counts: NDArray[np.int64]
    prior: NDArray[np.int64]
    documents: int = 0
    tokens: int = 0

    @classmethod
    def zero(cls, model: TopicModel) -> ExpectedCounts:
        """Of no documents."""
        n, k = model.topics.shape
        return cls(np.zeros((n, k), dtype=np.int64), np.zeros(k + 1, dtype=np.int64))

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Arrays and numbers."""
        arrays = {"counts": self.counts, "prior": self.prior}
        return arrays, {"documents": self.documents, "tokens": self.tokens}

    @classmethod
    def from_parts(
        cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]
    ) -> ExpectedCounts:
        """The sums of `parts`."""
        return cls(arrays["counts"], arrays["prior"], numbers["documents"], numbers["tokens"])

    def add(self, other: ExpectedCounts) -> ExpectedCounts:
        """With the documents of another, whose sums are added to these in place.

        Raises
        ------
        BoundExceeded
            More than 2^42 tokens.
        """
        tokens = self.tokens + other.tokens
        _require_room(tokens)
        np.add(self.counts, other.counts, out=self.counts)
        np.add(self.prior, other.prior, out=self.prior)
        return replace(self, documents=self.documents + other.documents, tokens=tokens)


@dataclass(frozen=True, eq=False)
class Reader:
    """A model made ready to read documents.

    Parameters
    ----------
    model : TopicModel
        Of topics or of a mixture of Poissons.
    """

    model: TopicModel
    _topics: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        require_polishable(type(self.model))
        object.__setattr__(self, "_topics", self.model.smoothed(_SMOOTHING))

    def add(self, batch: CountBatch, total: ExpectedCounts) -> ExpectedCounts:
        """Add the documents of a batch to sums, which are changed in place.

        Raises
        ------
        ForeignStatistics
            The batch counts another vocabulary.
        BoundExceeded
            As `ExpectedCounts.add`.
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


def polished(
    model: M,
    batches: CountBatch | Iterable[CountBatch],
    passes: int = PASSES,
    alpha: bool = False,
    threads: int = 1,
) -> M:
    """The model after some passes over documents: of expectation maximisation, topic by topic.

    A pass reads each document with the topics as they are and makes new ones of the tokens that
    it expects of each word in each topic. LDA: by collapsed variational Bayes (CVB0; Asuncion,
    Welling, Smyth, Teh 2009), at most 15 sweeps of `r_ij ~ m_ij (alpha_j + N_j - r_ij)`, fewer
    where a document has come to rest. Single topic and Poisson: by the posterior of its topic.

    Parameters
    ----------
    model : TopicModel
        From its topics the passes begin; they keep their numbers.
    batches : CountBatch or iterable of CountBatch
        The documents; read once a pass, so no iterator.
    passes : int
        One or two are enough where the topics are near; 0 gives the model itself.
    alpha : bool
        Whether each pass ends with a step of Minka's fixed point of alpha (2000), in which
        digamma is linear between whole counts.
    threads : int
        Over the documents of a batch; the same bits with any number.

    Raises
    ------
    InvalidInput
        A model of independent intensities, alpha of single topics, a negative number of passes.
    ForeignStatistics
        A batch counts another vocabulary.

    Examples
    --------
    >>> near = np.array([[0.6, 0.2], [0.3, 0.2], [0.1, 0.6]])
    >>> model = TopicModel.from_topics(near, np.array([0.5, 0.5]), alpha0=0.1)
    >>> batch = CountBatch.from_csr([[2, 2, 0], [0, 0, 4]] * 50)
    >>> polished(model, batch).topics.round(1)
    array([[0.5, 0. ],
           [0.5, 0. ],
           [0. , 1. ]])
    """
    if passes < 0 or threads < 1:
        raise InvalidInput(f"{passes} passes by {threads} threads; give at least 0 and 1")
    require_alpha(model, alpha)
    given = [batches] if isinstance(batches, CountBatch) else batches
    for number in range(1, passes + 1):
        expected = _expected(Reader(model), given, threads)
        model = improved(model, expected, alpha)
        note = Polishing("", number, alpha, 0, expected.documents, expected.tokens)
        model = replace(model, polishing=note)
    return model


def improved(model: M, expected: ExpectedCounts, alpha: bool = False) -> M:
    """The model that a pass gives: topics, weights, and alpha if asked for.

    Of a topic without any token the old column stays. What the fit told of pairs stays as well:
    Omega, error bars and held-out likelihood. Passes hardly change it, and what they see of it
    themselves says less: halves that begin with the same topics come to differ by half of their
    errors only, and the second moments of the shares read are shrunk to those of alpha.
    """
    counts = expected.counts / topic_reading.TOKEN
    sums = counts.sum(axis=0)
    topics = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), model.topics)
    changed: dict[str, Any] = {"topics": topics, "raw_topics": topics.copy()}
    if not (model.refined and model.alpha0):
        changed["pair_weights"] = np.empty((0, 0))  # of the new weights
    prior = expected.prior.astype(np.float64)
    if not model.alpha0 and prior[-1] > 0:
        changed["weights"] = prior[:-1] / prior[-1]
        if isinstance(model, PoissonMixture):
            units = np.where(prior[:-1] > 0, prior[:-1], 1.0) / topic_reading.TOKEN
            changed["raw_topics"] = np.where(prior[:-1] > 0, counts / units, model.raw_topics)
    elif alpha and prior[-1] > 0:
        steps = model.alpha0 * prior[:-1] / prior[-1]
        changed |= {"alpha0": float(steps.sum()), "weights": steps / steps.sum()}
    nothing = np.full(model.n_topics, np.nan)  # the coherence of other topics
    return replace(model, **changed, umass=nothing, npmi=nothing.copy())


def require_polishable(model: type[Any]) -> None:
    """Refuse a model that no pass is known for.

    Raises
    ------
    InvalidInput
        It has no topics, or independent intensities.
    """
    if not issubclass(model, TopicModel) or issubclass(model, IndependentIntensities):
        raise InvalidInput(
            f"no passes over documents are known for model {model.name}; polish one of topics or "
            "of poisson"
        )


def require_alpha(model: TopicModel, alpha: bool) -> None:
    """Refuse to learn the alpha of single topics.

    Raises
    ------
    InvalidInput
        It is to be learned.
    """
    require_polishable(type(model))
    if alpha and not model.alpha0:
        raise InvalidInput(
            "a model of one topic a document has no alpha to learn; leave it out, or fit with an "
            "alpha0 above 0"
        )


def _expected(reader: Reader, batches: Iterable[CountBatch], threads: int) -> ExpectedCounts:
    totals = [ExpectedCounts.zero(reader.model) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            shares = [batch.documents * part // threads for part in range(threads + 1)]
            parts = [batch.select(*ends) for ends in pairwise(shares)]
            totals = list(pool.map(reader.add, parts, totals))
    whole = totals[0]
    for other in totals[1:]:
        whole = whole.add(other)
    return whole


def _require_room(tokens: int) -> None:
    most = _MOST_SHARES // topic_reading.TOKEN
    if tokens > most:
        raise BoundExceeded(
            f"{tokens:,} tokens are more than the {most:,} of which a pass can add up; "
            "polish with fewer shards"
        )
