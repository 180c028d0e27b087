"""Expectation maximisation on the table of windows of three symbols: no sequence is read again.

The composite likelihood `sum count log P(x1, x2, x3)` of a hidden Markov model with free weights of
the first state. Given the middle state the outer symbols are independent, so a window costs k, not
k^3, and the result depends on the table alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.views import decoding
from streaming_moments.numerics.held_bytes import held_bytes

FEWEST, MOST = 3, 24  # random starts beside the spectral ones
# Windows times states times rounds of a start, of which a second has room for some 10^8.
_WORK = 1e8
# Which share of the starts goes on for how many times the rounds.
_RACE = ((1, 0.5), (4, 1), (12, 2))
# Of a distribution, spread over all of it before the first round: what is 0 would stay 0.
_SPREAD = 1e-3
# Of a step from round to round, and how far one may go.
_GROWTH = 1.2
_RATIOS = 1e-3, 1e3


@dataclass(frozen=True, eq=False)
class Chain:
    """Parameters of a hidden Markov model.

    Parameters
    ----------
    emission : (n, k) float64
        Columns on the simplex: symbols of each state.
    moves : (k, k) float64
        Columns on the simplex: states after each state.
    weights : (k,) float64
        Shares of the states at the first place of a window.
    """

    emission: NDArray[np.float64]
    moves: NDArray[np.float64]
    weights: NDArray[np.float64]

    __sizeof__ = held_bytes


@dataclass(frozen=True, eq=False)
class Windows:
    """Distinct windows with their counts.

    Parameters
    ----------
    cells : (windows, 3) int64
        Symbols.
    counts : (windows,) float64
        How often each was seen.
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of_table(cls, table: NDArray[np.int64]) -> Windows:
        """Of a table (middle, left, right) of counts."""
        middle, left, right = np.nonzero(table)
        cells = np.stack([left, middle, right], axis=1)
        return cls(cells, table[middle, left, right].astype(np.float64))


def likelier(
    windows: Windows, given: Sequence[Chain], rounds: int, seed: int = 0
) -> tuple[Chain, float]:
    """The likeliest of the starts given and of some random ones, with nats a window.

    All take half of the rounds; the likeliest quarter as many again as there are, and of all the
    likeliest twelfth twice as many. There are 24 random starts, of large tables fewer.
    """
    rng = np.random.default_rng(seed)
    n, k = given[0].emission.shape
    random = int(_WORK / max(1, windows.counts.size * k * rounds))
    found = [(spread(start), -np.inf) for start in given]
    for _ in range(min(max(random, FEWEST), MOST) if k > 1 else 0):
        emission, moves = rng.dirichlet(np.ones(n), k).T, rng.dirichlet(np.ones(k), k).T
        found.append((Chain(emission, moves, np.full(k, 1 / k)), -np.inf))
    starts = len(found)
    for share, of_rounds in _RACE:
        kept = sorted(found, key=lambda one: -one[1])[: math.ceil(starts / share)]
        more = math.ceil(rounds * of_rounds)
        found = [after_rounds(windows, chain, more, _GROWTH) for chain, _ in kept]
    return max(found, key=lambda one: one[1])


def after_rounds(
    windows: Windows, start: Chain, rounds: int, growth: float = 1.0
) -> tuple[Chain, float]:
    """The chain after so many rounds, and the nats a window of the last one but one.

    With a growth above 1 each step goes by that factor further than the last one, in logarithms, as
    long as windows become likelier; else the next round begins anew where one before it led
    (adaptive overrelaxation: Salakhutdinov and Roweis 2003).
    """
    chain, found, best, reach = start, start, -np.inf, 1.0
    for _ in range(rounds):
        following, score = _round(windows, chain)
        if score < best:
            chain, reach = found, 1.0
            continue
        found, best = following, score
        chain = _further(chain, found, reach) if reach > 1 else found
        reach *= growth
    return found, best


def spread(chain: Chain) -> Chain:
    """With a small share of everything, so that what was estimated as 0 can grow."""
    n, k = chain.emission.shape
    return Chain(
        (1 - _SPREAD) * chain.emission + _SPREAD / n,
        (1 - _SPREAD) * chain.moves + _SPREAD / k,
        (1 - _SPREAD) * chain.weights + _SPREAD / k,
    )


def _round(windows: Windows, chain: Chain) -> tuple[Chain, float]:
    """The likelier chain, and the nats a window of the one given."""
    O, T, w = chain.emission, chain.moves, chain.weights
    joint = T * w
    before, after = O @ joint.T, O @ T
    left, middle, right = (np.zeros_like(O) for _ in range(3))
    cells = windows.cells, windows.counts
    score = decoding.window_posteriors(*cells, before, O, after, left, middle, right)
    first, second = joint * (left.T @ O), T * (O.T @ right)
    emitted = O * (left @ joint) + middle + O * (right @ T.T)
    likelier = Chain(_columns(emitted), _columns(first + second), first.sum(axis=0) / first.sum())
    return likelier, float(score / windows.counts.sum())


def _further(chain: Chain, following: Chain, reach: float) -> Chain:
    """Beyond where a round led, by that multiple of its step."""

    def beyond(old: NDArray[np.float64], new: NDArray[np.float64]) -> NDArray[np.float64]:
        # what is 0 stays so, and nothing becomes 0
        ratio = np.divide(new, old, out=np.ones_like(new), where=old > 0)
        return _columns(new * np.clip(ratio, *_RATIOS) ** (reach - 1))

    return Chain(
        beyond(chain.emission, following.emission),
        beyond(chain.moves, following.moves),
        beyond(chain.weights[:, None], following.weights[:, None])[:, 0],
    )


def _columns(table: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = table.sum(axis=0)
    # a state that nothing is of any longer stays as any other could be
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / len(table)))
