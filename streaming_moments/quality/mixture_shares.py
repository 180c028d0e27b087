"""Shares of topics in counts of words that were added up over documents, with error bars."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models import topic_reading
from streaming_moments.models.topics import TopicModel

_SWEEPS = 1000
_SMOOTHING = 1e-3
_ENOUGH = 5.0  # words expected as often tell how far counts scatter about the mixture


def mixture_shares(
    model: TopicModel, counts: NDArray[np.int64], counted: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of each topic in the tokens of some documents, from their summed counts alone.

    The counts c of T tokens are taken as drawn from the mixture `p = M s`; s is the most probable,
    by the sweeps that read a document, with one token of the model's weights as prior. The bars are
    standard errors by the Fisher information of the mixture, on shares that sum to 1,

        I = phi^-1 T M' diag(1 / p) M,   V = I^-1 - I^-1 1 1' I^-1 / (1' I^-1 1),   bar_j = V_jj^1/2

    with phi, at least 1, Pearson's chi-square over its degrees of freedom, of the words expected
    five times or more: words come in bursts. They do not hold the errors of the topics, nor, for a
    topic of share 0, that it cannot have less.

    Where a word is counted in a share `e_i` of the documents only, a token of topic j is seen with
    probability `Z_j = sum_i e_i m_ij`: the above gives the shares of the tokens seen, from
    `e_i m_ij / Z_j`, and these over Z are, scaled to sum to 1, the shares of all.

    Parameters
    ----------
    model : TopicModel
        Of n words.
    counts : (n,) int64
        Tokens of each word.
    counted : (n,) float64, optional
        Share of the documents in which each word is counted, 0 to 1; by default all.

    Returns
    -------
    (k,) float64, (k,) float64
        Shares, which sum to 1, and their bars; NaN where there is no token.

    Raises
    ------
    ForeignStatistics
        Counts, or shares of documents, of another number of words.
    InvalidInput
        A count below 0.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5]))
    >>> shares, bars = mixture_shares(model, np.array([660, 340]))
    >>> shares.round(2), bars.round(3)
    (array([0.7, 0.3]), array([0.019, 0.019]))
    """
    for given in (counts, *(() if counted is None else (counted,))):
        if given.shape != (model.n_words,):
            raise ForeignStatistics(
                f"counts of {given.size} words for a model of {model.n_words}; give counts of its "
                "own"
            )
    if counts.size and counts.min() < 0:
        raise InvalidInput(f"a count is {counts.min()}; it must be at least 0")
    words = np.flatnonzero(counts).astype(np.int32)
    if not words.size:
        return np.full(model.n_topics, np.nan), np.full(model.n_topics, np.nan)
    topics, seen = model.smoothed(_SMOOTHING), np.ones(model.n_topics)
    if counted is not None:
        topics *= counted[:, None]
        seen = topics.sum(axis=0)
        topics /= seen
    found = np.empty((1, model.n_topics))
    ends = np.array([0, words.size], dtype=np.int64)
    topic_reading.proportions(
        ends, words, counts[words], topics, model.weights, 1.0, _SWEEPS, found
    )
    variances = _variances(topics, counts, found[0])
    shares = found[0] / seen
    total = shares.sum()
    shares /= total
    # d s / d s' of s = s' / Z, scaled; the identity where all words are counted
    turned = (np.eye(shares.size) - shares[:, None]) / (seen * total)
    variances = turned @ variances @ turned.T
    return shares, np.sqrt(np.maximum(variances.diagonal(), 0.0))


def _variances(
    topics: NDArray[np.float64], counts: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    total, mixed = float(counts.sum()), topics @ shares
    expected = total * mixed / mixed.sum()
    mixed = np.where(mixed > 0, mixed, 1.0)  # of words counted nowhere
    enough = expected >= _ENOUGH
    freedom = int(enough.sum()) - shares.size
    spread = ((counts[enough] - expected[enough]) ** 2 / expected[enough]).sum()
    phi = max(1.0, spread / freedom) if freedom > 0 else 1.0
    inverse = np.linalg.pinv(total / phi * (topics.T / mixed) @ topics, hermitian=True)
    ones = inverse.sum(axis=1)
    return np.asarray(inverse - np.outer(ones, ones) / ones.sum())
