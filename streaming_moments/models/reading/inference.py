"""Topic proportions of documents under given topics, by fixed point iteration or Gibbs sampling.

The module also finds the sum of alpha with which the fixed point reads documents best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Columns, likeliest
from streaming_moments.errors import InvalidInput
from streaming_moments.models.reading import topic_reading
from streaming_moments.numerics.seeds import generator_of
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.histogram import Lengths, WeightedLengths

# To choose a sum of alpha, at most `_DRAWN` documents are drawn, with about `_DRAWN_TOKENS` tokens
# together.
_DRAWN, _DRAWN_TOKENS = 2000, 5000
_LEAST_DRAWN = 50
_RISE = 2**0.5
_MOST_RISES = 10
_SWEEPS = 100
_LEAST_PRIOR = (
    # least Dirichlet parameter: a topic without weight gets it, because proportions cannot be drawn
    # with a parameter of 0
    1e-6
)


def log_posteriors(
    batch: CountBatch, topics: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the (documents, k) logarithms of `omega_j prod_i m_ij^x_i`.

    Here x are the word counts of a document, m are the topics and omega their weights.
    """
    with np.errstate(divide="ignore"):
        prior = np.log(weights)
    return np.asarray(prior + batch.to_csr() @ np.log(topics), dtype=np.float64)


def posteriors(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn (documents, k) log-probabilities into probabilities that sum to 1 in each row."""
    posterior = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def said_by_words(proportions: NDArray[np.float64], lengths: NDArray[np.int64]) -> Columns:
    """Return columns with the number of known words, main topic and proportions of each record.

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
    """Infer (documents, k) topic proportions; their prior is Dirichlet with `alpha0 * weights`."""
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
    """Sample proportions by collapsed Gibbs sampling with fixed topics, vectorised over documents.

    The topic z of a token of word w is drawn from `P(z = j) ~ m_wj (alpha_j + N_j)`, where N_j is
    the number of other tokens of the document in topic j. Documents are independent given the
    topics, so the t-th tokens of all documents are sampled together.
    """
    order = np.argsort(-batch.lengths, kind="stable")
    lengths = batch.lengths[order]
    k, longest = topics.shape[1], int(lengths[0]) if lengths.size else 0
    # Documents are sorted by decreasing length, so documents with at least t tokens come first.
    # `state` has the topic of each token: first the first tokens of all documents, then their
    # second tokens, and so on. So it needs only one cell for each token.
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
            if iteration:  # the first sweep only adds tokens, so it has none to remove
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


def completing_alpha(
    topics: NDArray[np.float64], weights: NDArray[np.float64], alpha: float, lengths: Lengths
) -> float:
    """Return the sum of alpha with which one half of a document best predicts the other half.

    The proportions of a half are inferred by fixed point iteration, which finds the mode of the
    logarithms of the proportions. For a document with few words, this mode is nearer to a single
    topic than the mean is. So short documents need a larger sum of alpha than `alpha`, and long
    documents need `alpha` itself.

    The search draws documents of the given `lengths` from (n, k) positive topics with the sum of
    alpha `alpha`. It multiplies the sum by the root of 2 as long as halves then predict better, by
    more than twice the standard error over documents. The result has two digits.
    """
    sizes = _typical_lengths(lengths)
    if weights.size == 1 or not sizes.size:
        return alpha
    rng = np.random.default_rng(0)
    proportions = rng.dirichlet(np.maximum(alpha * weights, _LEAST_PRIOR), size=sizes.size)
    first, second = (
        _drawn_tokens(topics, proportions, half, rng) for half in (sizes - sizes // 2, sizes // 2)
    )
    used, places = np.unique(np.concatenate([first[1], second[1]]), return_inverse=True)
    known, asked = places[: first[1].size], places[first[1].size :]
    rows, shape = topics[used], (sizes.size, used.size)
    batch = CountBatch.from_entries(first[0], known, None, shape)

    def scores(tried: float) -> NDArray[np.float64]:
        read = inferred_proportions(batch, rows, weights, tried, "fixed-point", None, _SWEEPS)
        logarithms = np.log(np.einsum("ej,ej->e", read[second[0]], rows[asked]))
        return np.bincount(second[0], logarithms, sizes.size).astype(np.float64)

    before, score = alpha, scores(alpha)
    for _ in range(_MOST_RISES):
        found = scores(before * _RISE)
        gain = found - score
        if gain.mean() <= 2 * gain.std() / np.sqrt(sizes.size):
            break
        before, score = before * _RISE, found
    return float(f"{before:.2g}")


def _typical_lengths(lengths: Lengths) -> NDArray[np.int64]:
    """Return evenly spaced quantiles of the document lengths above one token.

    Returns an empty array if no document has more than one token.
    """
    parts = lengths.parts if isinstance(lengths, WeightedLengths) else ((1.0, lengths),)
    values = np.concatenate([part.lengths for _, part in parts])
    documents = np.concatenate([weight * part.documents for weight, part in parts])
    order = np.argsort(values, kind="stable")
    order = order[values[order] > 1]
    totals = np.cumsum(documents[order])
    if not totals.size:
        return values[:0]
    mean = float(values[order] @ documents[order] / totals[-1])
    number = int(min(max(_DRAWN_TOKENS / mean, _LEAST_DRAWN), _DRAWN))
    places = np.searchsorted(totals, (np.arange(number) + 0.5) / number * totals[-1])
    found: NDArray[np.int64] = values[order][places]
    return found


def _drawn_tokens(
    topics: NDArray[np.float64],
    proportions: NDArray[np.float64],
    lengths: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw documents with these proportions and lengths.

    Returns the document and the word of each token.
    """
    k = topics.shape[1]
    of_topics = rng.multinomial(lengths, proportions)
    documents = [np.repeat(np.arange(lengths.size), counts) for counts in of_topics.T]
    words = [
        np.searchsorted(np.cumsum(topics[:, j]), rng.random(documents[j].size) * topics[:, j].sum())
        for j in range(k)
    ]
    drawn = np.minimum(np.concatenate(words), len(topics) - 1)
    return np.concatenate(documents), drawn
