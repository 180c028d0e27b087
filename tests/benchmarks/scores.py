"""Scores of topics, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from corpora import shuffled_tokens
from methods import Fitted
from numpy.typing import NDArray
from real_corpora import RealCorpus
from scipy.optimize import linear_sum_assignment

from streaming_moments import CountBatch, TopicModel
from streaming_moments.numerics.relevance import WEIGHTS, relevance, top_words
from streaming_moments.quality.coherences import npmi_coherence, umass_coherence
from streaming_moments.quality.diversity import topic_diversity

COHERENCE_WORDS, DIVERSITY_WORDS = 10, 25
# Share of the word frequencies mixed into every topic of every method.
SMOOTHING = 0.01
# Sums of alpha that are tried, and documents that decide at most.
_ALPHA0S, _ALPHA_DOCUMENTS = tuple(0.05 * 2**step for step in range(11)), 3000


@dataclass(frozen=True)
class Scores:
    """Scores of one model.

    Parameters
    ----------
    npmi, umass : float
        Means over topics of their 10 top words, on the training documents.
    npmi_held : float
        The same on the held-out documents.
    diversity : float
        Share of different words among the 25 top words of all topics.
    perplexity : float
        Of one half of each held-out document's tokens given the other, with the method's own
        alpha; NaN where it has none.
    perplexity_alike : float
        The same with an alpha that is chosen alike for all methods, on training documents.
    npmi_relevant, npmi_held_relevant, diversity_relevant : float
        NPMI and diversity of the words that relevance ranks first, alike for all methods.
    """

    npmi: float
    umass: float
    npmi_held: float
    diversity: float
    perplexity: float
    perplexity_alike: float
    npmi_relevant: float
    npmi_held_relevant: float
    diversity_relevant: float


def score(fitted: Fitted, corpus: RealCorpus) -> Scores:
    """Coherence, diversity, and completion of the held-out documents."""
    npmi, umass = coherence(fitted.topics, corpus.training)
    own = np.nan if fitted.alpha is None else completion_perplexity(fitted, fitted.alpha, corpus)
    alike = completion_perplexity(fitted, learned_alpha(fitted.topics, corpus.training), corpus)
    diversity = topic_diversity(fitted.topics, DIVERSITY_WORDS)
    held, _ = coherence(fitted.topics, corpus.held_out)
    # scores of words, all above 0, as shares of topics are
    telling = np.exp(
        relevance(fitted.topics, frequencies_of(corpus.training), WEIGHTS["relevance"])
    )
    return Scores(
        npmi,
        umass,
        held,
        diversity,
        own,
        alike,
        coherence(telling, corpus.training)[0],
        coherence(telling, corpus.held_out)[0],
        topic_diversity(telling, DIVERSITY_WORDS),
    )


def coherence(topics: NDArray[np.float64], documents: CountBatch) -> tuple[float, float]:
    """Mean NPMI and UMass from document and co-document counts of the top words.

    The top words are those with the highest values of `topics`, (n, k).
    """
    words = np.unique(top_words(topics, COHERENCE_WORDS))
    present = (documents.to_csr()[:, words] > 0).astype(np.int64)
    together = (present.T @ present).toarray()
    frequencies = together.diagonal().copy()
    some = topics[words]
    npmi = npmi_coherence(some, frequencies, together, documents.documents, COHERENCE_WORDS)
    umass = umass_coherence(some, frequencies, together, COHERENCE_WORDS)
    return float(npmi.mean()), float(umass.mean())


def completion_perplexity(
    fitted: Fitted, alpha: NDArray[np.float64], corpus: RealCorpus, seed: int = 0
) -> float:
    """Perplexity of half of each held-out document's tokens, proportions from the other half.

    Inference is `TopicModel.transform` with the method's topics and this alpha. With an alpha of
    zeros each document has one topic: the proportions are the probabilities of its topic. Every
    topic of every method is mixed with 1% of the training frequencies (one added to each count),
    for inference and for the score.
    """
    parts = halves(corpus.held_out, np.random.default_rng(seed))
    frequencies, alpha0 = frequencies_of(corpus.training), float(alpha.sum())
    weights = alpha / alpha0 if alpha0 or fitted.weights is None else fitted.weights
    return _completed(fitted.topics, weights, alpha0, frequencies, *parts)[0]


def learned_alpha(topics: NDArray[np.float64], training: CountBatch) -> NDArray[np.float64]:
    """(k,) alpha that completes training documents best: its sum out of a grid of factors of two.

    Its direction is that of the mean proportions. No method's own estimate, and nobody's
    documents but those that all have learned from.
    """
    step = -(-training.documents // _ALPHA_DOCUMENTS)
    some = CountBatch.from_csr(training.to_csr()[::step])
    parts = halves(some, np.random.default_rng(1))
    frequencies, k = frequencies_of(training), topics.shape[1]
    weights = np.full(k, 1 / k)
    for _ in range(2):
        weights = _completed(topics, weights, 1.0, frequencies, *parts)[1]
    return weights * min(
        _ALPHA0S, key=lambda one: _completed(topics, weights, one, frequencies, *parts)[0]
    )


def frequencies_of(training: CountBatch) -> NDArray[np.float64]:
    """(n,) that are mixed into all topics."""
    counts = np.bincount(training.words, weights=training.counts, minlength=training.n_words)
    return (counts + 1) / (counts + 1).sum()


def _completed(
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    frequencies: NDArray[np.float64],
    first: CountBatch,
    second: CountBatch,
) -> tuple[float, NDArray[np.float64]]:
    """Perplexity of the second halves, and the mean proportions of the first."""
    model = TopicModel.from_topics(topics, weights, alpha0)
    model = replace(model, word_probabilities=frequencies)
    proportions = model.transform(first, smoothing=SMOOTHING)
    smoothed = (1 - SMOOTHING) * topics + SMOOTHING * frequencies[:, None]
    rows = np.repeat(np.arange(second.documents), np.diff(second.indptr))
    likelihood = np.einsum("ej,ej->e", proportions[rows], smoothed[second.words])
    perplexity = float(np.exp(-(second.counts * np.log(likelihood)).sum() / second.tokens))
    return perplexity, proportions.mean(axis=0)


def halves(batch: CountBatch, rng: np.random.Generator) -> tuple[CountBatch, CountBatch]:
    """Each document's tokens dealt out in turn, in random order."""
    rows, words = shuffled_tokens(batch, rng)
    starts = np.concatenate([[0], np.cumsum(batch.lengths)])
    odd = (np.arange(rows.size) - starts[rows]) % 2 == 1
    shape = (batch.documents, batch.n_words)
    one = CountBatch.from_entries(rows[~odd], words[~odd], None, shape)
    return one, CountBatch.from_entries(rows[odd], words[odd], None, shape)


def agreement(proportions: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Normalised mutual information of each document's first topic and its label, 0 to 1.

    Normalised by the mean of both entropies.
    """
    cells = np.zeros((proportions.shape[1], int(labels.max()) + 1))
    np.add.at(cells, (proportions.argmax(axis=1), labels), 1 / labels.size)
    topics, classes = cells.sum(axis=1), cells.sum(axis=0)
    shared = _entropy(topics) + _entropy(classes) - _entropy(cells.ravel())
    total = _entropy(topics) + _entropy(classes)
    return float(2 * shared / total) if total > 0 else 1.0


def topic_errors(found: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k,) L1 distances of topics, 0 to 2, columns matched to make their sum least."""
    distances = np.stack([np.abs(truth - topic[:, None]).sum(axis=0) for topic in found.T])
    return distances[linear_sum_assignment(distances)]


def _entropy(shares: NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())
