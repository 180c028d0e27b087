"""Scores on real corpora, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from corpora import shuffled_tokens
from methods import Fitted
from numpy.typing import NDArray

from streaming_moments import CountBatch, TopicModel
from streaming_moments.quality.coherence import npmi_coherence, umass_coherence
from streaming_moments.quality.relevance import top_words

COHERENCE_WORDS = 10
# Share of the word frequencies mixed into every topic of every method.
SMOOTHING = 0.01


@dataclass(frozen=True)
class Scores:
    """Scores of one model.

    Parameters
    ----------
    npmi, umass : float
        Means over topics of their 10 top words, on the training documents.
    perplexity : float
        Of one half of each held-out document's tokens given the other.
    """

    npmi: float
    umass: float
    perplexity: float


def score(fitted: Fitted, training: CountBatch, held_out: CountBatch) -> Scores:
    """Coherence on the training documents and completion of the held-out ones."""
    npmi, umass = coherence(fitted.topics, training)
    return Scores(npmi, umass, completion_perplexity(fitted, training, held_out))


def coherence(topics: NDArray[np.float64], training: CountBatch) -> tuple[float, float]:
    """Mean NPMI and UMass from document and co-document counts of the top words."""
    words = np.unique(top_words(topics, COHERENCE_WORDS))
    present = (training.to_csr()[:, words] > 0).astype(np.int64)
    together = (present.T @ present).toarray()
    frequencies = together.diagonal().copy()
    some = topics[words]
    npmi = npmi_coherence(some, frequencies, together, training.documents, COHERENCE_WORDS)
    umass = umass_coherence(some, frequencies, together, COHERENCE_WORDS)
    return float(npmi.mean()), float(umass.mean())


def completion_perplexity(
    fitted: Fitted, training: CountBatch, held_out: CountBatch, seed: int = 0
) -> float:
    """Perplexity of half of each document's tokens, proportions inferred from the other half.

    Inference is `TopicModel.transform` with the method's own topics and alpha. Every topic of
    every method is mixed with 1% of the training frequencies (one added to each count), for
    inference and for the score.
    """
    first, second = halves(held_out, np.random.default_rng(seed))
    counts = np.bincount(training.words, weights=training.counts, minlength=training.n_words)
    frequencies = (counts + 1) / (counts + 1).sum()
    alpha0 = float(fitted.alpha.sum())
    model = replace(
        TopicModel.from_topics(fitted.topics, fitted.alpha / alpha0, alpha0),
        word_probabilities=frequencies,
    )
    proportions = model.transform(first, smoothing=SMOOTHING)
    smoothed = (1 - SMOOTHING) * fitted.topics + SMOOTHING * frequencies[:, None]
    rows = np.repeat(np.arange(second.documents), np.diff(second.indptr))
    likelihood = np.einsum("ej,ej->e", proportions[rows], smoothed[second.words])
    return float(np.exp(-(second.counts * np.log(likelihood)).sum() / second.tokens))


def halves(batch: CountBatch, rng: np.random.Generator) -> tuple[CountBatch, CountBatch]:
    """Each document's tokens dealt out in turn, in random order."""
    rows, words = shuffled_tokens(batch, rng)
    starts = np.concatenate([[0], np.cumsum(batch.lengths)])
    odd = (np.arange(rows.size) - starts[rows]) % 2 == 1
    shape = (batch.documents, batch.n_words)
    one = CountBatch.from_entries(rows[~odd], words[~odd], None, shape)
    return one, CountBatch.from_entries(rows[odd], words[odd], None, shape)
