"""Numba kernels that hash the content of records, which decides the half of a record."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel

MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
FIRST_SHIFT: Final = np.uint64(32)
SECOND_SHIFT: Final = np.uint64(29)
_LOW: Final = np.uint64(0xFFFFFFFF)


@kernel(inline="always")
def _mixed(number: np.uint64) -> Any:
    first = (number ^ (number >> FIRST_SHIFT)) * MULTIPLIER
    return (first ^ (first >> SECOND_SHIFT)) * MULTIPLIER


@kernel()
def add_count_keys(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[Any],
    first: int,
    n_words: int,
    keys: NDArray[np.uint64],
) -> None:
    """Fill `keys`, (records,), with hashes of the counts of each record; see `count_keys`."""
    for record in range(keys.size):
        key = np.uint64(0)
        for entry in range(indptr[record], indptr[record + 1]):
            if words[entry] < n_words:
                word = np.uint64(first + words[entry])
                key += _mixed(word << FIRST_SHIFT | np.uint64(counts[entry]))
        keys[record] = key


@kernel()
def add_row_keys(
    offsets: NDArray[np.int64], values: NDArray[Any], keys: NDArray[np.uint64]
) -> None:
    """Fill `keys`, (records,), with hashes of sequences of integers; see `row_keys`."""
    for record in range(keys.size):
        key = np.uint64(0)
        for entry in range(offsets[record], offsets[record + 1]):
            place = np.uint64(entry - offsets[record] + 1)
            key += _mixed(place << FIRST_SHIFT | np.uint64(np.int64(values[entry])) & _LOW)
        keys[record] = key
