"""Corpora drawn from known models, to measure how well fits recover these models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.synthetic.checks import columns_compared, drawn


@dataclass(frozen=True, eq=False)
class SyntheticCorpus:
    """Documents, and the model from which they were drawn.

    Parameters
    ----------
    batch : CountBatch
        (documents, n) counts.
    topics : (n, k) float64
        Distribution of the words of each topic; each column has sum 1.
    weights : (k,) float64
        Share of each topic.
    alpha0 : float
        Sum of the Dirichlet parameters of the proportions; 0 for the single-topic model.
    proportions : (documents, k) float64
        True share of each topic in each document; one-hot for the single-topic model.
    """

    batch: CountBatch
    topics: NDArray[np.float64]
    weights: NDArray[np.float64]
    alpha0: float
    proportions: NDArray[np.float64]

    __repr__ = short_repr


@drawn
def single_topic_corpus(
    n_documents: int,
    n_words: int = 100,
    n_topics: int = 5,
    lengths: tuple[int, int] = (3, 100),
    seed: int = 0,
) -> SyntheticCorpus:
    """Draw single-topic documents as in Ruffini et al. 2018, section 4.

    Topics and weights are drawn uniformly from their simplices. For each document, the length is
    drawn uniformly from `lengths` (both ends included), the topic by the weights, and the words
    from the topic.

    Examples
    --------
    >>> single_topic_corpus(10, n_words=20, n_topics=2).batch.documents
    10
    """
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.ones(n_words), size=n_topics).T
    weights = rng.dirichlet(np.ones(n_topics))
    chosen = rng.choice(n_topics, size=n_documents, p=weights)
    sizes = rng.integers(lengths[0], lengths[1] + 1, size=n_documents)
    proportions = np.zeros((n_documents, n_topics))
    proportions[np.arange(n_documents), chosen] = 1.0
    return _corpus(topics, weights, 0.0, proportions, sizes, rng)


@drawn
def lda_corpus(
    n_documents: int,
    n_words: int = 10_000,
    n_topics: int = 20,
    alpha0: float = 1.0,
    mean_length: float = 150.0,
    concentration: float = 200.0,
    seed: int = 0,
    spread: float = 0.0,
) -> SyntheticCorpus:
    """Draw documents of LDA, with word frequencies near Zipf's law.

    Topics are drawn from the Dirichlet distribution with parameters `concentration * zipf`, where
    zipf are the word frequencies of Zipf's law. Topics have equal weights, and lengths are Poisson
    or lognormal. Words are ordered by decreasing expected frequency, as in a vocabulary.

    Parameters
    ----------
    n_documents, n_words, n_topics : int
        Numbers of documents, words and topics.
    alpha0 : float
        Sum of the Dirichlet parameters of the proportions, above 0.
    mean_length : float
        Mean number of tokens in a document.
    concentration : float
        Sum of the Dirichlet parameters of a topic. With a small value topics are far apart, with a
        large value all topics are near Zipf's law.
    seed : int
        Seed of all random numbers.
    spread : float
        Standard deviation of the logarithm of lognormal lengths; with 0, lengths are Poisson.

    Examples
    --------
    >>> corpus = lda_corpus(10, n_words=50, n_topics=2)
    >>> corpus.topics.shape, corpus.proportions.shape
    ((50, 2), (10, 2))
    """
    if alpha0 <= 0:
        raise InvalidInput(f"alpha0 is {alpha0}; latent Dirichlet allocation needs it above 0")
    rng = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, n_words + 1)
    zipf /= zipf.sum()
    topics = rng.dirichlet(concentration * zipf, size=n_topics).T
    weights = np.full(n_topics, 1 / n_topics)
    topics = topics[np.argsort(-(topics @ weights), kind="stable")]
    proportions = rng.dirichlet(alpha0 * weights, size=n_documents)
    if spread:
        middle = np.log(mean_length) - spread**2 / 2
        sizes = np.rint(rng.lognormal(middle, spread, size=n_documents)).astype(np.int64)
    else:
        sizes = rng.poisson(mean_length, size=n_documents)
    return _corpus(topics, weights, alpha0, proportions, sizes, rng)


def topic_error(found: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean L1 distance of (n, k) topics, 0 to 2, for the best matching of columns.

    If the matrices have different numbers of columns, it is the mean over the matched columns.
    Raises InvalidInput if the numbers of rows differ. `components_` of an estimator has topics in
    rows, so give its transpose.

    Examples
    --------
    >>> topic_error(np.eye(3)[:, ::-1], np.eye(3))
    0.0
    """
    from scipy.optimize import linear_sum_assignment

    found, truth = columns_compared(found, truth)
    distances = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0)
    rows, columns = linear_sum_assignment(distances)
    return float(distances[rows, columns].mean())


def _corpus(
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    proportions: NDArray[np.float64],
    sizes: NDArray[np.int64],
    rng: np.random.Generator,
) -> SyntheticCorpus:
    """Draw every token: first its topic, then its word, both by cumulative probabilities."""
    n_words, n_topics = topics.shape
    documents = np.repeat(np.arange(sizes.size), sizes)
    mixed = np.cumsum(proportions, axis=1)
    chosen = (rng.random(documents.size)[:, None] > mixed[documents]).sum(axis=1)
    chosen = np.minimum(chosen, n_topics - 1)
    words = np.empty(documents.size, dtype=np.int64)
    draws = rng.random(documents.size)
    for topic in range(n_topics):
        mine = chosen == topic
        words[mine] = np.searchsorted(np.cumsum(topics[:, topic]), draws[mine], side="right")
    words = np.minimum(words, n_words - 1)
    batch = CountBatch.from_entries(documents, words, None, (sizes.size, n_words))
    return SyntheticCorpus(batch, topics, weights, alpha0, proportions)
