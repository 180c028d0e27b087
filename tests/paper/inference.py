"""Topics of a real corpus by SVTD and by collapsed Gibbs sampling, with seconds and coherence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from outcome import Clock

from streaming_moments import Basis, CountBatch, MomentStatistics, fit
from streaming_moments.errors import NotIdentifiable
from streaming_moments.quality.coherences import umass_coherence

COHERENCE_WORDS = 20
GIBBS_SEED = 1
# The default of the package lda.
GIBBS_ETA = 0.01


@dataclass(frozen=True, eq=False)
class Inferred:
    """Topics and what they cost.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    proportions : (documents, k) float64
        Rows on the simplex.
    seconds : float
        CPU seconds of the inference of the topics.
    """

    topics: NDArray[np.float64]
    proportions: NDArray[np.float64]
    seconds: float


@dataclass(frozen=True, eq=False)
class Counted:
    """Statistics of a corpus, gathered once for all k.

    Parameters
    ----------
    documents : CountBatch
        Whose topic proportions are asked for.
    statistics : MomentStatistics
        Of them, or of their passages.
    judges : MomentStatistics
        Whose co-document counts decide on coherence, the same for all methods.
    seconds : float
        CPU seconds of basis and statistics.
    """

    documents: CountBatch
    statistics: MomentStatistics
    judges: MomentStatistics
    seconds: float

    @classmethod
    def of(cls, documents: CountBatch, counted: CountBatch, max_topics: int) -> Counted:
        clock = Clock()
        with clock.running():
            basis = Basis.from_pilot(counted, max_topics)
            statistics = MomentStatistics.of(counted, basis)
        judges = statistics if counted is documents else MomentStatistics.of(documents, basis)
        return cls(documents, statistics, judges, clock.seconds)

    def by_moments(self, k: int, alpha0: float) -> Inferred | None:
        """SVTD with the joint rotation; None where the moments do not hold k topics."""
        clock = Clock()
        try:
            with clock.running():
                model = fit(self.statistics, k, alpha0, refine=0)
        except NotIdentifiable:
            return None
        return Inferred(model.topics, model.transform(self.documents), clock.seconds)

    def by_gibbs(self, k: int, alpha0: float, iterations: int) -> Inferred:
        """The package lda, alpha = alpha0 / k."""
        from lda import LDA

        matrix = self.documents.to_csr().toarray()
        sampler = LDA(
            n_topics=k,
            n_iter=iterations,
            alpha=alpha0 / k,
            eta=GIBBS_ETA,
            random_state=GIBBS_SEED,
            refresh=iterations,
        )
        clock = Clock()
        with clock.running():
            sampler.fit(matrix)
        return Inferred(sampler.topic_word_.T.copy(), sampler.doc_topic_, clock.seconds)

    def coherence(self, inferred: Inferred) -> float:
        """Mean UMass coherence of the topics, L = 20."""
        codocuments = self.judges.codocuments
        assert codocuments is not None
        frequencies = self.judges.document_frequencies
        scores = umass_coherence(inferred.topics, frequencies, codocuments, COHERENCE_WORDS)
        return float(scores.mean())


def record(name: str, k: int, inferred: Inferred | None, counted: Counted) -> dict[str, Any]:
    """A flat record of a run; without seconds and coherence where there are no topics."""
    base: dict[str, Any] = {"method": name, "topics": k}
    if inferred is None:
        return base
    return {**base, "seconds": inferred.seconds, "umass": counted.coherence(inferred)}
