"""Corpora drawn as in the paper's experiments, and the paper's measure of error.

The text of the paper was not at hand. What is said here to be the authors' comes from the scripts
that they published with it (github.com/mruffini/SpectralMethod: RandomGenerator.py, TestExp51.py,
TestExp52.py); the rest is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from streaming_moments import CountBatch
from streaming_moments.synthetic.corpora import single_topic_corpus

N_WORDS, N_TOPICS = 100, 5
# The authors draw the length by numpy's randint(3, 100), which leaves 100 out.
VARIED_LENGTHS = (3, 99)
FIXED_LENGTH = 20


@dataclass(frozen=True, eq=False)
class Drawn:
    """Single-topic documents with the model that drew them.

    Parameters
    ----------
    batch : CountBatch
        (documents, n) counts.
    topics : (n, k) float64
        Columns on the simplex.
    weights : (k,) float64
        Share of each topic.
    labels : (documents,) int64
        True topic of each document.
    """

    batch: CountBatch
    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    labels: NDArray[np.int64]


def authors_draw(documents: int, seed: int, lengths: tuple[int, int]) -> Drawn:
    """The authors' draw: each entry of a topic uniform in 20 to 20 + n k, then normalised.

    The five topics of 100 words so lie near one another: no word is more than 26 times as
    probable in one topic as in another. Weights are uniform numbers, normalised; lengths are
    uniform, both ends included.
    """
    rng = np.random.default_rng(seed)
    weights = rng.random(N_TOPICS)
    weights /= weights.sum()
    topics = 20 + N_WORDS * N_TOPICS * rng.random((N_WORDS, N_TOPICS))
    topics /= topics.sum(axis=0)
    labels = rng.choice(N_TOPICS, size=documents, p=weights)
    sizes = rng.integers(lengths[0], lengths[1] + 1, size=documents)
    counts = rng.multinomial(sizes, topics[:, labels].T)
    return Drawn(CountBatch.from_csr(counts), topics, weights, labels)


def simplex_draw(documents: int, seed: int) -> Drawn:
    """Ours, farther apart: topics and weights uniform on their simplices, 3 to 100 words."""
    corpus = single_topic_corpus(documents, N_WORDS, N_TOPICS, seed=seed)
    return Drawn(corpus.batch, corpus.topics, corpus.weights, corpus.proportions.argmax(axis=1))


def frobenius_error(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Frobenius norm of the difference of (n, k) topics, columns matched to make it least."""
    squares = np.stack([((truth - topic[:, None]) ** 2).sum(axis=0) for topic in found.T])
    rows, columns = linear_sum_assignment(squares)
    return float(np.sqrt(squares[rows, columns].sum()))
