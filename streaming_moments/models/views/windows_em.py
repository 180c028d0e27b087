"""Expectation maximisation on the table of windows of three symbols: no sequence is read again.

The composite likelihood `sum count log P(x1, x2, x3)` of a hidden Markov model with free weights of
the first state. Given the middle state the outer symbols are independent, so a window costs k, not
k^3, and the result depends on the table alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.views import decoding
from streaming_moments.numerics.held_bytes import held_bytes

# Random starts beside the spectral ones: so many where the table is small, of windows times states
# in all, and 3 at least.
_STARTS, _LEAST_STARTS, _STARTED = 63, 3, 5_000_000
_TRIED = 20  # rounds after which the less likely half of the starts is given up
# Of a distribution, spread over all of it before the first round: what is 0 would stay 0.
_SPREAD = 1e-3


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
    """The likeliest of the starts given and of random ones after so many rounds, with its score.

    After each 20 rounds the likelier half of them goes on; the score is in nats a window.
    """
    rng = np.random.default_rng(seed)
    n, k = given[0].emission.shape
    starts = [spread(start) for start in given]
    random = min(_STARTS, max(_LEAST_STARTS, _STARTED // (len(windows.counts) * k)))
    for _ in range(random if k > 1 else 0):
        emission, moves = rng.dirichlet(np.ones(n), k).T, rng.dirichlet(np.ones(k), k).T
        starts.append(Chain(emission, moves, np.full(k, 1 / k)))
    found, left = [(one, -np.inf) for one in starts], rounds
    while left:
        step = left if len(found) == 1 else min(_TRIED, left)
        found = [after_rounds(windows, one, step) for one, _ in found]
        found.sort(key=lambda one: -one[1])
        found, left = found[: (len(found) + 1) // 2], left - step
    return found[0]


def after_rounds(windows: Windows, start: Chain, rounds: int) -> tuple[Chain, float]:
    """The chain after so many rounds, and the nats a window of the last one but one."""
    chain, score = start, -np.inf
    for number in range(1, rounds + 1):
        chain, score = _round(windows, chain, scored=number == rounds)
    return chain, score


def spread(chain: Chain) -> Chain:
    """With a small share of everything, so that what was estimated as 0 can grow."""
    n, k = chain.emission.shape
    return Chain(
        (1 - _SPREAD) * chain.emission + _SPREAD / n,
        (1 - _SPREAD) * chain.moves + _SPREAD / k,
        (1 - _SPREAD) * chain.weights + _SPREAD / k,
    )


def _round(windows: Windows, chain: Chain, scored: bool) -> tuple[Chain, float]:
    """The likelier chain, and the nats a window of the one given where these are asked for."""
    O, T, w = chain.emission, chain.moves, chain.weights
    joint = T * w
    before, after = O @ joint.T, O @ T
    left, middle, right = (np.zeros_like(O) for _ in range(3))
    cells = windows.cells, windows.counts
    score = decoding.window_posteriors(*cells, before, O, after, left, middle, right, scored)
    first, second = joint * (left.T @ O), T * (O.T @ right)
    emitted = O * (left @ joint) + middle + O * (right @ T.T)
    likelier = Chain(_columns(emitted), _columns(first + second), first.sum(axis=0) / first.sum())
    return likelier, float(score / windows.counts.sum())


def _columns(table: NDArray[np.float64]) -> NDArray[np.float64]:
    sums = table.sum(axis=0)
    # a state that nothing is of any longer stays as any other could be
    return np.asarray(np.where(sums > 0, table / np.where(sums > 0, sums, 1), 1 / len(table)))
