"""Mixture of independent Poisson counts: each component has a rate for every word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import PerDocument
from streaming_moments.models.base import Description, FitOptions
from streaming_moments.models.rows import Rows
from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.batch import CountBatch


@dataclass(frozen=True, eq=False, repr=False)
class PoissonMixture(TopicModel):
    """Components with a rate for every word; document lengths help to separate them.

    The word counts of a document of component j are independent, `x_i ~ Poisson(r_ij)`. So over
    documents of any length, `E[x_i x_l] = sum_j w_j r_ij r_lj` for pairs of distinct tokens, and
    the same holds for triples of tokens. These are the moments of a mixture whose columns are the
    rates.

    `raw_topics` are the estimated rates, and `topics` are the same columns scaled to sum 1.
    `weights` are shares of the documents, not of the words.

    Examples
    --------
    >>> from streaming_moments import Basis, MomentStatistics
    >>> from streaming_moments.models.rows import InMemory
    >>> rates = np.array([[2.0, 3.0, 0.0], [0.0, 8.0, 7.0]])
    >>> batch = CountBatch.from_csr(np.random.default_rng(0).poisson(np.repeat(rates, 4000, 0)))
    >>> basis = Basis.from_pilot(batch, max_topics=2, length_weights="pooled")
    >>> statistics = MomentStatistics.of(batch, basis)
    >>> model = PoissonMixture.fit(InMemory((statistics,)), PoissonMixture.Options(topics=2))
    >>> model.lengths.round(), model.weights.round(1)
    (array([ 5., 15.]), array([0.5, 0.5]))
    """

    name: ClassVar[str] = "poisson"
    finds_topics: ClassVar[bool] = False
    holds_out: ClassVar[str] = ""
    fewest: ClassVar[tuple[int, int]] = (0, 0)
    Options: ClassVar[type[FitOptions]] = FitOptions
    compares_halves: ClassVar[bool] = False

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the mixture to statistics; `options` are `FitOptions`.

        Raises the same errors as `fit_by`.
        """
        return cls.of_form(rows, PerDocument(), options)

    @classmethod
    def fit_bytes(cls, foundation: Any, options: Any) -> int:
        """Return the bytes that a fit needs: as many as a fit of topics to the third moment."""
        return 8 * 6 * int(foundation.rows * options.topics)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """(k,) mean number of words in a document of each component."""
        return np.asarray(self.raw_topics.sum(axis=0))

    @property
    def rates(self) -> NDArray[np.float64]:
        """(n, k) rates of words: topics times the mean document lengths of their components."""
        return self.topics * self.lengths

    def described(self) -> Description:
        """Describe the model, with the mean document length of each component."""
        return replace(super().described(), columns={"words a document": self.lengths})

    def _log_posterior(self, batch: CountBatch, smoothing: float) -> NDArray[np.float64]:
        # Add the logarithm of the Poisson probability of the counts. The rate of a word in a
        # component is its probability in the topic, times the mean document length of the
        # component.
        spread = super()._log_posterior(batch, smoothing)
        return spread + np.outer(batch.lengths, np.log(self.lengths)) - self.lengths
