"""Mixture shares: estimate topic shares from word counts summed over documents, with error bars."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.models.topics import TopicModel

_STEPS = 200
_SETTLED = 1e-10  # Newton steps end if one raises the log posterior of all tokens by at most this
_ROUNDING = 4 * np.finfo(float).eps
_SHORTEST = 2.0**-40  # smallest fraction of a Newton step that is tried
# a Newton step goes at most this fraction of the way to the point where a share becomes 0
_TO_THE_EDGE = 0.95
_SMOOTHING = 1e-3
# the dispersion of counts is estimated from words that are expected at least this often
_ENOUGH = 5.0


def mixture_shares(
    model: TopicModel,
    counts: NDArray[np.int64],
    counted: NDArray[np.float64] | None = None,
    concentration: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Estimate the share of each topic in the tokens of some documents, from summed counts only.

    The counts c of T tokens are modelled as drawn from the mixture `p = M s`. The shares s maximise
    the posterior. The prior is worth one token, distributed as the weights of the model. The bars
    are standard errors by the Fisher information of the mixture, for shares with sum 1,

        I = phi^-1 T M' diag(1 / p) M,   V = I^-1 - I^-1 1 1' I^-1 / (1' I^-1 1),   bar_j = V_jj^1/2

    The factor phi accounts for words that come in bursts. It is Pearson's chi-square over its
    degrees of freedom, for words expected five times or more, and at least 1. The bars do not
    include the errors of the topics, and ignore that a share is at least 0.

    These bars assume that tokens are independent. But the tokens of a document share its
    proportions theta, so another sample of documents would have other shares. If `concentration` is
    above 0, the bars also include the variance of these shares. For documents of c_d tokens, it is

        sum_d (c_d / C)^2 Var(theta_j),   C = sum_d c_d

    Here `Var(theta_j) = r_j m_j (1 - m_j)`, and r_j is the ratio of `Omega_jj - w_j^2` to
    `w_j (1 - w_j)` in the model. r_j is `1 / (alpha0 + 1)` for a Dirichlet prior, and 1 if a
    document has one topic. m is s mixed with the weights of the model, as if one more document had
    these proportions, because a few documents do not show every topic.

    If each word i was counted only in a share `e_i` of the documents, a token of topic j is counted
    with probability `Z_j = sum_i e_i m_ij`. The formulas above with `e_i m_ij / Z_j` then give the
    shares of counted tokens. Divided by Z and normalised, these are the shares of all tokens.

    The result is (k,) shares and their (k,) bars, which are NaN if there are no tokens. `counts` is
    (n,) int64 tokens of each word. `counted` is (n,) float64, the share of the documents in which
    each word is counted, by default 1 for every word. `concentration` is `sum_d (c_d / C)^2`, see
    `token_concentration`; 0 is for independent tokens. Lengths are assumed independent of the
    topics.

    Raises ForeignStatistics if the counts have another number of words than the model, and
    InvalidInput for negative counts or a concentration outside 0 to 1.

    Examples
    --------
    >>> model = TopicModel.from_topics(np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0.5, 0.5]))
    >>> shares, bars = mixture_shares(model, np.array([660, 340]))
    >>> shares.round(2), bars.round(3)
    (array([0.7, 0.3]), array([0.019, 0.019]))

    The same tokens in 100 documents of one topic each:

    >>> mixture_shares(model, np.array([660, 340]), concentration=0.01)[1].round(3)
    array([0.05, 0.05])
    """
    for given in (counts, *(() if counted is None else (counted,))):
        if given.shape != (model.n_words,):
            raise ForeignStatistics(
                f"counts have {given.size} words, but the model has {model.n_words}; give counts "
                "on its vocabulary"
            )
    if counts.size and counts.min() < 0:
        raise InvalidInput(f"a count is {counts.min()}; it must be at least 0")
    if not 0 <= concentration <= 1:
        raise InvalidInput(
            f"the concentration is {concentration}; give the sum of the squared shares of "
            "documents in the tokens, from 0 to 1"
        )
    if counted is not None:
        # ignore tokens of words that were not counted in any of the documents
        counts = np.where(counted > 0, counts, 0)
    words = np.flatnonzero(counts)
    if not words.size:
        return np.full(model.n_topics, np.nan), np.full(model.n_topics, np.nan)
    topics, seen = model.smoothed(_SMOOTHING), np.ones(model.n_topics)
    if counted is not None:
        topics *= counted[:, None]
        seen = topics.sum(axis=0)
        topics /= seen
    found = _most_probable(topics[words], counts[words], model.weights)
    variances = _variances(topics, counts, found)
    shares = found / seen
    total = shares.sum()
    shares /= total
    # `found` has the shares s' of counted tokens. The shares of all tokens are s = s' / Z, scaled
    # to sum 1. `turned` is the derivative of s by s'. If all words are counted, it leaves the
    # variances unchanged.
    turned = (np.eye(shares.size) - shares[:, None]) / (seen * total)
    of_tokens = np.maximum((turned @ variances @ turned.T).diagonal(), 0.0)
    of_documents = concentration * document_variances(model, shares, concentration)
    return shares, np.sqrt(of_tokens + of_documents)


def document_variances(
    model: TopicModel, shares: NDArray[np.float64], concentration: float
) -> NDArray[np.float64]:
    """Return (k,) variances of topic proportions between documents; see `mixture_shares`."""
    weights = model.pair_weights.sum(axis=1)
    weights = weights / weights.sum()
    most = weights * (1 - weights)
    within = model.pair_weights.diagonal() - weights**2
    # The pair weights are estimates, so the ratio of a rare topic can exceed 1: clip the ratios.
    ratios = np.clip(np.divide(within, most, out=np.ones_like(most), where=most > 0), 0.0, 1.0)
    mean = (shares + concentration * weights) / (1 + concentration)
    return np.asarray(ratios * mean * (1 - mean))


def _most_probable(
    topics: NDArray[np.float64], counts: NDArray[np.int64], prior: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find the (k,) shares s of topics with the largest posterior, by Newton's method.

    The log posterior is `sum_i x_i log (M s)_i + sum_j w_j log s_j`, where x are `counts`, M are
    the topics and w is the prior. It is concave. The prior is worth one token, and makes every
    share positive.
    """
    total = float(counts.sum()) + 1.0
    prior = np.maximum(prior, np.finfo(float).tiny)
    k = prior.size
    # Start with shares well above 0. Steps are relative to the shares, so they would be tiny for a
    # share near 0.
    shares = (prior / prior.sum() + 1 / k) / 2
    of_words, prior = counts / total, prior / total

    def value(tried: NDArray[np.float64]) -> float:
        return float(of_words @ np.log(topics @ tried) + prior @ np.log(tried))

    here = value(shares)
    for _ in range(_STEPS):
        mixed = topics @ shares
        # take steps relative to the shares, because the curvature of the prior is then the same
        # everywhere
        scaled = topics * shares
        slope = scaled.T @ (of_words / mixed) + prior
        curve = (scaled.T * (of_words / mixed**2)) @ scaled + np.diag(prior)
        system = np.block([[curve, shares[:, None]], [shares[None, :], np.zeros((1, 1))]])
        step = np.linalg.lstsq(system, np.append(slope, 0.0), rcond=None)[0][:k]
        length = min(1.0, _TO_THE_EDGE / max(float(-step.min()), _SHORTEST))
        while True:
            tried = shares * (1 + length * step)
            tried /= tried.sum()
            there = value(tried)
            if there >= here or length < _SHORTEST:
                break
            length /= 2
        gained, shares, here = there - here, tried, there
        # a gain below `_ROUNDING * abs(here)` is only a rounding error
        if gained <= max(_SETTLED / total, _ROUNDING * abs(here)) or length < _SHORTEST:
            break
    return np.asarray(shares)


def _variances(
    topics: NDArray[np.float64], counts: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    total, mixed = float(counts.sum()), topics @ shares
    expected = total * mixed / mixed.sum()
    # avoid a division by 0 for words that were counted in no document
    mixed = np.where(mixed > 0, mixed, 1.0)
    enough = expected >= _ENOUGH
    freedom = int(enough.sum()) - shares.size
    spread = ((counts[enough] - expected[enough]) ** 2 / expected[enough]).sum()
    phi = max(1.0, spread / freedom) if freedom > 0 else 1.0
    inverse = np.linalg.pinv(total / phi * (topics.T / mixed) @ topics, hermitian=True)
    ones = inverse.sum(axis=1)
    return np.asarray(inverse - np.outer(ones, ones) / ones.sum())
