"""UMass: how often the top words of a topic occur in documents with more probable top words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.quality.coherences.base import COHERENCE_WORDS, Coherence, TopWords

PAPER_WORDS = 20  # number of top words in the paper of Mimno et al. (2011)


def _umass(words: TopWords) -> NDArray[np.float64]:
    earlier, later = np.triu_indices(words.together.shape[1], 1)
    ratio = (words.together[:, earlier, later] + 1) / np.maximum(words.alone[:, earlier], 1)
    return np.asarray(np.log(ratio).sum(axis=1), dtype=np.float64)


def umass_coherence(
    topics: NDArray[np.float64],
    document_frequencies: NDArray[Any],
    codocuments: NDArray[Any],
    number: int = 20,
) -> NDArray[np.float64]:
    """Return the UMass coherence of each topic (Mimno et al. 2011, eq. 1), from counts alone.

    It is `sum_{a < b} log (D(w_a, w_b) + 1) / D(w_a)` over the topic's most probable words, where
    `w_a` is the more probable word of a pair.

    Parameters
    ----------
    topics : (n, k) float64
        Probability of each word in each topic.
    document_frequencies : (n,) int64
        D(w), number of documents with each word.
    codocuments : (core, core) int64
        D(w, w'), number of documents with both of two core words; top words come from the core.
    number : int
        L, number of top words of a topic.

    Returns
    -------
    (k,) float64
        At most about 0; nearer to 0 is better.

    Examples
    --------
    >>> topics = np.array([[0.6], [0.4]])
    >>> umass_coherence(topics, np.array([4, 3]), np.array([[4, 2], [2, 3]]), 2).round(3)
    array([-0.288])
    """
    documents = float("nan")  # UMass does not use the number of documents
    return _umass(TopWords.of(topics, document_frequencies, codocuments, documents, number))


UMASS = Coherence(
    "umass",
    "UMass",
    _umass,
    digits=1,
    mean_digits=1,
    compared=(COHERENCE_WORDS, PAPER_WORDS),
    followed=False,
)
