"""Numba kernels of word pairs: all sums about a pair of words are fields of one cell of 64 bits.

Documents are packed first. `wide_pairs` adds sums that are too large for a cell. Kernels are
serial, run without the interpreter lock, and add to arrays of their caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics.counts.kernels.prefetch import prefetching

# Kernels read the documents of a word one after another, and prefetch the document that is this
# many steps ahead. Without prefetching, they waited for memory for a third of the time.
_AHEAD = 4
_LINE = 8  # number of 64-bit cells in a line of the cache
_prefetch, _prefetch_line = prefetching(lines=4), prefetching(lines=1)


@dataclass(frozen=True)
class CellFields:
    """Sizes in bits of the fields of a cell: sums of products of counts, and a number of documents.

    With `halves`, each half of the documents has its own sum of products. With `codocuments`, a
    field counts the documents with both words.

    Examples
    --------
    >>> CellFields(halves=True, codocuments=True).largest
    (8388607, 262143)
    """

    halves: bool
    codocuments: bool

    @property
    def bits(self) -> int:
        """Number of bits of a sum of products of two words' counts.

        Such a sum can be about 30 times the number of documents, so it gets more bits than that.
        """
        if self.halves:
            return 23 if self.codocuments else 32
        return 44 if self.codocuments else 63

    @property
    def largest(self) -> tuple[int, int]:
        """Largest sum of products, and largest number of documents, that the fields can hold."""
        left = 64 - self.bits * (1 + self.halves)
        return (1 << self.bits) - 1, (1 << left) - 1 if self.codocuments else 1 << 62


def pack_core(
    indptr: NDArray[np.int64], words: NDArray[np.int32], counts: NDArray[np.int32], core: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Pack the counts of the core words of documents as 16-bit integers.

    The words with count 1 of a document come first, then pairs of a word and its count.

    Words and counts must be below 2^16. Returns `(documents + 1, 2)` starts of the words with count
    1 and of the other entries, and the packed numbers. Packing saves time, because `add_to_cells`
    reads every document once for each of its words. Most packed entries take a quarter of the bytes
    of two int32, and need neither shifts nor a product.
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
def add_to_cells(
    first: int,
    step: int,
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    core_starts: NDArray[np.int64],
    packed: NDArray[np.uint16],
    bits: int,
    halves: bool,
    together: bool,
    chosen: NDArray[np.bool_],
    cells: NDArray[np.uint64],
) -> None:
    """Add the sums of `wide_pairs.add_pairs_together`, as fields of (rows, core) cells of 64 bits.

    The lowest `bits` bits of a cell sum the products of two words' counts in the odd half of the
    documents, the next `bits` bits those in the even half, and the other bits count documents.
    Without `halves`, the lowest bits sum the products of both halves. Without `together`, documents
    are not counted. The caller ensures that no field of the chosen rows overflows its bits.
    """
    core = cells.shape[1]
    next_one, two, from_even = np.uint64(1), np.uint64(2), np.uint64(bits if halves else 0)
    one = next_one << np.uint64(bits + from_even) if together else np.uint64(0)
    last = documents.size - 1
    for row in range(cells.shape[0]):
        word = first + row * step
        if not chosen[row] or starts[word] == starts[word + 1]:
            continue
        target = cells[row]
        for place in range(0, core, _LINE):
            _prefetch_line(target, place)
        for half in range(2):
            begin, end, shift = starts[word], odd_starts[word], from_even
            if half:
                begin, end, shift = end, starts[word + 1], np.uint64(0)
            total = np.uint64(0)
            for entry in range(begin, end):
                document = np.uint64(documents[entry])
                _prefetch(packed, core_starts[documents[min(entry + _AHEAD, last)], 0])
                count = np.uint64(values[entry]) << shift
                total += count
                once = np.uint64(core_starts[document, 0])
                more = np.uint64(core_starts[document, 1])
                stop = np.uint64(core_starts[document + next_one, 0])
                both = one + count
                for place in range(once, more):
                    target[np.uint64(packed[place])] += both
                for place in range(more, stop, two):
                    both = one + count * np.uint64(packed[place + next_one])
                    target[np.uint64(packed[place])] += both
            if word < core:
                target[word] -= total


@kernel()
def split_cells(
    cells: NDArray[np.uint64],
    bits: int,
    chosen: NDArray[np.bool_],
    pairs: NDArray[np.int64],
    even_pairs: NDArray[np.int64],
    codocuments: NDArray[np.int64],
) -> None:
    """Split the cells of the chosen rows, filled by `add_to_cells`, into arrays of their fields.

    The arrays have as many rows as the cells. But `even_pairs` and `codocuments` have no rows if
    these sums are not gathered. `pairs` may use the memory of the cells.
    """
    core, halves = cells.shape[1], even_pairs.shape[0] > 0
    low, from_even = (np.uint64(1) << np.uint64(bits)) - np.uint64(1), np.uint64(bits)
    from_documents = np.uint64(bits + bits if halves else bits)
    for row in range(cells.shape[0]):
        if not chosen[row]:
            continue
        if row < codocuments.shape[0]:
            for other in range(core):
                codocuments[row, other] = np.int64(cells[row, other] >> from_documents)
        if halves:
            for other in range(core):
                cell = cells[row, other]
                even = (cell >> from_even) & low
                even_pairs[row, other] = np.int64(even)
                pairs[row, other] = np.int64(even + (cell & low))
        else:
            for other in range(core):
                pairs[row, other] = np.int64(cells[row, other] & low)
