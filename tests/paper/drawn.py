"""Corpora drawn as in the paper's experiments, and the paper's measure of error.

What is said here to be the authors' comes from the scripts that they published with the paper
(github.com/mruffini/SpectralMethod: RandomGenerator.py, TestExp51.py, TestExp52.py); the rest is
ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from streaming_moments import CountBatch
from streaming_moments.decompositions.moments import Moments
from streaming_moments.synthetic.corpora import lda_corpus, single_topic_corpus

N_WORDS, N_TOPICS = 100, 5
# The authors draw the length by numpy's randint(3, 100), which leaves 100 out.
VARIED_LENGTHS = (3, 99)
FIXED_LENGTH = 20
# Of LDA documents: alpha0, mean length and spread of lognormal lengths, and how near to one another
# topics are.
ALPHA0, MEAN_LENGTH, SPREAD, CONCENTRATION = 1.0, 100, 1.0, 20.0


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


def lognormal_lda(documents: int, seed: int) -> tuple[CountBatch, Moments]:
    """Ours: documents of latent Dirichlet allocation, lengths lognormal, and their true moments."""
    corpus = lda_corpus(
        *(documents, N_WORDS, N_TOPICS, ALPHA0, MEAN_LENGTH, CONCENTRATION, seed), spread=SPREAD
    )
    return corpus.batch, lda_moments(corpus.topics, ALPHA0 * corpus.weights)


def lda_moments(topics: NDArray[np.float64], alpha: NDArray[np.float64]) -> Moments:
    """Moments of words of a document, `E theta`, `E theta theta'`, `E theta^(x)3` of Dirichlet."""
    a0, one = alpha.sum(), np.eye(alpha.size)
    pairs = alpha[:, None] * (alpha + one)
    triples = pairs[:, :, None] * (alpha + one[:, None, :] + one[None, :, :])
    return Moments(
        topics @ alpha / a0,
        topics @ pairs @ topics.T / (a0 * (a0 + 1)),
        np.einsum("ia,hb,lc,abc->ihl", topics, topics, topics, triples, optimize=True)
        / (a0 * (a0 + 1) * (a0 + 2)),
    )


def frobenius_error(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Frobenius norm of the difference of (n, k) topics, columns matched to make it least."""
    squares = np.stack([((truth - topic[:, None]) ** 2).sum(axis=0) for topic in found.T])
    rows, columns = linear_sum_assignment(squares)
    return float(np.sqrt(squares[rows, columns].sum()))
