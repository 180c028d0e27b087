"""Numba kernels that count pairs in cells: all sums of two words in 64 bits.

Like all `kernels` they are serial, run without the interpreter lock, and add to arrays of the
caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.statistics.counts.kernels.prefetch import prefetching

# Entries ahead to prefetch documents: waiting for them took a third of the time.
_AHEAD = 4
_LINE = 8  # cells
_prefetch, _prefetch_line = prefetching(lines=4), prefetching(lines=1)


@dataclass(frozen=True)
class CellFields:
    """Bit fields of a cell: sums of products, of each half or of both, and number of documents.

    Examples
    --------
    >>> CellFields(halves=True, codocuments=True).largest
    (8388607, 262143)
    """

    halves: bool
    codocuments: bool

    @property
    def bits(self) -> int:
        """Bits of a sum of products, which is some 30 times larger than the number of documents."""
        if self.halves:
            return 23 if self.codocuments else 32
        return 44 if self.codocuments else 63

    @property
    def largest(self) -> tuple[int, int]:
        """Largest sum of products, and number of documents, in the fields."""
        left = 64 - self.bits * (1 + self.halves)
        return (1 << self.bits) - 1, (1 << left) - 1 if self.codocuments else 1 << 62


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
    """All that `add_pairs_together` adds, into fields of (rows, core) cells of 64 bits.

    The low `bits` sum products of the odd half, the next ones those of the even half, the others
    count documents. Without `halves` the low bits sum both halves; without `together` no documents
    are counted. The caller ensures that no field of the chosen rows overflows.
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
    """Split the cells of the chosen rows into sums.

    The arrays have as many rows; `even_pairs` and `codocuments` have none if not gathered. `pairs`
    can share the memory of the cells.
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
