"""Standard errors of the weights of topics, and of their changes."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import document_variances, mixture_shares
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram

# In fits of growing corpora without a trend, weights changed by .94 to 1.22 times their standard
# errors, as the topics are also estimated again.
_REFITTED = 1.25


def weight_bars(model: TopicModel, lengths: LengthHistogram) -> NDArray[np.float64] | None:
    """(k,) standard errors of the weights of refined topics; None for other models.

    The weights come from Omega, which word pairs determine, so a document counts by its pairs: the
    variance is `W2 Var(theta_j)`, see `mixture_shares`, plus that of the tokens. `lengths` are
    those of the fitted documents, or of more or fewer similar ones.

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
    """(k,) standard errors of the change of each weight after documents were added or removed.

    `bars` are the current (k,) `weight_bars`. Both models have at least 1 document, and one set of
    documents contains the other. The variance of the difference of two such means is the difference
    of their variances.
    """
    return np.asarray(_REFITTED * bars * sqrt(abs(documents / before - 1)))
