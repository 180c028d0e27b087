"""Topic proportions of documents under given topics, by fixed point iteration or Gibbs sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.errors import InvalidInput
from streaming_moments.models import topic_reading
from streaming_moments.numerics.seeds import generator_of
from streaming_moments.statistics.counts.batch import CountBatch


def log_posteriors(
    batch: CountBatch, topics: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(documents, k) logarithms of `omega_j prod_i m_ij^x_i`."""
    with np.errstate(divide="ignore"):
        prior = np.log(weights)
    return np.asarray(prior + batch.to_csr() @ np.log(topics), dtype=np.float64)


def posteriors(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """(documents, k) probabilities from their logarithms up to a constant of each document."""
    posterior = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def said_by_words(proportions: NDArray[np.float64], lengths: NDArray[np.int64]) -> Columns:
    """Values of records of words: number of known words, topic, proportions.

    A record without known words has no topic.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    topic = likeliest(proportions, lengths == 0)
    return Columns.of(length=lengths, topic=topic, proportions=proportions)


def inferred_proportions(
    batch: CountBatch,
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    method: str,
    seed: int | None,
    iterations: int,
) -> NDArray[np.float64]:
    """(documents, k) proportions under the Dirichlet of `alpha0 * weights`, by either method."""
    if method == "fixed-point":
        found = np.empty((batch.documents, weights.size))
        topic_reading.proportions(
            batch.indptr, batch.words, batch.counts, topics, weights, alpha0, iterations, found
        )
        return found
    if method != "gibbs":
        raise InvalidInput(f'method is "{method}"; choose "fixed-point" or "gibbs"')
    if seed is None or seed < 0 or iterations < 2:
        raise InvalidInput("the Gibbs sampler needs a seed of at least 0 and at least 2 iterations")
    rng = generator_of(seed)
    return sampled_proportions(batch, topics, alpha0 * weights, rng, iterations)


def sampled_proportions(
    batch: CountBatch,
    topics: NDArray[np.float64],
    alpha: NDArray[np.float64],
    rng: np.random.Generator,
    iterations: int,
) -> NDArray[np.float64]:
    """Collapsed Gibbs sampling with fixed topics, vectorised over documents.

    `P(z = j | rest) ~ m_wj (alpha_j + tokens of the document in j)`: documents are independent
    given the topics, so the t-th tokens of all documents are sampled together.
    """
    order = np.argsort(-batch.lengths, kind="stable")
    lengths = batch.lengths[order]
    k, longest = topics.shape[1], int(lengths[0]) if lengths.size else 0
    # Documents are sorted by decreasing length, so those with a t-th token are a prefix. The t-th
    # tokens of all documents are contiguous, after the (t-1)-th: memory is one cell for each token.
    active = np.searchsorted(-lengths, -np.arange(longest), side="left")
    starts = np.concatenate([[0], np.cumsum(active)])
    tokens = np.empty(starts[-1], dtype=np.int32)
    for place, document in enumerate(order):
        entries = slice(int(batch.indptr[document]), int(batch.indptr[document + 1]))
        words = np.repeat(batch.words[entries], batch.counts[entries])
        tokens[starts[: words.size] + place] = words
    state = np.zeros(tokens.size, dtype=np.int32)
    counts = np.zeros((lengths.size, k))
    total = np.zeros((lengths.size, k))
    for iteration in range(iterations + 1):
        for t in range(longest):
            rows = np.arange(active[t])
            cells = slice(int(starts[t]), int(starts[t + 1]))
            if iteration:  # the first sweep adds the tokens one by one
                counts[rows, state[cells]] -= 1
            chances = np.cumsum(topics[tokens[cells]] * (alpha + counts[: rows.size]), axis=1)
            draws = rng.random(rows.size) * chances[:, -1]
            state[cells] = np.minimum((chances <= draws[:, None]).sum(axis=1), k - 1)
            counts[rows, state[cells]] += 1
        if iteration > iterations // 2:
            total += (alpha + counts) / (alpha.sum() + lengths)[:, None]
    proportions = np.empty_like(total)
    proportions[order] = total / total.sum(axis=1, keepdims=True)
    return proportions
