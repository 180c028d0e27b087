"""Numba kernels that read sequences by a hidden Markov model: likelihood, posteriors, Viterbi."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def forward_backward(
    offsets: NDArray[np.int64],
    symbols: NDArray[np.int32],
    start: NDArray[np.float64],
    moves: NDArray[np.float64],
    emission: NDArray[np.float64],
    posterior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Log likelihood of each sequence; posteriors of the states, where there is room for them.

    `start` is (sequences, k), `moves` (k, k) has a row for each state gone to, `emission` (n, k) is
    positive; a symbol below 0 is one that was not seen. `posterior` (symbols, k) may have no rows.
    """
    k = start.shape[1]
    found = np.zeros(offsets.size - 1)
    backward = np.empty(k)
    ahead = np.empty(k)
    state = np.empty(k)
    told = posterior.shape[0] > 0
    for number in range(offsets.size - 1):
        begin, end = offsets[number], offsets[number + 1]
        for place in range(begin, end):
            symbol = symbols[place]
            total = 0.0
            for j in range(k):
                if place == begin:
                    value = start[number, j]
                else:
                    value = 0.0
                    for i in range(k):
                        value += moves[j, i] * state[i]
                ahead[j] = value if symbol < 0 else value * emission[symbol, j]
                total += ahead[j]
            for j in range(k):
                state[j] = ahead[j] / total
                if told:
                    posterior[place, j] = state[j]
            found[number] += np.log(total)
        if not told or begin == end:
            continue
        backward[:] = 1.0
        for place in range(end - 2, begin - 1, -1):
            symbol = symbols[place + 1]
            if symbol >= 0:
                for j in range(k):
                    backward[j] *= emission[symbol, j]
            largest = 0.0
            for i in range(k):
                value = 0.0
                for j in range(k):
                    value += moves[j, i] * backward[j]
                ahead[i] = value
                largest = max(largest, value)
            total = 0.0
            for i in range(k):
                backward[i] = ahead[i] / largest
                posterior[place, i] *= backward[i]
                total += posterior[place, i]
            for i in range(k):
                posterior[place, i] /= total
    return found


@njit(cache=True, nogil=True)
def viterbi(
    offsets: NDArray[np.int64],
    symbols: NDArray[np.int32],
    start: NDArray[np.float64],
    moves: NDArray[np.float64],
    emission: NDArray[np.float64],
    states: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Likeliest states of each sequence, into `states`, and their log probability with symbols.

    All tables are logarithms; others as `forward_backward`.
    """
    k = start.shape[1]
    found = np.zeros(offsets.size - 1)
    longest = 0
    for number in range(offsets.size - 1):
        longest = max(longest, offsets[number + 1] - offsets[number])
    came = np.empty((longest, k), np.int32)
    best = np.empty(k)
    ahead = np.empty(k)
    for number in range(offsets.size - 1):
        begin, end = offsets[number], offsets[number + 1]
        if begin == end:
            continue
        for place in range(begin, end):
            symbol = symbols[place]
            for j in range(k):
                if place == begin:
                    value, origin = start[number, j], 0
                else:
                    value, origin = best[0] + moves[j, 0], 0
                    for i in range(1, k):
                        if best[i] + moves[j, i] > value:
                            value, origin = best[i] + moves[j, i], i
                came[place - begin, j] = origin
                ahead[j] = value if symbol < 0 else value + emission[symbol, j]
            for j in range(k):
                best[j] = ahead[j]
        last = 0
        for j in range(1, k):
            if best[j] > best[last]:
                last = j
        found[number] = best[last]
        for place in range(end - 1, begin - 1, -1):
            states[place] = last
            last = came[place - begin, last]
    return found


# Sums may be taken in another order, and products with them: vectors of the processor's own width.
_REORDERED = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_REORDERED)
def triple_posteriors(
    cells: NDArray[np.int64],
    counts: NDArray[np.float64],
    before: NDArray[np.float64],
    emission: NDArray[np.float64],
    after: NDArray[np.float64],
    left: NDArray[np.float64],
    middle: NDArray[np.float64],
    right: NDArray[np.float64],
) -> float:
    """Add the posteriors of the middle state of triples to the rows of their words.

    `P(x1, x2, x3, h2) = before[x1, h2] emission[x2, h2] after[x3, h2]`; `cells` (triples, 3) with
    their counts, quickest where those of one x1 and x2 lie together. What is added to `left` and
    `right` is over `before` and `after`. Returns the log likelihood of all.
    """
    k = emission.shape[1]
    pair, share = np.empty(k), np.empty(k)
    likelihood = 0.0
    cell = 0
    while cell < cells.shape[0]:
        x1, x2 = cells[cell, 0], cells[cell, 1]
        for j in range(k):
            pair[j] = before[x1, j] * emission[x2, j]
            share[j] = 0.0
        while cell < cells.shape[0] and cells[cell, 0] == x1 and cells[cell, 1] == x2:
            x3 = cells[cell, 2]
            total = 0.0
            for j in range(k):
                total += pair[j] * after[x3, j]
            likelihood += counts[cell] * np.log(total)
            factor = counts[cell] / total
            for j in range(k):
                share[j] += factor * after[x3, j]
                right[x3, j] += factor * pair[j]
            cell += 1
        for j in range(k):
            left[x1, j] += emission[x2, j] * share[j]
            middle[x2, j] += pair[j] * share[j]
    return likelihood
