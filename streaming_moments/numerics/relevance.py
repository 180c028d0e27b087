"""Relevance: ranking of the words that describe a topic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import shown


def relevance(
    topics: NDArray[np.float64], word_probabilities: NDArray[np.float64], weight: float = 0.7
) -> NDArray[np.float64]:
    """Return the relevance of each word for each topic (Sievert and Shirley 2014, eq. 1).

    It is `lambda log p(w|t) + (1 - lambda) log p(w|t) / p(w)`, as (n, k) float64, and `-inf` for
    words that the topic or the corpus never uses. `topics` are (n, k) with a distribution over
    words in each column, and `word_probabilities` are the (n,) probabilities of the words in the
    corpus. `weight` is lambda in [0, 1]: 1 ranks by probability, 0 by lift.

    Examples
    --------
    >>> relevance(np.array([[0.5], [0.5]]), np.array([0.9, 0.1]), weight=0.0).ravel().round(2)
    array([-0.59,  1.61])
    """
    if not 0 <= weight <= 1:
        raise InvalidInput(f"lambda is {weight}; it must be 0 to 1")
    used = (topics > 0) & (word_probabilities[:, None] > 0)
    logs = np.log(np.where(used, topics, 1.0))
    lift = logs - np.log(np.where(word_probabilities > 0, word_probabilities, 1.0))[:, None]
    return np.where(used, weight * logs + (1 - weight) * lift, -np.inf)


# Values of lambda in `relevance`, by the name of the ranking. The words chosen with 0.6 are as
# coherent as the most probable words, and fewer topics share them.
WEIGHTS = {"relevance": 0.6, "probability": 1.0, "lift": 0.0}


def telling_words(
    topics: NDArray[np.float64],
    word_probabilities: NDArray[np.float64],
    number: int,
    by: str = "relevance",
) -> NDArray[np.int64]:
    """Return the (k, number) most descriptive words of (n, k) topics.

    `by` is the name of the ranking. Raises InvalidInput if it is unknown.

    Examples
    --------
    >>> topics = np.array([[0.55, 0.5], [0.45, 0.0], [0.0, 0.5]])
    >>> telling_words(topics, topics.mean(axis=1), 1).ravel()
    array([1, 2])
    >>> telling_words(topics, topics.mean(axis=1), 1, by="probability").ravel()
    array([0, 0])
    """
    if not isinstance(by, str) or by not in WEIGHTS:
        raise InvalidInput(f"words are ranked by {shown(by)}; choose {', '.join(WEIGHTS)}")
    if number < 1:
        raise InvalidInput(
            f"the number of words is {shown(number)}; give a whole number of at least 1"
        )
    return top_words(relevance(topics, word_probabilities, WEIGHTS[by]), number)


def top_words(scores: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Return the indices (k, number) of the words with the highest (n, k) scores, best first.

    Of two words with the same score, the one with the lower index comes first.

    Examples
    --------
    >>> top_words(np.array([[0.1], [0.7], [0.2]]), 2)
    array([[1, 2]])
    """
    if not 0 < number < len(scores):
        return np.asarray(np.argsort(-scores, axis=0, kind="stable")[:number].T, dtype=np.int64)
    # find the lowest score to return first, so that only the words above it have to be sorted
    least = np.partition(scores, len(scores) - number, axis=0)[len(scores) - number]
    found = np.empty((scores.shape[1], number), dtype=np.int64)
    for topic, column in enumerate(scores.T):
        words = np.flatnonzero(column >= least[topic])
        found[topic] = words[np.argsort(-column[words], kind="stable")[:number]]
    return found
