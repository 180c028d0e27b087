"""Numba kernels of pairs: how often two words occur in the same documents.

Like all `kernels` they are serial, run without the interpreter lock, and add to arrays of the
caller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics.counts.kernels.prefetch import prefetching

# Entries ahead to prefetch documents: waiting for them took a third of the time.
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

    X has the documents of each word from `starts` up to `stops`. Works on one word's row of P at a
    time: its 8 bytes x core stay in the cache while the documents of the word are read.
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
    """`D += (X > 0)' (X > 0)` inside the core, (core rows, core) int64."""
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


def pack_core(
    indptr: NDArray[np.int64], words: NDArray[np.int32], counts: NDArray[np.int32], core: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Core entries of each document: words with count 1, then word and count of all others.

    For words and counts below 2^16. Returns `(documents + 1, 2)` starts of both parts, and the
    numbers. `add_pairs_together` reads a document once for each of its words: this takes a quarter
    of the bytes of two int32 for most entries, without shifts or products.
    """
    inside = words < core
    once = np.count_nonzero(inside & (counts == 1))
    starts = np.zeros((indptr.size, 2), dtype=np.int64)
    packed = np.empty(2 * np.count_nonzero(inside) - once, dtype=np.uint16)
    _pack_core(read_only(indptr), read_only(words), read_only(counts), core, starts, packed)
    return starts, packed


@kernel()
def _pack_core(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    core: int,
    starts: NDArray[np.int64],
    packed: NDArray[np.uint16],
) -> None:
    once = np.int64(0)
    for document in range(indptr.size - 1):
        starts[document, 0] = once
        begin, end = indptr[document], indptr[document + 1]
        more = once
        for entry in range(begin, end):
            if words[entry] >= core:
                end = entry
                break
            more += counts[entry] == 1
        starts[document, 1] = more
        for entry in range(begin, end):
            if counts[entry] == 1:
                packed[once] = words[entry]
                once += 1
            else:
                packed[more] = words[entry]
                packed[more + 1] = counts[entry]
                more += 2
        once = more
    starts[indptr.size - 1, 0] = once


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
    """`add_pairs`, `add_codocuments`, and `add_pairs` of the even half, in one sweep.

    For the chosen rows, (rows,) bool. If `even_pairs` or `codocuments` have no rows they are
    skipped. Documents of the even half come first, so their sums are copied halfway and nothing is
    added twice.

    The high bits of a 64-bit cell count documents, the others sum products, so one addition into a
    cached row does both. The caller ensures that the products of no word overflow. Indices are
    unsigned, as Numba's check for negative ones is a third of the instructions of the inner loops.
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
