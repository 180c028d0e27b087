"""Refinement: rounds that change topics so that the counted pairs of words are more likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.row_block import interleaved

ROUNDS = 10
_MOST_ROUNDS = 10_000
# After at least this many rounds, Omega (the co-occurrence matrix of topics) shows how documents
# mix topics.
TELLING_ROUNDS = 10
# This share of the mean distribution of words is mixed into each topic before the first round.
# Rounds never change a probability of 0, so a 0 would exclude a word from a topic for ever.
_MEAN_SHARE = 0.01
# Over-relaxation: the factor by which a round changes a probability is raised to this power. A fit
# then needs about half as many rounds as with plain expectation maximisation.
_RELAXATION = 1.8
_PLAIN_ROUNDS = 2  # number of rounds at the end without over-relaxation
STEP = "refinement"


def require_rounds(rounds: int) -> None:
    """Raise InvalidInput unless the number of rounds is between 0 and 10,000."""
    if not 0 <= rounds <= _MOST_ROUNDS:
        raise InvalidInput(f"refine is {rounds}; it must be 0 to {_MOST_ROUNDS:,} rounds")


@dataclass(frozen=True, eq=False)
class PairTopics:
    """Topics and their co-occurrence in documents: a model of word pairs.

    The composite likelihood of the pair counts P is `sum P_ih log (M Omega M_core')_ih`, for words
    i and core words h. It depends on the distribution of topic proportions only through Omega. If
    each document has one topic, Omega is diagonal, and a round keeps it diagonal.

    topics : (n, k) float64 M, the distribution of words of each topic
    pair_weights : (k, k) float64 `Omega = E[theta theta']`, the probability of each pair of topics
        for two tokens of a document
    expected : (n,) float64, mean distribution of words over documents
    core : number of core words, for which pairs with all words were counted
    """

    topics: NDArray[np.float64]
    pair_weights: NDArray[np.float64]
    expected: NDArray[np.float64]
    core: int

    __sizeof__ = held_bytes


def refined(rows: Rows, start: PairTopics, rounds: int) -> PairTopics:
    """Improve topics by `rounds` rounds of expectation maximisation over the `pair_rows`.

    All but the last two rounds are over-relaxed. Before the first round, `start` is mixed with 1%
    of the mean distribution of words; 0 rounds return it unchanged. The result has the same bits
    however the rows are divided into blocks: each row is computed alone, and all sums run over all
    rows at once.
    """
    result: PairTopics = rows.value(refined_there(rows, start, rounds)) if rounds else start
    return result


def refined_there(rows: Rows, start: Any, rounds: int) -> Any:
    """Do as `refined` does on workers: take and return handles, and copy no data to this process.

    `rounds` is at least 1.
    """
    return rounds_from(rows, rows.once(STEP, begun, start), rounds)


def rounds_from(rows: Rows, state: Any, rounds: int, step: str = STEP) -> Any:
    """Make `rounds` rounds from the topics behind the handle `state`; return a handle.

    See `refined` for what a round does.
    """
    for left in range(rounds, 0, -1):
        relaxation = _RELAXATION if left > _PLAIN_ROUNDS else 1.0
        parts = rows.each(step, expected_ratios, state)
        state = rows.once(step, next_topics, parts, state, relaxation)
        del parts  # free the results of all blocks before the next round makes new ones
    return state


def pair_rows(rows: Rows) -> Rows:
    """Return the pair counts of all rows, which rounds read; memory holds them if they fit."""
    return rows.prepared("pair counts", PairRows.of)


def begun(start: PairTopics) -> PairTopics:
    """Mix a little of the mean distribution of words into each topic."""
    topics = (1 - _MEAN_SHARE) * start.topics + _MEAN_SHARE * start.expected[:, None]
    return replace(start, topics=topics / topics.sum(axis=0))


def expected_ratios(pairs: PairRows, state: PairTopics) -> NDArray[np.float64]:
    """Return (r, k) `G = R M_core` for the words of a block, where `R = P / (M Omega M_core')`.

    R is the ratio of counted to expected pairs; the letters are as in `PairTopics`.
    """
    left = state.topics[pairs.block.rows] @ state.pair_weights
    return pairs.ratios(left, state.topics[: state.core], state.expected)


def next_topics(
    parts: Sequence[NDArray[np.float64]], state: PairTopics, relaxation: float = 1.0
) -> PairTopics:
    """Return the topics after a round, given the `expected_ratios` of all blocks in order.

    The letters are as in `expected_ratios`. `M * (G Omega)` has the expected tokens of each word in
    each topic, and `Omega * (M_core' G_core)` the expected pairs of core words in each pair of
    topics. They replace M and Omega. For pairs of core words, this is expectation maximisation, so
    a plain round never decreases their likelihood. Each word outside the core is fitted to its own
    pairs.

    Only a share of the word pairs of two topics has both words in the core: the product of both
    topics' shares of core words. Omega is divided by that share. Otherwise topics with many words
    outside the core would lose weight, and exact moments would not be a fixed point.

    `parts` are (r, k) float64, and `state` holds the topics from which they were computed. Each
    factor by which a probability changes is raised to the power `relaxation`; 1 makes a plain
    round.
    """
    gathered, core = interleaved(parts), state.core
    # work in place throughout, because arrays over all words are large
    topics = gathered @ state.pair_weights
    topics *= state.topics
    topics = _columns(topics, state.topics)
    pairs = state.pair_weights * (state.topics[:core].T @ gathered[:core])
    if relaxation != 1:
        changes = _divided(topics, state.topics)
        changes **= relaxation
        changes *= state.topics
        topics = _columns(changes, topics)
    shares = topics[:core].sum(axis=0)
    pairs = _divided(pairs + pairs.T, np.outer(shares, shares))
    return replace(state, topics=topics, pair_weights=pairs / pairs.sum())


def dirichlet_pair_weights(weights: NDArray[np.float64], alpha0: float) -> NDArray[np.float64]:
    """Return the (k, k) `E[theta theta']` of Dirichlet proportions theta; diagonal if alpha0 is 0.

    Examples
    --------
    >>> dirichlet_pair_weights(np.array([0.5, 0.5]), alpha0=1.0)
    array([[0.375, 0.125],
           [0.125, 0.375]])
    """
    mixed: NDArray[np.float64] = np.diag(weights) + alpha0 * np.outer(weights, weights)
    return mixed / (alpha0 + 1)


def implied_alpha0(pair_weights: NDArray[np.float64]) -> float | None:
    """Return alpha0 of the Dirichlet distribution whose second moments are nearest to these.

    It solves `Omega - w w' ~ (diag(w) - w w') / (alpha0 + 1)` by least squares, where Omega is
    `pair_weights` and w has its row sums. Returns None if the proportions do not vary.

    Examples
    --------
    >>> implied_alpha0(dirichlet_pair_weights(np.array([0.7, 0.2, 0.1]), alpha0=3.0))
    3.0
    """
    weights = pair_weights.sum(axis=1)
    mean = np.outer(weights, weights)
    spread = np.diag(weights) - mean
    shared, whole = float(((pair_weights - mean) * spread).sum()), float((spread**2).sum())
    return round(whole / shared - 1, 12) if shared > 0 else None


def correlations(pair_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (k, k) correlations of the topic proportions of documents; NaN if one is constant.

    Examples
    --------
    >>> correlations(np.array([[0.5, 0.0], [0.0, 0.5]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    weights = pair_weights.sum(axis=1)
    covariance = pair_weights - np.outer(weights, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviations = np.sqrt(np.diag(covariance))
        found: NDArray[np.float64] = covariance / np.outer(deviations, deviations)
    return found


def _divided(values: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients, with 0 where the divisor is 0."""
    return np.divide(values, by, out=np.zeros_like(values), where=by > 0)


def _columns(values: NDArray[np.float64], otherwise: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each column to sum 1; replace columns of zeros by those of `otherwise`."""
    totals = values.sum(axis=0)
    some = totals > 0
    np.divide(values, totals, out=values, where=some)
    values[:, ~some] = otherwise[:, ~some]
    return values


def likelier_there(model: Any, pairs: Rows, rounds: int) -> Any:
    """Do as `TopicModel.likelier` does on workers: take and return handles of `Rows`."""
    start = pairs.once(STEP, pair_topics_of, model, pairs.basis.core)
    found = refined_there(pairs, start, rounds)
    return pairs.once(STEP, with_pair_topics, model, found, rounds)


def pair_topics_of(model: Any, core: int) -> PairTopics:
    """Return the topics of a model as `PairTopics`, with `core` core words."""
    return PairTopics(model.topics, model.pair_weights, model.word_probabilities, core)


def with_pair_topics(model: Any, found: PairTopics, rounds: int) -> Any:
    """Return the model with the topics `found` by `rounds` rounds, by decreasing weight."""
    weights = found.pair_weights.sum(axis=1)
    model = replace(
        model,
        topics=found.topics,
        weights=weights,
        refined=model.refined + rounds,
        pair_weights=found.pair_weights,
    )
    return model.reordered(np.argsort(-weights, kind="stable"))
