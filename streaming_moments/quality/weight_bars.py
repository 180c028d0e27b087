"""Standard errors of the weights of topics: of one model, and of how far they moved."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import document_variances, mixture_shares
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram

# Weights of fits of growing corpora without a trend moved by .94 to 1.22 times what the documents
# alone say: the topics themselves are estimated anew.
_REFITTED = 1.25


def weight_bars(model: TopicModel, lengths: LengthHistogram) -> NDArray[np.float64] | None:
    """(k,) standard errors of the weights of refined topics; None for others.

    Weights are those of Omega, which the pairs of words give, so a document counts by its pairs:
    the variance is `W2 Var(theta_j)`, see `mixture_shares`, and that of the tokens. `lengths` are
    of documents such as it was fitted on, of which there may be more or fewer.

    Examples
    --------
    >>> from dataclasses import replace
    >>> topics = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> model = replace(TopicModel.from_topics(topics, np.array([0.7, 0.3])), refined=10)
    >>> weight_bars(replace(model, documents=100), LengthHistogram.of([1000] * 400)).round(3)
    array([0.046, 0.046])
    """
    tokens = lengths.n_tokens
    if not model.refined or model.half_life is not None or not model.documents or not tokens:
        return None
    if not np.isfinite(lengths.W2):
        return None
    scale = lengths.n_documents / model.documents
    counts = np.rint(model.word_probabilities * (tokens / scale)).astype(np.int64)
    _, of_tokens = mixture_shares(model, counts)
    share = min(1.0, lengths.W2 * scale)
    return np.asarray(np.sqrt(of_tokens**2 + share * document_variances(model, model.weights, 0.0)))


def grown_bars(bars: NDArray[np.float64], documents: int, before: int) -> NDArray[np.float64]:
    """(k,) standard errors of how far weights moved as documents came, or went.

    `bars` are the (k,) `weight_bars` now. Both models were fitted on at least 1 document; the fewer
    documents are among the more. Two means of n and of more documents, the n among them, differ by
    the variance of the one less that of the other.
    """
    return np.asarray(_REFITTED * bars * sqrt(abs(documents / before - 1)))
