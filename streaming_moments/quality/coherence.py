"""How good topics are: coherence from stored counts, relevance, diversity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import top_words


def umass_coherence(
    topics: NDArray[np.float64],
    document_frequencies: NDArray[Any],
    codocuments: NDArray[Any],
    number: int = 20,
) -> NDArray[np.float64]:
    """UMass coherence of each topic (Mimno et al. 2011, eq. 1), from counts alone.

    `sum_{a < b} log (D(w_a, w_b) + 1) / D(w_a)` over the topic's top words by probability,
    `w_a` the more probable of a pair.

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    document_frequencies : (n,) int64
        D(w), in documents.
    codocuments : (core, core) int64
        D(w, w'), in documents; top words are taken from the core.
    number : int
        Top words of a topic, L.

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
    joint, single = _top_counts(topics, document_frequencies, codocuments, number)
    earlier, later = np.triu_indices(joint.shape[1], 1)
    ratio = (joint[:, earlier, later] + 1) / np.maximum(single[:, earlier], 1)
    return np.asarray(np.log(ratio).sum(axis=1), dtype=np.float64)


def npmi_coherence(
    topics: NDArray[np.float64],
    document_frequencies: NDArray[Any],
    codocuments: NDArray[Any],
    documents: float,
    number: int = 10,
) -> NDArray[np.float64]:
    """Mean normalised pointwise mutual information of each topic's top words over documents.

    `log(p(a, b) / (p(a) p(b))) / -log p(a, b)`, -1 for pairs never together (Lau et al. 2014).

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    document_frequencies : (n,) int64
        In documents.
    codocuments : (core, core) int64
        In documents; top words are taken from the core.
    documents : float
        Number of documents, or their weight where they are weighted.
    number : int
        Top words of a topic.

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
    joint, single = _top_counts(topics, document_frequencies, codocuments, number)
    one, two = np.triu_indices(joint.shape[1], 1)
    pair = joint[:, one, two] / documents
    independent = single[:, one] * single[:, two] / documents**2
    together = (pair > 0) & (independent > 0)
    ratio = np.log(np.where(together, pair, 1.0) / np.where(together, independent, 1.0))
    scale = -np.log(np.where(together, pair, 0.5))
    # two words in every document say nothing about each other: 0 / 0 is 0
    scores = np.where(together, ratio / np.where(scale > 0, scale, 1.0), -1.0)
    return np.asarray(scores.mean(axis=1), dtype=np.float64)


def topic_diversity(topics: NDArray[np.float64], number: int = 25) -> float:
    """Share of different words among the top words of all topics (Dieng, Ruiz, Blei 2020).

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    number : int
        Top words of a topic, 1 to n.

    Returns
    -------
    float
        1 when no two topics share a top word, 1 / k when all have the same.

    Raises
    ------
    InvalidInput
        A number outside 1 to n.

    Examples
    --------
    >>> topic_diversity(np.array([[0.5, 0.5], [0.4, 0.1], [0.1, 0.4]]), 2)
    0.75
    """
    if not 1 <= number <= topics.shape[0]:
        raise InvalidInput(f"{number} top words asked for; there are 1 to {topics.shape[0]}")
    top = top_words(topics, number)
    return len(set(top.ravel().tolist())) / top.size


def _top_counts(
    topics: NDArray[np.float64],
    document_frequencies: NDArray[Any],
    codocuments: NDArray[Any],
    number: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k, L, L) co-document and (k, L) document counts of each topic's top core words."""
    core = codocuments.shape[0]
    if not 2 <= number <= core:
        raise InvalidInput(f"{number} top words asked for; coherence needs 2 to {core}, the core")
    top = top_words(topics[:core], number)
    joint = codocuments[top[:, :, None], top[:, None, :]].astype(np.float64)
    return joint, document_frequencies[top].astype(np.float64)
