"""Room: number of documents that a store can count before a sum could exceed 2^62."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded
from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.kernels import row_kernels
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights

# Bound of all sums. It is half of the range of int64, so that adding two sums within the bound
# cannot overflow unnoticed.
LARGEST_TOTAL = 2**62
# Whole numbers are exact in float64 up to 2^53. This limit is half of that, because upper bounds
# are rounded before they are compared with it.
LARGEST_FLOAT_SUM = 2.0**52
# Even weights, which are larger for short documents, are chosen so that a store can count 10^9
# documents of up to 500 tokens, or as many tokens in longer documents. Even pooled weights, which
# are all 1, may allow less than 16 times as many. A 16th of what they allow is then enough.
_DOCUMENTS, _LENGTH, _SHARE = 10**9, 500, 16
# Even weights are 1 only for documents longer than this multiple of the longest document of a
# sample, so that all documents of the sample have larger weights. Weights are whole numbers.
# Measured on planted topics with Poisson lengths: if documents have weights of 1 and 2, rounding
# weights raises the error of topics by 1.5%. A multiple above 2 improves nothing.
_FINENESS = 2
# a document can have at most this many words; the table of weights up to it takes a gigabyte
_LONGEST = 1 << 26
# Weights are chosen so that float64 can sum the triples of a batch with this many tokens, about 32
# MB of text, exactly.
_BATCH_TOKENS = 1 << 22
# Entries of the projection y of a document with c tokens are at most 128 c. If documents have fewer
# tokens than this number, the entries fit in int32.
_LONGEST_NARROW = 2**24


def finest_even(batch: CountBatch) -> LengthWeights:
    """Return even weights that are at least 3 for every document of a sample.

    Rounding such weights to whole numbers is harmless.
    """
    longest = int(batch.lengths.max(initial=0))
    if longest > _LONGEST:
        raise BoundExceeded(
            f"document {int(batch.lengths.argmax())} has {longest:,} words, above {_LONGEST:,}",
            "cut it into passages ({create.passage_words})",
        )
    return LengthWeights.even(_FINENESS * longest)


def documents_that_fit(batch: CountBatch, matrix: NDArray[np.int8], weights: LengthWeights) -> int:
    """Return how many documents like those of a sample can be counted before a sum exceeds 2^62.

    `matrix` is the (core, s) int8 Q of the basis, `weights` are those of the basis.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[2, 1, 1], [1, 0, 2]])
    >>> documents_that_fit(batch, np.eye(3, 2, dtype=np.int8), POOLED) == 2**62 // 9
    True
    """
    return _room(batch, _squares(batch, matrix), weights)[0]


def even_with_room(batch: CountBatch, matrix: NDArray[np.int8]) -> LengthWeights:
    """Return the finest even weights with which a store can still count enough documents.

    Finer weights are larger, so sums exceed 2^62 after fewer documents like those of the sample.
    Enough are 10^9 documents of up to 500 tokens, or as many tokens in longer documents. If pooled
    weights, which are all 1, allow less than 16 times as many, a 16th of their number is enough.
    """
    squares = _squares(batch, matrix)
    pooled, plain = _room(batch, squares, POOLED)
    mean = max(float(batch.lengths.mean()), 1.0) if batch.documents else 1.0
    needed = min(_DOCUMENTS * min(1.0, _LENGTH / mean), pooled / _SHARE)
    allowed = max(LARGEST_FLOAT_SUM / _BATCH_TOKENS, plain * _SHARE)
    most = _FINENESS * int(batch.lengths.max(initial=0))
    while True:
        weights = LengthWeights.even(most)
        room, bound = _room(batch, squares, weights)
        if weights.is_pooled or (room >= needed and bound <= allowed):
            return weights
        most = most * 7 // 8


def room_for_projection(batch: CountBatch, columns: int) -> NDArray[Any]:
    """Return (columns,) zeros of an integer type in which `y = Q' x` of each document is exact."""
    narrow = int(batch.lengths.max(initial=0)) < _LONGEST_NARROW
    return np.zeros(columns, dtype=np.int32 if narrow else np.int64)


def _squares(batch: CountBatch, matrix: NDArray[np.int8]) -> NDArray[np.float64]:
    """Return the largest squared entry of `y = Q' x` of each document, (documents,)."""
    squares = np.empty(batch.documents)
    total = room_for_projection(batch, matrix.shape[1])
    y = np.empty((batch.documents, matrix.shape[1]), dtype=np.float32)
    ones = np.ones(batch.documents, dtype=np.int64)
    row_kernels.project(
        batch.indptr,
        batch.words,
        batch.counts,
        ones,
        read_only(matrix),
        total,
        y,
        squares,
    )
    return squares


def _room(
    batch: CountBatch, squares: NDArray[np.float64], weights: LengthWeights
) -> tuple[int, float]:
    """Return how many documents like those of a sample fit in sums below 2^62, with `weights`.

    Also return how much a token of the sample adds to an entry of the triple sketch at most; this
    is the mean over all tokens.
    """
    weighted = weights.at(batch.lengths) * squares
    entries = batch.counts * np.repeat(weighted, np.diff(batch.indptr))
    triples = np.bincount(batch.words, entries, batch.n_words).max(initial=0.0)
    largest = max(int(triples), LengthHistogram.of(batch.lengths, weights).C2, 1)
    tokens = max(int(batch.lengths.sum()), 1)
    return LARGEST_TOTAL * batch.documents // largest, float(weighted @ batch.lengths) / tokens
