"""Halves: fit the two halves of the documents separately.

Comparing these fits gives error bars, the number of refinement rounds, and alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.refinement import (
    PairTopics,
    begun,
    pair_rows,
    pair_topics_of,
    rounds_from,
)
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.row_block import interleaved

STEP = "halves"
# Number of rounds that refine the topics of each half of the documents, for error bars. Error bars
# after 2 rounds differ by 1% from those after 1 round, and by a few percent after 10 rounds. More
# rounds do not bring them nearer to the true errors.
BAR_ROUNDS = 1
# Number of times that a fit reads pair counts of one of the two halves: each half once for its
# start, once for each round, and once to score the topics of the other half.
SWEEPS = 2 * (BAR_ROUNDS + 2)
# An eigenvalue below this share of the largest eigenvalue of the same matrix counts as 0: it does
# not separate topics.
_SINGULAR = 1e-10
TRIED_ROUNDS = (5, 10, 20, 40, 80)
# Smallest sum of alpha that a search tries. The other values are this one, doubled up to `_DOUBLED`
# times.
LEAST_ALPHA = 0.0125
_DOUBLED = 10
START_ALPHA = 0.5  # sum of alpha at which a search starts if the caller has no guess
_NO_PAIRS = "one of the two halves of the documents has no pair of words"


@dataclass(frozen=True)
class HeldOut:
    """Mean log-likelihood of a word pair, under topics that were fitted to other documents.

    `even` is for pairs in the even half of the documents, under topics of the odd half; `odd` is
    the reverse.
    """

    even: float
    odd: float

    @property
    def mean(self) -> float:
        """Mean of both halves."""
        return (self.even + self.odd) / 2

    def gain(self, other: HeldOut) -> tuple[float, float]:
        """Return the mean gain over another score, and half the difference of the two gains.

        Examples
        --------
        >>> HeldOut(-9.0, -8.0).gain(HeldOut(-9.5, -8.25))
        (0.375, 0.125)
        """
        even, odd = self.even - other.even, self.odd - other.odd
        return (even + odd) / 2, abs(even - odd) / 2


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Error bars and held-out likelihood of topics, from separate fits to the halves of documents.

    topic_bars : (k,) float64, expected L1 error of each topic
    word_bars : (n, k) float64, standard error of the probability of each word in each topic
    held_out : log-likelihood of the word pairs of each half under the topics of the other half
    """

    topic_bars: NDArray[np.float64]
    word_bars: NDArray[np.float64]
    held_out: HeldOut

    __sizeof__ = held_bytes


@dataclass(frozen=True, eq=False)
class HalfRows:
    """Pair counts of each half of the documents.

    `kept` holds the pair counts of both halves. It is empty if memory does not suffice for both;
    `rows` is then read again for each half.
    """

    rows: Rows
    kept: tuple[Rows, ...] = ()

    @classmethod
    def of(cls, rows: Rows) -> HalfRows:
        """Make the pair counts of both halves of the documents; keep them in memory if they fit.

        Raises InvalidInput if the statistics have no halves.
        """
        require_halves(rows)
        return cls(rows, _whole_and_halves(rows)[1:]) if rows.keeps_halves else cls(rows)

    def __getitem__(self, half: int) -> Rows:
        if self.kept:
            return self.kept[half]
        return self.rows.prepared("pair counts", _PAIRS[half], halves=True)


def pairs_and_halves(rows: Rows, refine: object) -> tuple[Rows, HalfRows | None]:
    """Return the pair counts of all documents, and those of both halves if the statistics have any.

    If `refine` is 0, no pairs are read, and `rows` is returned in place of the pair counts of all
    documents. If memory holds the pair counts of all documents and of both halves, the statistics
    are read only once.
    """
    if refine and rows.halves and rows.keeps_halves:
        whole, even, odd = _whole_and_halves(rows)
        return whole, HalfRows(rows, (even, odd))
    return pair_rows(rows) if refine else rows, HalfRows.of(rows) if rows.halves else None


def _whole_and_halves(rows: Rows) -> tuple[Rows, Rows, Rows]:
    return parts_of(rows.prepared("pair counts", PairRows.with_halves, halves=True))


def parts_of(three: Rows) -> tuple[Rows, Rows, Rows]:
    """Split rows into three: pair counts of all documents, of the even and of the odd half."""
    whole, even, odd = (three.prepared("pair counts", partial(_part, place)) for place in range(3))
    return whole, even, odd


def require_halves(rows: Rows) -> None:
    """Raise InvalidInput if the statistics have no halves, which a search needs."""
    if not rows.halves:
        raise InvalidInput(
            "the statistics have no halves of the documents, which auto needs; give numbers in "
            'place of auto, with alpha "given", or gather statistics with halves=True, or rebase a '
            "store that was created without halves"
        )


def cross_fit(halves: HalfRows, whole: PairTopics) -> CrossFit | None:
    """Estimate error bars and held-out likelihood of refined topics; None if a half has no pairs.

    If a and b are one topic as fitted to each half of the documents, and `whole` is this topic as
    fitted to all of them, its error bar is

        |(|a - b| / 2, |(a + b) / 2 - whole|)|

    where the inner norms are L1. (a - b) / 2 has the distribution of the noise of `whole`, because
    a topic of a half has twice its variance. The second norm is the bias that both halves share
    (the jackknife of two halves), plus an error because the rounds that refine `whole` end before
    they converge.

    For the probability of a single word, each of these differences is only one draw of a random
    error. So its square is averaged with a variance that is proportional to the probability of the
    word, as the variance of a count is.
    """
    rows, shared = halves.rows, halves.rows.shared(whole)
    fits = fits_of(halves, shared, BAR_ROUNDS)
    return None if fits is None else rows.value(crossed_there(halves, fits, shared))


def crossed_there(halves: HalfRows, fits: Sequence[Any], whole: Any) -> Any:
    """Do as `crossed` does on workers: take and return handles of `Rows` instead of values."""
    return halves.rows.once(STEP, crossed, *fits, whole, scored(halves, fits))


def crossed(even: PairTopics, odd: PairTopics, whole: PairTopics, held_out: HeldOut) -> CrossFit:
    """Return error bars and held-out likelihood of topics, from the fits of the two halves.

    `whole` has the topics of all documents.
    """
    return CrossFit(*bars_of(even, odd, whole), held_out)


def noise(several: Sequence[HeldOut]) -> float:
    """Return the noise of several scores; a smaller difference between two of them means nothing.

    It is the standard error of a score relative to the mean of all scores. Half the difference
    between the two halves, in each score, is one draw of this error.

    Examples
    --------
    >>> noise([HeldOut(-9.0, -8.0), HeldOut(-9.5, -8.25)])
    0.0625
    """
    differences = np.array([(one.even - one.odd) / 2 for one in several])
    return float(np.sqrt(((differences - differences.mean()) ** 2).mean()))


def fits_of(halves: HalfRows, whole: Any, rounds: int) -> list[Any] | None:
    """Refine topics of each half of the documents in `rounds` rounds, and return handles of them.

    Returns None if a half has no pair of words.

    The topics M of all documents, `whole`, are not a good start for a half, because they are also
    fitted to the other half, for which the half shall be scored. It would take hundreds of rounds
    to undo this. Instead, a half starts from `P_half G`, where `P_half` are its own pair counts,
    and `G` is the dual of M (see `dual_topics`). In this way no more than k x k numbers come from
    the other half.
    """
    rows, fits = halves.rows, []
    dual = rows.once(STEP, dual_topics, whole)
    for half in (0, 1):
        pairs = halves[half]
        parts = pairs.each(STEP, own_rows, dual)
        if not rows.value(rows.once(STEP, any_pairs, parts)):
            return None
        state = rows.once(STEP, own_start, parts, whole)
        fits.append(rounds_from(pairs, state, rounds, STEP))
    return fits


def scored(halves: HalfRows, fits: Sequence[Any]) -> HeldOut:
    """Score the word pairs of each half under the topics of the other half; `fits` are handles."""
    return _scores(halves, fits, (0.0,))[0]


def _scores(halves: HalfRows, fits: Sequence[Any], shares: Sequence[float]) -> list[HeldOut]:
    """Score each half under the topics of the other, for each of `shares`, in one sweep per half.

    A share is the fraction of word pairs whose two words have independent topics.
    """
    rows, scores = halves.rows, []
    for half in (0, 1):
        state = rows.once(STEP, begun, fits[1 - half])
        parts = halves[half].each(STEP, pair_logarithms, state, shares)
        scores.append(rows.value(rows.once(STEP, mean_logarithms, parts, state)))
    return [HeldOut(*pair) for pair in zip(*scores, strict=True)]


def even_pairs(statistics: Statistics) -> PairRows:
    """Return the pair counts of the even half of the documents."""
    return PairRows.of(statistics, half=0)


def odd_pairs(statistics: Statistics) -> PairRows:
    """Return the pair counts of the odd half of the documents."""
    return PairRows.of(statistics, half=1)


_PAIRS = (even_pairs, odd_pairs)


def _part(place: int, three: Any) -> Any:
    return three[place]


def dual_topics(whole: PairTopics) -> NDArray[np.float64]:
    """Return the dual G (core, k) of topics M: `M Omega M_core' G = M`, and therefore `P G ~ M`.

    Omega has the weights of pairs of topics, P the pair counts, and M_core the rows of M for the
    words of the core. G is the solution by weighted least squares; the weight of a word is 1
    divided by its expected frequency.

    Examples
    --------
    >>> whole = PairTopics(np.eye(2), np.diag([0.75, 0.25]), np.array([0.75, 0.25]), core=2)
    >>> np.diag([0.75, 0.25]) @ dual_topics(whole)
    array([[1., 0.],
           [0., 1.]])
    """
    core = whole.topics[: whole.core]
    expected = whole.expected[: whole.core, None]
    scaled = np.divide(core, expected, out=np.zeros_like(core), where=expected > 0)
    inverses = [
        np.linalg.pinv(one, rcond=_SINGULAR, hermitian=True)
        for one in (core.T @ scaled, whole.pair_weights)
    ]
    return np.asarray(scaled @ inverses[0] @ inverses[1])


def own_rows(pairs: PairRows, dual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (r, k) rows of topics for the words of a block, from the pairs of one half only."""
    return pairs.products(dual)


def any_pairs(parts: Sequence[NDArray[np.float64]]) -> bool:
    """Whether a half of the documents has any pair of words, given the `own_rows` of its blocks."""
    return any(bool(part.any()) for part in parts)


def own_start(parts: Sequence[NDArray[np.float64]], whole: PairTopics) -> PairTopics:
    """Make topics from the `own_rows` of all blocks, and mix a little of their mean into each."""
    rows = interleaved(parts)
    totals = rows.sum(axis=0)
    # a topic without pairs in this half starts from the same topic of all documents
    rows = np.where(totals > 0, rows / np.where(totals > 0, totals, 1.0), whole.topics)
    return begun(replace(whole, topics=nearest_distributions(rows)))


def pair_logarithms(
    pairs: PairRows, state: PairTopics, shares: Sequence[float] = (0.0,)
) -> NDArray[np.float64]:
    """Sum the log-likelihoods of the word pairs of each row, once for each of `shares`.

    The result is (r, shares + 1); its last column is the number of pairs of the row. A share is the
    fraction of pairs whose two words have independent topics. In other pairs, the two topics are
    drawn jointly, with the probabilities of `state.pair_weights`.
    """
    left = state.topics[pairs.block.rows] @ state.pair_weights
    means = state.topics @ state.pair_weights.sum(axis=1)
    return pairs.logarithms(left, state.topics[: state.core], state.expected, means, shares)


def mean_logarithms(parts: Sequence[NDArray[np.float64]], state: PairTopics) -> list[float]:
    """Return the mean log-likelihood of a word pair for each share, from `pair_logarithms`."""
    sums = interleaved(parts).sum(axis=0)
    # Probability that the second word of a pair is in the core. It is the same for all shares,
    # because they do not change the weights of the topics.
    seen = state.pair_weights.sum(axis=0) @ state.topics[: state.core].sum(axis=0)
    found: list[float] = (sums[:-1] / sums[-1] - np.log(seen)).tolist()
    return found


def bars_of(
    even: PairTopics, odd: PairTopics, whole: PairTopics
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (k,) error bars of topics and (n, k) error bars of their words; see `cross_fit`."""
    noise, shift = even.topics - odd.topics, even.topics + odd.topics
    np.abs(np.divide(noise, 2, out=noise), out=noise)
    np.abs(np.subtract(np.divide(shift, 2, out=shift), whole.topics, out=shift), out=shift)
    topics = np.hypot(noise.sum(axis=0), shift.sum(axis=0))
    np.square(noise, out=noise)
    noise += np.square(shift, out=shift)
    noise += np.multiply(whole.topics, noise.sum(axis=0), out=shift)
    return topics, np.sqrt(np.divide(noise, 2, out=noise), out=noise)


def trusted_there(model: Any, halves: HalfRows, near: float | None = None) -> Any:
    """Do as `TopicModel.trusted` does for a model on workers; `model` and the result are handles.

    If `near` is given, also search for the `likeliest_alpha`, starting at this value. In that case,
    raise InvalidInput if a half has no pair of words.
    """
    rows = halves.rows
    whole = rows.once(STEP, pair_topics_of, model, rows.basis.core)
    fits = fits_of(halves, whole, BAR_ROUNDS)
    if fits is None:
        if near is not None:
            raise InvalidInput(f'{_NO_PAIRS}; fit with alpha "given"')
        return model
    alpha = None if near is None else likeliest_alpha(halves, fits, near)
    return rows.once(STEP, with_cross_fit, model, crossed_there(halves, fits, whole), alpha)


def with_cross_fit(model: Any, found: CrossFit, alpha: float | None) -> Any:
    """Add error bars and held-out likelihood to a model, and its sum of alpha if it is given."""
    known = model if alpha is None else model.with_alpha_sum(alpha)
    return replace(known, **vars(found))


def likely(several: Sequence[HeldOut]) -> list[int]:
    """Return the ascending indices of the scores that are within `noise` of the best score.

    Examples
    --------
    >>> likely([HeldOut(-9.0, -8.0), HeldOut(-8.5, -7.75), HeldOut(-8.45, -7.75)])
    [1, 2]
    """
    least = max((one.mean for one in several), default=0.0) - (noise(several) if several else 0.0)
    return [place for place, one in enumerate(several) if one.mean >= least]


def predicting_rounds(halves: HalfRows, start: PairTopics) -> int:
    """Return the first number of rounds, of 5, 10, 20, 40, 80, whose double predicts no better.

    "Better" means that the held-out log-likelihood rises by more than half the difference between
    the gains of the two halves. `start` holds the topics of the decomposition. Raises InvalidInput
    if a half has no pair of words.
    """
    return predicting_rounds_there(halves, halves.rows.shared(start))


def predicting_rounds_there(halves: HalfRows, start: Any) -> int:
    """Do as `predicting_rounds` does, where `start` is a handle of the topics."""
    rounds, best = 0, None
    for tried in TRIED_ROUNDS:
        fits = fits_of(halves, start, tried)
        if fits is None:
            raise InvalidInput(f"{_NO_PAIRS}; give a number of rounds in place of auto")
        found = scored(halves, fits)
        if best is not None:
            gain, noise = found.gain(best)
            if gain <= noise:
                return rounds
        rounds, best = tried, found
    return rounds


def likeliest_alpha(halves: HalfRows, fits: Sequence[Any], near: float) -> float:
    """Return the sum of alpha for which topics of each half best predict pairs of the other half.

    The sum is from 0.0125 to 12.8, with two digits. It is larger for noisier topics, so that
    documents are assigned to them with less certainty. If topics were scored on the pairs to which
    they were fitted, the best sum would be near 0. The score is concave in `alpha / (alpha + 1)`,
    the share of pairs whose topics are independent. The search starts near `near`, then doubles or
    halves the value. The result is the top of the parabola through the best three values, which
    lies within 2% of the maximum.
    """
    known = {-1: -math.inf, _DOUBLED + 1: -math.inf}

    def at(place: int) -> float:
        # score also both neighbours of a value in the same sweep, because they are needed to see
        # whether it is a maximum
        around = [one for one in (place - 1, place, place + 1) if one not in known]
        if place not in known:
            found = scored_with(halves, fits, [LEAST_ALPHA * 2.0**one for one in around])
            known.update((one, score.mean) for one, score in zip(around, found, strict=True))
        return known[place]

    top = min(max(round(math.log2(near / LEAST_ALPHA)), 0), _DOUBLED)
    way = 1 if at(top) < at(top + 1) else -1
    while at(top + way) > at(top):
        top += way
    alpha = LEAST_ALPHA * 2.0**top
    # There is no parabola if the best value is an end of the range, or if there is only one topic:
    # then all sums predict equally well.
    if 0 < top < _DOUBLED and at(top) > max(at(top - 1), at(top + 1)):
        before, share, after = (one / (one + 1) for one in (alpha / 2, alpha, alpha * 2))
        rise = (at(top) - at(top - 1)) / (share - before)
        fall = (at(top) - at(top + 1)) / (after - share)
        share = (before + share + (after - before) * rise / (rise + fall)) / 2
        alpha = share / (1 - share)
    return float(f"{alpha:.2g}")


def scored_with(halves: HalfRows, fits: Sequence[Any], alphas: Sequence[float]) -> list[HeldOut]:
    """Score topics of both halves, with a Dirichlet distribution of sum alpha for each of `alphas`.

    The weights of pairs of topics are then `Omega = (diag(w) + alpha w w') / (alpha + 1)`.
    """
    apart = [halves.rows.once(STEP, of_one_topic, one) for one in fits]
    return _scores(halves, apart, [alpha / (alpha + 1) for alpha in alphas])


def of_one_topic(state: PairTopics) -> PairTopics:
    """Return the same topics with pair weights that give both words of a pair the same topic."""
    return replace(state, pair_weights=np.diag(state.pair_weights.sum(axis=1)))
