"""Halves: assignment of each record to one of two halves, by its content or its position.

Statistics store the sums of one half separately, so that choices made on one half can be tested on
the other. The half of a document, a vector, a sequence or an edge is the highest bit of a fixed
hash of its content. It is the same in any order, batch, shard, machine and version, and equal
records are in the same half. Rows of categories, sets and views are often equal by chance, because
they have few possible values. If equal rows were in one half, the halves would differ by more than
chance, so the position of a row decides. In memory, a fixed hash of the position decides, so that
patterns in the order of the rows do not matter. In a store, the rows of a shard alternate between
the halves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics import half_kernels

_HIGHEST_BIT: Final = np.uint64(63)


def odd_half(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return whether each record is in the odd half, (records,), by the key of its content.

    Examples
    --------
    >>> odd_half(np.arange(8, dtype=np.uint64)).astype(int)
    array([0, 1, 0, 0, 0, 1, 1, 0])
    """
    return np.asarray(mixed(keys) >> _HIGHEST_BIT == 1)


def odd_in_turn(first: int, number: int) -> NDArray[np.bool_]:
    """Return whether each of `number` rows, numbered from `first` on, is in the odd half.

    Rows alternate between the halves, as in stores. The first row of a shard has the size of the
    shard in bytes as its number, so that shards with one row are not all in the same half.

    Examples
    --------
    >>> odd_in_turn(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)


def odd_by_place(first: int, number: int) -> NDArray[np.bool_]:
    """Return whether each of `number` records, numbered from `first` on, is in the odd half.

    A fixed hash of a record's number decides. So if the records in memory alternate between two
    classes, the classes do not become the halves.

    Examples
    --------
    >>> odd_by_place(0, 8).astype(int)
    array([0, 1, 0, 1, 1, 1, 0, 1])
    >>> odd_by_place(3, 2).tolist() == odd_by_place(0, 5)[3:].tolist()
    True
    """
    return odd_half(mixed(np.arange(first, first + number, dtype=np.uint64)))


def mostly_repeated(keys: NDArray[np.uint64]) -> bool:
    """Whether fewer than half of the records are distinct, by keys of their content.

    If so, halves by content would differ by more than chance.

    Examples
    --------
    >>> mostly_repeated(np.array([1, 2, 1, 2, 1], dtype=np.uint64))
    True
    """
    return 2 * np.unique(keys).size < keys.size


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash each number to 64 bits that each depend on all bits of the number."""
    for shift in (half_kernels.FIRST_SHIFT, half_kernels.SECOND_SHIFT):
        numbers = (numbers ^ (numbers >> shift)) * half_kernels.MULTIPLIER
    return numbers


def count_keys(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[Any],
    first: int,
    n_words: int,
) -> NDArray[np.uint64]:
    """Return a key of each record from its counts of the words below `n_words`, (records,).

    A key is the sum of `mixed((first + word) << 32 | count)`, so the order of the words does not
    matter. The keys of several views can be added if each view has another `first`.
    """
    keys = np.zeros(indptr.size - 1, dtype=np.uint64)
    half_kernels.add_count_keys(
        read_only(indptr), read_only(words), read_only(counts), first, n_words, keys
    )
    return keys


def row_keys(offsets: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return keys of sequences of integers, (records,); the order of the integers matters.

    A key is the sum of `mixed(place << 32 | value)`, with places from 1 and values modulo 2^32.
    """
    keys = np.zeros(offsets.size - 1, dtype=np.uint64)
    half_kernels.add_row_keys(read_only(offsets), read_only(values), keys)
    return keys
