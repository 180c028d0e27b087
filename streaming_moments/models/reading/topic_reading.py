"""Numba kernels that infer topic proportions and expected counts of documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only

LANES = 8
TOKEN = 1 << 20  # units of `expected_counts` for one token


def proportions(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    iterations: int,
    thetas: NDArray[np.float64],
) -> None:
    """Infer proportions in place, to 1e-8.

    They are the fixed point of
    `theta <- (alpha0 w + sum_i x_i theta m_i / (theta . m_i)) / (alpha0 + c)`, the limit of sweeps
    of `_read` that do not leave out the token itself.
    """
    _proportions(
        read_only(indptr),
        read_only(words),
        read_only(counts),
        *_rooms(indptr, topics, alpha0 * weights),
        read_only(weights),
        float(alpha0),
        iterations,
        thetas,
    )


@kernel()
def _proportions(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    topics: NDArray[np.float64],
    prior: NDArray[np.float64],
    shares: NDArray[np.float64],
    room: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    iterations: int,
    thetas: NDArray[np.float64],
) -> None:
    k = weights.size
    for document in range(indptr.size - 1):
        first, last = indptr[document], indptr[document + 1]
        for j in range(k):
            thetas[document, j] = weights[j]
        if first == last:
            continue
        total = _read(
            words, counts, first, last, topics, prior, 0.0, iterations, 1e-7, shares, room
        )
        total += alpha0
        for j in range(k):
            thetas[document, j] = room[0, j] / total


def expected_counts(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    topics: NDArray[np.float64],
    alpha: NDArray[np.float64],
    sweeps: int,
    tolerance: float,
    totals: NDArray[np.int64],
    harmonics: NDArray[np.int64],
) -> None:
    """Add expected tokens of each word in each topic, by collapsed variational Bayes (CVB0).

    indptr, words, counts : arrays of a `CountBatch`
    topics, alpha : (n, k) float64 and (k,) float64, all positive
    sweeps : largest number of sweeps for a document; they end earlier when its tokens in each topic
        change by at most the share `tolerance` of all its tokens
    totals : (n, k) int64, to which the kernel adds, in units of 2^-20 of a token; what is added for
        a document depends on no other document, so sums have the same bits in any order
    harmonics : (k + 1,) int64, to which the kernel adds, in the same units:
        `alpha_j (psi(alpha_j + N_dj) - psi(alpha_j))` for each topic, and
        `alpha0 (psi(alpha0 + c_d) - psi(alpha0))`, with psi linear between whole N
    """
    # use `cumsum`, which adds one number after another, as the kernels do; `sum` adds pairwise
    alpha0 = float(np.cumsum(alpha)[-1])
    _expected_counts(
        read_only(indptr),
        read_only(words),
        read_only(counts),
        *_rooms(indptr, topics, alpha),
        alpha0,
        sweeps,
        tolerance,
        totals,
        harmonics,
    )


@kernel()
def _expected_counts(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    topics: NDArray[np.float64],
    prior: NDArray[np.float64],
    shares: NDArray[np.float64],
    room: NDArray[np.float64],
    alpha0: float,
    sweeps: int,
    tolerance: float,
    totals: NDArray[np.int64],
    harmonics: NDArray[np.int64],
) -> None:
    k = totals.shape[1]
    for document in range(indptr.size - 1):
        first, last = indptr[document], indptr[document + 1]
        if first == last:
            continue
        total = _read(
            words, counts, first, last, topics, prior, 1.0, sweeps, tolerance, shares, room
        )
        for entry in range(first, last):
            unit = TOKEN * counts[entry]
            for j in range(k):
                totals[words[entry], j] += np.int64(shares[entry - first, j] * unit + 0.5)
        for j in range(k + 1):
            # Row j < k is for topic j, with its alpha and its N. The last row is for all topics
            # together, with alpha0 and the tokens.
            alpha, tokens = alpha0, total
            if j < k:
                alpha, tokens = prior[j], room[0, j] - prior[j]
            harmonic, whole = 0.0, int(tokens)
            for m in range(whole):
                harmonic += alpha / (alpha + m)
            harmonic += (tokens - whole) * alpha / (alpha + whole)
            harmonics[j] += np.int64(harmonic * TOKEN + 0.5)


def _rooms(
    indptr: NDArray[np.int64], topics: NDArray[np.float64], alpha: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Pad topics and prior with zeros to a multiple of the lanes, and make work space for `_read`.

    The work space holds the shares of the entries of one document, and three more rows.
    """
    k = alpha.size
    wide = -(-k // LANES) * LANES
    columns, prior = np.zeros((topics.shape[0], wide)), np.zeros(wide)
    columns[:, :k], prior[:k] = topics, alpha
    longest = int(np.diff(indptr).max(initial=0))
    return columns, prior, np.empty((longest, wide)), np.empty((3, wide))


@kernel(inline="always")
def _lanes(values: NDArray[np.float64]) -> float:
    a = b = c = d = e = f = g = h = 0.0
    for j in range(0, values.size, LANES):
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
        e += values[j + 4]
        f += values[j + 5]
        g += values[j + 6]
        h += values[j + 7]
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


@kernel(inline="always")
def _read(
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    first: int,
    last: int,
    topics: NDArray[np.float64],
    prior: NDArray[np.float64],
    own: float,
    sweeps: int,
    tolerance: float,
    shares: NDArray[np.float64],
    room: NDArray[np.float64],
) -> float:
    """Sweep over one document: `r_ij ~ m_ij (alpha_j + N_j - own r_ij)`, with the newest N.

    Returns the number of tokens. Leaves alpha + N in the first row of the work space, and r in
    `shares`. Sums use lanes in a fixed order, so that all processors give the same numbers.
    """
    base, before, fresh = room[0], room[1], room[2]
    total = 0.0
    for entry in range(first, last):
        shares[entry - first] = 0.0
        total += counts[entry]
    k = prior.size
    for j in range(k):
        base[j] = prior[j]
    for _ in range(sweeps):
        for j in range(k):
            before[j] = base[j]
        for entry in range(first, last):
            row, share = topics[words[entry]], shares[entry - first]
            for j in range(k):
                fresh[j] = row[j] * (base[j] - own * share[j])
            scale, count = 1.0 / _lanes(fresh), float(counts[entry])
            for j in range(k):
                value = fresh[j] * scale
                base[j] += count * (value - share[j])
                share[j] = value
        change = 0.0
        for j in range(k):
            change = max(change, abs(base[j] - before[j]))
        if change <= tolerance * total:
            break
    return total
