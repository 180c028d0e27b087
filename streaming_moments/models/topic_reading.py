"""Numba kernels that read documents with given topics: shares of their tokens in each topic."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 8
TOKEN = 1 << 20  # a token in the units of `expected_counts`


@njit(cache=True, nogil=True)
def proportions(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32] | NDArray[np.int64],
    topics: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha0: float,
    iterations: int,
    thetas: NDArray[np.float64],
) -> None:
    """`theta <- (alpha0 w + sum_i x_i theta m_i / (theta . m_i)) / (alpha0 + c)`, to 1e-8.

    The limit is that of the sweeps of `_read` with the token itself left in.
    """
    padded, prior = _padded(topics, alpha0 * weights)
    room = _room(indptr, prior.size)
    for document in range(indptr.size - 1):
        first, last = indptr[document], indptr[document + 1]
        theta = thetas[document]
        for j in range(theta.size):
            theta[j] = weights[j]
        if first == last:
            continue
        base, total = _read(words, counts, first, last, padded, prior, 0.0, iterations, 1e-7, room)
        total += alpha0
        for j in range(theta.size):
            theta[j] = base[j] / total


@njit(cache=True, nogil=True)
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
    """Add tokens of each word expected in each topic, by collapsed variational Bayes (CVB0).

    indptr, words, counts : arrays of a `CountBatch`
    topics, alpha : (n, k) float64 and (k,) float64, all above 0
    sweeps : limit for a document, which is done earlier when its tokens in no topic change by more
        than the share `tolerance` of them
    totals : (n, k) int64, added to, in units of 2^-20 of a token; what a document adds depends on
        it and the model alone, so sums are the same bits in any order
    harmonics : (k + 1,) int64, added to, in the same units:
        `alpha_j (psi(alpha_j + N_dj) - psi(alpha_j))` of each topic, and
        `alpha0 (psi(alpha0 + c_d) - psi(alpha0))`, linear between whole N
    """
    padded, prior = _padded(topics, alpha)
    room = _room(indptr, prior.size)
    k, alpha0 = alpha.size, alpha.sum()
    for document in range(indptr.size - 1):
        first, last = indptr[document], indptr[document + 1]
        if first == last:
            continue
        base, total = _read(words, counts, first, last, padded, prior, 1.0, sweeps, tolerance, room)
        shares = room[0]
        for entry in range(first, last):
            share, row = shares[entry - first], totals[words[entry]]
            unit = TOKEN * counts[entry]
            for j in range(k):
                row[j] += np.int64(share[j] * unit + 0.5)
        for j in range(k):
            harmonics[j] += _harmonic(alpha[j], base[j] - alpha[j])
        harmonics[k] += _harmonic(alpha0, total)


@njit(cache=True, nogil=True)
def _read(words, counts, first, last, topics, prior, own, sweeps, tolerance, room):  # type: ignore[no-untyped-def]
    """Sweeps over one document: `r_ij ~ m_ij (alpha_j + N_j - own r_ij)`, N at its newest.

    Gives alpha + N and the tokens; the shares r are left in the room. Sums are in lanes of a fixed
    order, so that the same numbers come out of any processor.
    """
    shares, base, before, fresh = room
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
    return base, total


@njit(cache=True, nogil=True)
def _lanes(values):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True)
def _padded(topics, alpha):  # type: ignore[no-untyped-def]
    """Topics and prior with columns of zeros, up to a multiple of the lanes."""
    k = alpha.size
    wide = -(-k // LANES) * LANES
    columns, prior = np.zeros((topics.shape[0], wide)), np.zeros(wide)
    # entry by entry, as elsewhere: slices that may not fit take numba a second each to compile
    for row in range(topics.shape[0]):
        for j in range(k):
            columns[row, j] = topics[row, j]
    for j in range(k):
        prior[j] = alpha[j]
    return columns, prior


@njit(cache=True, nogil=True)
def _room(indptr, wide):  # type: ignore[no-untyped-def]
    longest = 0
    for document in range(indptr.size - 1):
        longest = max(longest, indptr[document + 1] - indptr[document])
    return np.empty((longest, wide)), np.empty(wide), np.empty(wide), np.empty(wide)


@njit(cache=True, nogil=True)
def _harmonic(alpha, tokens):  # type: ignore[no-untyped-def]
    """`alpha (psi(alpha + N) - psi(alpha))`, by divisions alone."""
    total, whole = 0.0, int(tokens)
    for m in range(whole):
        total += alpha / (alpha + m)
    total += (tokens - whole) * alpha / (alpha + whole)
    return np.int64(total * TOKEN + 0.5)
