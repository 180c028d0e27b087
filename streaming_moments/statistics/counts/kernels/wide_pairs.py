"""Numba kernels of pairs with one 64-bit sum each, for sums too large for cells of `pair_kernels`.

They also add documents that are not packed. They are serial, run without the interpreter lock, and
add to arrays of their caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.statistics.counts.kernels.prefetch import prefetching

# Kernels read the documents of a word one after another, and prefetch the document that is this
# many steps ahead. Without prefetching, they waited for memory for a third of the time.
_AHEAD = 4
_prefetch = prefetching(lines=4)


@kernel()
def add_pairs(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    pairs: NDArray[np.int64],
) -> None:
    """`P += X' X[:, :core] - diag(sum x)` for the block's rows, (rows, core) int64.

    Only the documents of a word at the positions from `starts` to before `stops` are added. One row
    of P is added at a time: its 8 bytes x core stay in the cache while all documents with its word
    are read.
    """
    core = pairs.shape[1]
    for row in range(pairs.shape[0]):
        word = first + row * step
        target = pairs[row]
        total = np.int64(0)
        for entry in range(starts[word], stops[word]):
            document = documents[entry]
            count = np.int64(values[entry])
            total += count
            for other in range(indptr[document], indptr[document + 1]):
                if words[other] >= core:
                    break
                target[words[other]] += count * counts[other]
        if word < core:
            target[word] -= total


@kernel()
def add_codocuments(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    codocuments: NDArray[np.int64],
) -> None:
    """`D += (X > 0)' (X > 0)` for pairs of core words, (core rows, core) int64.

    D counts the documents with both words.
    """
    core = codocuments.shape[1]
    for row in range(codocuments.shape[0]):
        word = first + row * step
        target = codocuments[row]
        for entry in range(starts[word], starts[word + 1]):
            document = documents[entry]
            for other in range(indptr[document], indptr[document + 1]):
                if words[other] >= core:
                    break
                target[words[other]] += 1


@kernel()
def add_pairs_together(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    core_starts: NDArray[np.int64],
    packed: NDArray[np.uint16],
    count_bits: int,
    chosen: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    even_pairs: NDArray[np.int64],
    codocuments: NDArray[np.int64],
) -> None:
    """Add pairs of all documents and of the even half, and co-documents, in one sweep.

    The kernel adds to the chosen rows, (rows,) bool, what `add_pairs` and `add_codocuments` add. If
    `even_pairs` or `codocuments` has no rows, its sums are not added. The documents of the even
    half come first: their sums are copied before those of the odd half are added, so nothing is
    added twice. The high bits of a 64-bit cell count documents, and the others sum products, so one
    addition into a row that stays in the cache does both. The caller ensures that the products of a
    word in the batch do not overflow. Indices are unsigned, because checks for negative ones are a
    third of the instructions of the inner loops.
    """
    core = pairs.shape[1]
    next_one, two, high = np.uint64(1), np.uint64(2), np.uint64(64 - count_bits)
    one = next_one << high
    low = one - next_one
    cells = np.zeros(core, dtype=np.uint64)
    last = documents.size - 1
    for row in range(pairs.shape[0]):
        word = first + row * step
        if not chosen[row] or starts[word] == starts[word + 1]:
            continue
        total = np.int64(0)
        for half in range(2):
            begin, end = starts[word], odd_starts[word]
            if half:
                begin, end = end, starts[word + 1]
            for entry in range(begin, end):
                document = np.uint64(documents[entry])
                _prefetch(packed, core_starts[documents[min(entry + _AHEAD, last)], 0])
                total += values[entry]
                count = np.uint64(values[entry])
                once = np.uint64(core_starts[document, 0])
                more = np.uint64(core_starts[document, 1])
                stop = np.uint64(core_starts[document + next_one, 0])
                both = one + count
                for place in range(once, more):
                    cells[np.uint64(packed[place])] += both
                for place in range(more, stop, two):
                    both = one + count * np.uint64(packed[place + next_one])
                    cells[np.uint64(packed[place])] += both
            if half == 0 and begin < end and row < even_pairs.shape[0]:
                for other in range(core):
                    even_pairs[row, other] += np.int64(cells[other] & low)
                if word < core:
                    even_pairs[row, word] -= total
        for other in range(core):
            pairs[row, other] += np.int64(cells[other] & low)
        if row < codocuments.shape[0]:
            for other in range(core):
                codocuments[row, other] += np.int64(cells[other] >> high)
        cells[:] = 0
        if word < core:
            pairs[row, word] -= total
