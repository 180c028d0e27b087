"""Numba kernels of three views: sums of the words of one view times sketches of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel


@kernel()
def add_records(
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    records: NDArray[np.int32],
    counts: NDArray[np.int32],
    left: NDArray[Any],
    right: NDArray[Any],
    index: int,
    step: int,
    sums: NDArray[np.int64],
    even_sums: NDArray[np.int64],
) -> None:
    """Add `sum_d x_i left_d right_d'` to every row i of a block.

    x_i is the count of word i in record d, and left_d and right_d are the record's sketches.
    Records of the even half are also added to `even_sums`, unless that has no rows. Entries are
    ordered by row: those of row i are at `starts[i]:starts[i + 1]`, and those of the odd half begin
    at `odd_starts[i]`. `left` (records, 1 + s_l) and `right` have one dtype, in which all sums of
    the batch are exact.
    """
    height, width = left.shape[1], right.shape[1]
    held = np.zeros((height, width), left.dtype)
    halves = even_sums.shape[0] > 0
    for place in range(sums.shape[0]):
        row = place * step + index
        begin, middle, end = starts[row], odd_starts[row], starts[row + 1]
        for half in range(2):
            first = begin if half == 0 else middle
            last = middle if half == 0 else end
            if first == last:
                continue
            held[:] = 0
            for entry in range(first, last):
                record, count = records[entry], counts[entry]
                for a in range(height):
                    factor = count * left[record, a]
                    if factor != 0:
                        for b in range(width):
                            held[a, b] += factor * right[record, b]
            for a in range(height):
                for b in range(width):
                    value = np.int64(held[a, b])
                    sums[place, a, b] += value
                    if halves and half == 0:
                        even_sums[place, a, b] += value


@kernel()
def add_sketches(
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    records: NDArray[np.int32],
    counts: NDArray[np.int32],
    other: NDArray[np.int64],
    index: int,
    step: int,
    sums: NDArray[np.int64],
    even_sums: NDArray[np.int64],
) -> None:
    """Add `sum_d x_i other_d` to every row i of a block, as `add_records` does.

    `other` has the sketch of one other view of each record d.
    """
    halves = even_sums.shape[0] > 0
    for place in range(sums.shape[0]):
        row = place * step + index
        for entry in range(starts[row], starts[row + 1]):
            record, count = records[entry], counts[entry]
            for a in range(other.shape[1]):
                value = count * other[record, a]
                sums[place, a] += value
                if halves and entry < odd_starts[row]:
                    even_sums[place, a] += value


@kernel()
def add_windows(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    groups: NDArray[np.int64],
    n_symbols: int,
    sketch: NDArray[Any],
    index: int,
    step: int,
    sums: NDArray[np.int64],
    even_sums: NDArray[np.int64],
) -> None:
    """Add `sum left right'` of the windows with middle symbol i, for every row i of a block.

    Here left and right are the sketches of the first and of the last symbol of a window.
    `cells` are increasing: `((middle * 2 + odd) * n + left) * n + right`, each with its count. The
    cells of one middle symbol and one half are a group. `groups` has the start of each group, and
    then the number of cells. A row of `sketch` (core + 1, 1 + s) is `[1, Q]` of a symbol, and the
    last row is for all symbols outside the core.
    """
    width, core = sketch.shape[1], sketch.shape[0] - 1
    held = np.zeros((width, width), sketch.dtype)
    after = np.zeros(width, sketch.dtype)
    halves = even_sums.shape[0] > 0
    for group in range(groups.size - 1):
        begin, end = groups[group], groups[group + 1]
        head = cells[begin] // n_symbols // n_symbols
        middle, odd = head // 2, head % 2
        if middle % step != index:
            continue
        held[:] = 0
        place = begin
        while place < end:
            pair = cells[place] // n_symbols
            after[:] = 0
            while place < end and cells[place] // n_symbols == pair:
                right = min(cells[place] % n_symbols, core)
                for b in range(width):
                    after[b] += counts[place] * sketch[right, b]
                place += 1
            left = min(pair % n_symbols, core)
            for a in range(width):
                factor = sketch[left, a]
                if factor != 0:
                    for b in range(width):
                        held[a, b] += factor * after[b]
        row = middle // step
        for a in range(width):
            for b in range(width):
                value = np.int64(held[a, b])
                sums[row, a, b] += value
                if halves and odd == 0:
                    even_sums[row, a, b] += value
