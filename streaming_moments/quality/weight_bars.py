"""Standard errors of the weights of topics, and of changes of these weights."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.topics import TopicModel
from streaming_moments.quality.mixture_shares import document_variances, mixture_shares
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram

# Factor by which standard errors of changes of weights are widened, because a fit of more documents
# also estimates the topics again. In fits of growing corpora without a trend, weights changed by
# .94 to 1.22 times the standard errors without this factor.
_REFITTED = 1.25


def weight_bars(model: TopicModel, lengths: LengthHistogram) -> NDArray[np.float64] | None:
    """Return (k,) standard errors of the weights of topics; None if the model was not refined.

    The weights come from the topic co-occurrence matrix, which is estimated from word pairs. So a
    document contributes in proportion to its number of pairs. The variance of a weight has two
    parts: `W2 Var(theta_j)`, because documents differ in their share theta_j of topic j, and the
    variance of the tokens (see `mixture_shares`). W2 is `LengthHistogram.W2`. `lengths` has the
    lengths of the fitted documents, or of a larger or smaller number of similar documents.

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
    """Return (k,) standard errors of the changes of weights if documents were added or removed.

    `bars` are the current (k,) `weight_bars`. `documents` is the number of documents of the current
    model, `before` that of the earlier model; both are at least 1. One of the two sets of documents
    contains the other, so the variance of the difference of their means is the difference of the
    variances.
    """
    return np.asarray(_REFITTED * bars * sqrt(abs(documents / before - 1)))
