"""Diversity of topics: share of different words among their top words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.relevance import top_words


def topic_diversity(topics: NDArray[np.float64], number: int = 25) -> float:
    """Return the share of different words among the top words of topics (Dieng, Ruiz, Blei 2020).

    Parameters
    ----------
    topics : (n, k) float64
        Columns on the simplex.
    number : int
        Number of top words of a topic, 1 to n.

    Returns
    -------
    float
        1 if no two topics share a top word, 1 / k if all have the same top words.

    Raises
    ------
    InvalidInput
        The number is outside 1 to n.

    Examples
    --------
    >>> topic_diversity(np.array([[0.5, 0.5], [0.4, 0.1], [0.1, 0.4]]), 2)
    0.75
    """
    if not 1 <= number <= topics.shape[0]:
        raise InvalidInput(f"{number} top words are asked for; give 1 to {topics.shape[0]}")
    top = top_words(topics, number)
    return len(set(top.ravel().tolist())) / top.size
