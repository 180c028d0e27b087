"""Predicting: what pairs held out say of numbers of topics, rounds, and alpha0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.halves import (
    BAR_ROUNDS,
    STEP,
    HalfRows,
    HeldOut,
    fits_of,
    noise,
    scored,
)
from streaming_moments.models.refinement import PairTopics, dirichlet_pair_weights
from streaming_moments.statistics.counts.basis import Basis

TRIED_TOPICS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300)
TRIED_ROUNDS = (5, 10, 20, 40, 80)
TRIED_ALPHA0S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
_NO_PAIRS = "a half of the documents, every other one of a shard, has no pair of words"


def likely(several: Sequence[HeldOut]) -> list[int]:
    """Places of those within the `noise` of the likeliest, in their order.

    Examples
    --------
    >>> likely([HeldOut(-9.0, -8.0), HeldOut(-8.5, -7.75), HeldOut(-8.45, -7.75)])
    [1, 2]
    """
    least = max((one.mean for one in several), default=0.0) - (noise(several) if several else 0.0)
    return [place for place, one in enumerate(several) if one.mean >= least]


def numbers_of_topics(basis: Basis) -> tuple[int, ...]:
    """Numbers of topics that "auto" tries: as many as the basis was made for.

    Examples
    --------
    >>> import numpy as np
    >>> numbers_of_topics(Basis(np.eye(40, 17, dtype=np.int8), 40))
    (2, 3, 5, 7, 10)
    """
    # three columns for two topics, and a few besides
    most = basis.columns / 1.5
    return tuple(number for number in TRIED_TOPICS if number <= most) or (1,)


def predicting_rounds(halves: HalfRows, start: PairTopics) -> int:
    """The first of 5, 10, 20, 40, 80 rounds after which as many more predict no better.

    Better is a gain of the held-out likelihood by more than the halves differ in it.

    Parameters
    ----------
    halves : HalfRows
        Of the statistics.
    start : PairTopics
        The topics as decomposed.

    Raises
    ------
    InvalidInput
        A half has no pair of words.
    """
    return predicting_rounds_there(halves, halves.rows.shared(start))


def predicting_rounds_there(halves: HalfRows, start: Any) -> int:
    """As `predicting_rounds`, of a handle."""
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


def predicting_alpha0_there(halves: HalfRows, whole: Any) -> float:
    """The alpha0 whose Dirichlet makes pairs held out likeliest: .05, .1, .2, .3, .5 ... or 10.

    Under `Omega = (diag(w) + alpha0 w w') / (alpha0 + 1)`, with topics and weights of the other
    half. The noisier topics are, the larger it is, so that documents read with it are given to them
    less surely; the pairs that they were fitted on take one near 0.

    Parameters
    ----------
    halves : HalfRows
        Of the statistics.
    whole : handle of PairTopics
        The topics as refined.

    Raises
    ------
    InvalidInput
        A half has no pair of words.
    """
    rows, known = halves.rows, dict[int, float]()
    fits = fits_of(halves, whole, BAR_ROUNDS)
    if fits is None:
        raise InvalidInput(f"{_NO_PAIRS}; fit with alpha given")

    def likelihood(place: int) -> float:
        if place not in known:
            mixed = [rows.once(STEP, with_dirichlet, one, TRIED_ALPHA0S[place]) for one in fits]
            known[place] = scored(halves, mixed).mean
        return known[place]

    # of a mixture of two it rises, then falls
    low, high = 0, len(TRIED_ALPHA0S) - 1
    while low < high:
        middle = (low + high) // 2
        if likelihood(middle) < likelihood(middle + 1):
            low = middle + 1
        else:
            high = middle
    return TRIED_ALPHA0S[low]


def with_dirichlet(state: PairTopics, alpha0: float) -> PairTopics:
    """The topics with the pair weights of Dirichlet proportions."""
    weights = state.pair_weights.sum(axis=1)
    return replace(state, pair_weights=dirichlet_pair_weights(weights, alpha0))
