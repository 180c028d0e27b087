"""Halves: assignment of each record to one of two halves, by its content or its place.

Statistics store the sums of one half separately, to test choices on the other. The half of a
document, a vector, a sequence or an edge is the highest bit of a fixed hash of its content. It is
the same in any order, batch, shard, machine and version, and equal records have the same half. Rows
of categories, sets and views are often equal by chance, because they have few possible values. If
equal rows were in one half, the halves would differ by more than chance, so the place of a row
decides. In memory a fixed hash of the place decides, so that patterns in the order of the rows do
not matter. In a store the rows of a shard alternate between the halves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics import half_kernels

_HIGHEST_BIT: Final = np.uint64(63)


def odd_half(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(records,) whether each is in the odd half, from (records,) keys of its content.

    Examples
    --------
    >>> odd_half(np.arange(8, dtype=np.uint64)).astype(int)
    array([0, 1, 0, 0, 0, 1, 1, 0])
    """
    return np.asarray(mixed(keys) >> _HIGHEST_BIT == 1)


def odd_in_turn(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether each row from number `first` on is in the odd half; rows alternate.

    Stores assign halves in this way. Rows of a shard are numbered from its size in bytes, so that
    shards with one row are not all in the same half.

    Examples
    --------
    >>> odd_in_turn(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)


def odd_by_place(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether each record in memory, from number `first` on, is in the odd half.

    A fixed hash of the number decides, so that records which alternate between classes do not
    alternate between halves, too.

    Examples
    --------
    >>> odd_by_place(0, 8).astype(int)
    array([0, 1, 0, 1, 1, 1, 0, 1])
    >>> odd_by_place(3, 2).tolist() == odd_by_place(0, 5)[3:].tolist()
    True
    """
    return odd_half(mixed(np.arange(first, first + number, dtype=np.uint64)))


def mostly_repeated(keys: NDArray[np.uint64]) -> bool:
    """Whether distinct records are fewer than half of the records, from keys of their content.

    If so, halves by content would differ by more than chance.

    Examples
    --------
    >>> mostly_repeated(np.array([1, 2, 1, 2, 1], dtype=np.uint64))
    True
    """
    return 2 * np.unique(keys).size < keys.size


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits that each depend on all bits of a number."""
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
    """(records,) keys from the counts of words below `n_words`; words have numbers from `first` on.

    Sums of `mixed((first + word) << 32 | count)`, so the order does not matter; keys of several
    views add up.
    """
    keys = np.zeros(indptr.size - 1, dtype=np.uint64)
    half_kernels.add_count_keys(
        read_only(indptr), read_only(words), read_only(counts), first, n_words, keys
    )
    return keys


def row_keys(offsets: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.uint64]:
    """(records,) keys of sequences of integers; the order of the integers matters.

    Sums of `mixed(place << 32 | value)`, places from 1, values modulo 2^32.
    """
    keys = np.zeros(offsets.size - 1, dtype=np.uint64)
    half_kernels.add_row_keys(read_only(offsets), read_only(values), keys)
    return keys
