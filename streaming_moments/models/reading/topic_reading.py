"""Numba kernels that infer topic proportions and expected counts of documents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only

LANES = 8
TOKEN = 1 << 20  # number of integer units in a token, in the sums of `expected_counts`


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
    """Infer the topic proportions of documents in place in `thetas`, to 1e-8.

    The proportions theta of a document are the fixed point of
    `theta <- (alpha0 w + sum_i x_i theta m_i / (theta . m_i)) / (alpha0 + c)`,
    where x are its counts, c is its number of tokens, m are the topics and w their weights. This is
    the limit of sweeps of `_read` if its argument `own` is 0.
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
    """Add the expected tokens of each word in each topic, by collapsed variational Bayes (CVB0).

    indptr, words, counts : arrays of a `CountBatch`
    topics, alpha : (n, k) float64 and (k,) float64, all positive
    sweeps : largest number of sweeps for a document; they end earlier if one changes the tokens in
        each topic by at most the share `tolerance` of all tokens of the document
    totals : (n, k) int64, to which the kernel adds, in units of 2^-20 of a token; what is added for
        a document depends on no other document, so sums have the same bits in any order
    harmonics : (k + 1,) int64, to which the kernel adds, in the same units:
        `alpha_j (psi(alpha_j + N_dj) - psi(alpha_j))` for each topic, and
        `alpha0 (psi(alpha0 + c_d) - psi(alpha0))`; document d has N_dj tokens of topic j and c_d
        tokens in all, and psi is linear between whole numbers of tokens
    """
    # add with `cumsum`, in the same order as the kernels do; `sum` would add pairwise and round
    # otherwise
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
            # Entry j < k is for topic j, with its alpha and its number of tokens. The last entry is
            # for all topics together, with alpha0 and all tokens.
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
    """Pad topics and prior with zeros to a multiple of `LANES`, and make work space for `_read`.

    The work space holds the shares of topics in each word of one document, and three more rows.
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
    """Sweep over one document: `r_ij ~ m_ij (alpha_j + N_j - own r_ij)`.

    r_ij is the share of topic j in a token of word i, and N_j the tokens in topic j, updated after
    every word. If `own` is 1, a token leaves itself out. Returns the number of tokens. Leaves alpha
    + N in the first row of `room`, and r in `shares`. Sums use lanes in a fixed order, so that all
    processors give the same numbers.
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
