"""Numba kernels that apply a hidden Markov model to sequences: likelihood, posteriors, Viterbi.

A kernel gets, for each place of a sequence, the index of a row in a table of likelihoods. A
negative index means that the place is unobserved. The table has a row for each symbol of an
alphabet, or for each place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel


@kernel()
def forward_backward(
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    start: NDArray[np.float64],
    transition: NDArray[np.float64],
    emission: NDArray[np.float64],
    posterior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-likelihood of each sequence; write probabilities of states to `posterior`.

    start : (sequences, k), distribution of the first state of each sequence
    transition : (k, k), transition matrix, with a row for each next state
    emission : (n, k), table of positive likelihoods, with a column for each state
    posterior : (places, k), overwritten; if it has no rows, the probabilities of states are not
        computed
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
            row = rows[place]
            total = 0.0
            for j in range(k):
                if place == begin:
                    value = start[number, j]
                else:
                    value = 0.0
                    for i in range(k):
                        value += transition[j, i] * state[i]
                ahead[j] = value if row < 0 else value * emission[row, j]
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
            row = rows[place + 1]
            if row >= 0:
                for j in range(k):
                    backward[j] *= emission[row, j]
            largest = 0.0
            for i in range(k):
                value = 0.0
                for j in range(k):
                    value += transition[j, i] * backward[j]
                ahead[i] = value
                largest = max(largest, value)
            total = 0.0
            for i in range(k):
                backward[i] = ahead[i] / largest
                state[i] = posterior[place, i] * backward[i]
                total += state[i]
            if total > 0:
                for i in range(k):
                    posterior[place, i] = state[i] / total
            else:
                # The symbols after this place have probability 0, up to rounding. Ignore them,
                # because they do not tell which state this is.
                backward[:] = 1.0
    return found


@kernel()
def viterbi(
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    start: NDArray[np.float64],
    transition: NDArray[np.float64],
    emission: NDArray[np.float64],
    states: NDArray[np.int32],
) -> NDArray[np.float64]:
    """Write the most likely states of each sequence to `states`; return their log probability.

    Arguments are those of `forward_backward`, but all probabilities are given as logarithms.
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
            row = rows[place]
            for j in range(k):
                if place == begin:
                    value, origin = start[number, j], 0
                else:
                    value, origin = best[0] + transition[j, 0], 0
                    for i in range(1, k):
                        if best[i] + transition[j, i] > value:
                            value, origin = best[i] + transition[j, i], i
                came[place - begin, j] = origin
                ahead[j] = value if row < 0 else value + emission[row, j]
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


@kernel()
def expected_moves(
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    start: NDArray[np.float64],
    transition: NDArray[np.float64],
    emission: NDArray[np.float64],
    posterior: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the (k, k) expected numbers of transitions, with a row for each next state.

    Arguments are those of `forward_backward`. `posterior` must have the values that this function
    wrote.
    """
    k = start.shape[1]
    found = np.zeros((k, k))
    state = np.empty(k)
    ahead = np.empty(k)
    for number in range(offsets.size - 1):
        begin, end = offsets[number], offsets[number + 1]
        for place in range(begin, end):
            row = rows[place]
            total = 0.0
            for j in range(k):
                if place == begin:
                    value = start[number, j]
                else:
                    value = 0.0
                    for i in range(k):
                        value += transition[j, i] * state[i]
                    if value > 0:
                        factor = posterior[place, j] / value
                        for i in range(k):
                            found[j, i] += transition[j, i] * state[i] * factor
                ahead[j] = value if row < 0 else value * emission[row, j]
                total += ahead[j]
            for j in range(k):
                state[j] = ahead[j] / total
    return found


@kernel()
def expected_places(
    offsets: NDArray[np.int64],
    symbols: NDArray[np.int32],
    begins: NDArray[np.int64],
    starts: NDArray[np.float64],
    transition: NDArray[np.float64],
    emission: NDArray[np.float64],
    ahead: NDArray[np.float64],
    joint: NDArray[np.float64],
    scratch: NDArray[np.float64],
    by_symbol: NDArray[np.int64],
    moves: NDArray[np.int64],
    first: NDArray[np.int64],
    places: NDArray[np.int64],
    unit: float,
) -> None:
    """Add the expected states of chunks of sequences to integer sums.

    The sums are numbers of places, in units of 1/`unit` of a place.

    The values of each chunk are rounded to integers, so that sums are exact in any order of the
    chunks. `starts` (2, k) has two distributions of the first state of a chunk: inside a sequence,
    and at its beginning. `ahead` (longest, k), `joint` (k, k) and `scratch` (3, k) are overwritten.
    """
    k = starts.shape[1]
    backward, state, before = scratch[0], scratch[1], scratch[2]
    for number in range(offsets.size - 1):
        begin, end = offsets[number], offsets[number + 1]
        if begin == end:
            continue
        for place in range(begin, end):
            row, total = symbols[place], 0.0
            for j in range(k):
                if place == begin:
                    value = starts[begins[number], j]
                else:
                    value = 0.0
                    for i in range(k):
                        value += transition[j, i] * ahead[place - begin - 1, i]
                if row >= 0:
                    value *= emission[row, j]
                ahead[place - begin, j] = value
                total += value
            for j in range(k):
                ahead[place - begin, j] /= total
        joint[:] = 0.0
        backward[:] = 1.0
        for place in range(end - 1, begin - 1, -1):
            row, total = symbols[place], 0.0
            for j in range(k):
                state[j] = ahead[place - begin, j] * backward[j]
                total += state[j]
            if total <= 0:
                # ignore the symbols after this place, as `forward_backward` does
                backward[:] = 1.0
                state[:] = ahead[place - begin]
                total = 1.0
            for j in range(k):
                state[j] /= total
                units = np.int64(state[j] * unit + 0.5)
                places[j] += units
                if row >= 0:
                    by_symbol[row, j] += units
                if place == begin and begins[number] == 1:
                    first[j] += units
            if place == begin:
                break
            before[:] = 0.0
            for j in range(k):
                value = 0.0
                for i in range(k):
                    value += transition[j, i] * ahead[place - begin - 1, i]
                factor = state[j] / value if value > 0 else 0.0
                weight = backward[j] if row < 0 else backward[j] * emission[row, j]
                for i in range(k):
                    joint[j, i] += transition[j, i] * ahead[place - begin - 1, i] * factor
                    before[i] += transition[j, i] * weight
            largest = before.max()
            for i in range(k):
                backward[i] = before[i] / largest
        for j in range(k):
            for i in range(k):
                moves[j, i] += np.int64(joint[j, i] * unit + 0.5)
