"""NPMI: normalised pointwise mutual information of top words over documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.quality.coherences.base import Coherence, TopWords


def _npmi(words: TopWords) -> NDArray[np.float64]:
    one, two = np.triu_indices(words.together.shape[1], 1)
    pair = words.together[:, one, two] / words.documents
    independent = words.alone[:, one] * words.alone[:, two] / words.documents**2
    together = (pair > 0) & (independent > 0)
    ratio = np.log(np.where(together, pair, 1.0) / np.where(together, independent, 1.0))
    scale = -np.log(np.where(together, pair, 0.5))
    # for two words that are both in every document, NPMI is 0 / 0: count it as 0
    scores = np.where(together, ratio / np.where(scale > 0, scale, 1.0), -1.0)
    return np.asarray(scores.mean(axis=1), dtype=np.float64)


def npmi_coherence(
    topics: NDArray[np.float64],
    document_frequencies: NDArray[Any],
    codocuments: NDArray[Any],
    documents: float,
    number: int = 10,
) -> NDArray[np.float64]:
    """Return the mean normalised pointwise mutual information of each topic's top words.

    For a pair of words, it is `log(p(a, b) / (p(a) p(b))) / -log p(a, b)`, where p is a share of
    the documents, and -1 if the words are never in the same document (Lau et al. 2014).

    Parameters
    ----------
    topics : (n, k) float64
        Probability of each word in each topic.
    document_frequencies : (n,) int64
        Number of documents with each word.
    codocuments : (core, core) int64
        Number of documents with both of two core words; top words come from the core.
    documents : float
        Number of documents, or their weight if they are weighted.
    number : int
        Number of top words of a topic.

    Returns
    -------
    (k,) float64
        -1 to 1; higher is better.

    Examples
    --------
    >>> topics = np.array([[0.6], [0.4]])
    >>> npmi_coherence(topics, np.array([2, 2]), np.array([[2, 2], [2, 2]]), 4, 2)
    array([1.])
    """
    return _npmi(TopWords.of(topics, document_frequencies, codocuments, documents, number))


# NPMI is the main coherence, so its gate is called just "drop of coherence", without "NPMI"
NPMI = Coherence(
    "npmi",
    "NPMI",
    _npmi,
    bounds="-1 to 1",
    gate="max_coherence_drop",
    gate_name="drop of coherence",
)
