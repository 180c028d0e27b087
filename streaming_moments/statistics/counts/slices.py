"""Whitened slices of the third moment: a (k, k) matrix for each word, one row block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.packing import frobenius_weights, pack, packed_size, unpack
from streaming_moments.statistics.counts.lengths.row_lengths import quotients
from streaming_moments.statistics.counts.weighted import Statistics, row_constants
from streaming_moments.statistics.counts.whitening import Whitening

# Number of rows that are unpacked at a time. With 64 columns, (rows, s, s) float64 take 8 MB.
_ROWS = 256


def whitened_slices(statistics: Statistics, whitening: Whitening) -> Iterator[NDArray[np.float64]]:
    """Yield slices `H_i = W' M3_i W` of the model's third moment, for rows of a block in order.

    A slice is a (k, k) matrix; M3_i is the third moment with word i as its first word. P, T and
    moment_counts are arrays of `MomentStatistics`; W and B are those of `Whitening`. With
    `G = P + diag(moment_counts)`, `v = G W` and `w_i` row i of W (0 outside the core),

        C3 H_i = B' T_i B - sum_h G_ih w_h w_h' - (v_i w_i' + w_i v_i') + 2 moment_counts_i w_i w_i'

    counts triples of distinct positions only (Theorem 1). To these the function adds the
    corrections of the model's form. They are scaled so that `H_i = O diag(m_i) O'`, where m_i is
    the row of the topic matrix.

    The constants of row i are those of the documents in which word i is counted. So a word that was
    added later is estimated from later documents, by Theorem 1 on that part of the corpus. Core
    words are counted in all documents.

    Yields packed upper triangles, (rows, k (k + 1) / 2) float64, of at most 256 rows at a time.
    `statistics` are one block of r rows, and `whitening` is from the core moments of the same
    statistics. `streaming_moments.fit_by` runs this function over all rows.
    """
    form, k, u = whitening.form, whitening.n_topics, whitening.first
    W, B = whitening.vectors, whitening.coefficients
    every = row_constants(statistics, form)
    both = np.hstack([W, pack(W[:, :, None] * W[:, None, :])])

    def slices_of(rows: slice) -> NDArray[np.float64]:
        counts, w = _row_terms(statistics, whitening, rows)
        products = statistics.pair_counts[rows].astype(np.float64) @ both
        v = products[:, :k] + counts[:, None] * w
        sketch = unpack(statistics.triple_sketch[rows].astype(np.float64), B.shape[0])
        slices = pack(np.matmul(B.T, sketch @ B))
        slices -= products[:, k:]
        own = pack(w[:, :, None] * w[:, None, :])
        cross = v[:, :, None] * w[:, None, :]
        # `products` uses P instead of G, so it lacks `counts * own`, which the formula subtracts
        # once and adds twice: add it once
        slices -= pack(cross + cross.transpose(0, 2, 1)) - counts[:, None] * own
        C1, C2, C3 = (constant[rows] for constant in every)

        def crossed() -> NDArray[np.float64]:
            z = quotients(products[:, :k], C2)[:, :, None] * u
            mean = quotients(counts, C1)[:, None]
            return mean * pack(whitening.second) + pack(z + z.transpose(0, 2, 1))

        def cubes(times: float) -> NDArray[np.float64]:
            return times * (quotients(counts, C1)[:, None] * pack(np.outer(u, u)))

        return form.third(quotients(slices, C3), crossed, cubes).reshape(-1, packed_size(k))

    yield from map(slices_of, _parts(statistics.word_counts.size))


def rotated_diagonals(
    statistics: Statistics,
    whitening: Whitening,
    rotation: NDArray[np.float64],
    leading: int | None = None,
) -> NDArray[np.float64]:
    """Estimate rows of the topic matrix, `m_i = diag(O' H_i O)`, independently of one another.

    Returns (r, k) estimates, which are not distributions yet, for one block of r rows and a (k, k)
    orthogonal O. Only the diagonals are computed, in the rotated coordinates. This takes a k-th of
    the time of whole slices. With `leading`, only that many first rows of the block are estimated.
    """
    form, every = whitening.form, row_constants(statistics, whitening.form)
    turned = replace(
        whitening,
        coefficients=whitening.coefficients @ rotation,
        vectors=whitening.vectors @ rotation,
    )
    u = rotation.T @ whitening.first
    second = np.einsum("aj,ab,bj->j", rotation, whitening.second, rotation)
    # For each topic, b' T_i b is a product with the packed entries of T_i, where b is the topic's
    # column of coefficients. Entries off the diagonal count twice.
    B = turned.coefficients.T
    sketched = (pack(B[:, :, None] * B[:, None, :]) * frobenius_weights(B.shape[1]) ** 2).T
    k, squares = whitening.n_topics, turned.vectors**2
    both = np.hstack([turned.vectors, squares])

    def diagonals_of(rows: slice) -> NDArray[np.float64]:
        counts, w = _row_terms(statistics, turned, rows)
        products = statistics.pair_counts[rows].astype(np.float64) @ both
        v = products[:, :k] + counts[:, None] * w
        part = statistics.triple_sketch[rows].astype(np.float64) @ sketched - products[:, k:]
        C1, C2, C3 = (constant[rows] for constant in every)
        part = quotients(part - 2 * v * w + counts[:, None] * w**2, C3)
        M1 = quotients(counts[:, None], C1)
        return form.third(
            part,
            lambda: M1 * second + 2 * quotients(products[:, :k], C2) * u,
            lambda times: times * M1 * u**2,
        )

    number = statistics.word_counts.size if leading is None else leading
    diagonals = np.empty((number, k))
    for rows in _parts(number):
        diagonals[rows] = diagonals_of(rows)
    return diagonals


def _parts(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _ROWS):
        yield slice(start, min(start + _ROWS, rows))


def _row_terms(
    statistics: Statistics, whitening: Whitening, rows: slice
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (r,) moment counts, and (r, k) rows of W, which are zero outside the core."""
    W = whitening.vectors
    counts = statistics.moment_counts[rows].astype(np.float64)
    words = np.arange(statistics.basis.n_words)[statistics.block.rows][rows]
    w = np.zeros((counts.size, W.shape[1]))
    inside = words < W.shape[0]
    w[inside] = W[words[inside]]
    return counts, w
