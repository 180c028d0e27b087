"""Prediction: perplexity of a model on words of documents to which it was not fitted."""

from __future__ import annotations

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.seeds import generator_of
from streaming_moments.statistics.counts.batch import CountBatch

# Number of entries of a batch that are scored at a time; with 64 topics, they need 64 MB.
_ENTRIES = 1 << 16


def halves(batch: CountBatch, seed: int = 0) -> tuple[CountBatch, CountBatch]:
    """Split the tokens of each document at random into two halves.

    If the number of tokens is odd, the first half gets one more. Both halves have the same
    documents, and their sum is the batch.

    Examples
    --------
    >>> seen, held = halves(CountBatch.from_csr([[4, 3]]))
    >>> seen.lengths, held.lengths
    (array([4]), array([3]))
    """
    rng = generator_of(seed)
    lengths = batch.lengths
    documents = np.repeat(np.arange(batch.documents), lengths)
    words = np.repeat(batch.words, batch.counts)
    # shuffle tokens only within each document, so that the tokens of a document stay side by side
    shuffled = words[np.lexsort((rng.random(words.size), documents))]
    places = np.arange(words.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    seen = places < np.repeat((lengths + 1) // 2, lengths)
    shape = (batch.documents, batch.n_words)
    one, two = (
        CountBatch.from_entries(documents[half], shuffled[half], None, shape, batch.vocabulary)
        for half in (seen, ~seen)
    )
    return one, two


def completion_perplexity(
    model: TopicModel, batch: CountBatch, seed: int = 0, smoothing: float = 1e-3
) -> float:
    """Return the perplexity of one half of each document, given the other half.

    It is `exp(-sum_di x_di log p_di / sum_di x_di)` over the held-out halves, with
    `p_di = (1 - e) theta_d . m_i + e M1_i`. Here x are the counts of the held-out halves, M1 is the
    mean distribution of words, and theta are the proportions inferred from the first halves
    (document completion; Wallach, Murray, Salakhutdinov, Mimno 2009, section 5.1). For the
    single-topic model theta is the posterior, so p is the predictive probability of the next word.

    Parameters
    ----------
    model : TopicModel
        Model that was fitted to other documents.
    batch : CountBatch
        (documents, n) counts on the model's vocabulary. Documents with a single word have no second
        half and are skipped.
    seed : int
        Seed of the split.
    smoothing : float
        e, the share of the mean distribution of words that is mixed into each topic, as in
        `TopicModel.transform`.

    Returns
    -------
    float
        Perplexity; lower is better. The uniform distribution over n words has perplexity n.

    Raises
    ------
    InvalidInput
        No document has two words, or smoothing is outside (0, 1).
    ForeignStatistics
        The batch has another vocabulary.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.full((4, 1), 0.25), np.array([1.0]))
    >>> round(completion_perplexity(model, CountBatch.from_csr([[3, 2, 0, 1]])), 6)
    4.0
    """
    seen, held = halves(batch, seed)
    proportions = model.transform(seen, smoothing=smoothing)
    if not held.tokens:
        raise InvalidInput(
            f"none of {batch.documents} documents has two words; give longer documents"
        )
    # a word that never occurred has a mean of 0: this floor makes its logarithm finite
    mean = np.maximum(model.word_probabilities, 1e-12)
    documents = np.repeat(np.arange(held.documents), np.diff(held.indptr))
    total = 0.0
    for start in range(0, held.words.size, _ENTRIES):
        part = slice(start, start + _ENTRIES)
        words = held.words[part]
        mixed = np.einsum("ej,ej->e", proportions[documents[part]], model.topics[words])
        chances = (1 - smoothing) * mixed + smoothing * mean[words]
        total += float(held.counts[part] @ np.log(chances))
    return float(np.exp(-total / held.tokens))
