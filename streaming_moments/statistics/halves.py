"""Halves: which half of the records one is of, by what it holds alone, or in turn.

Statistics keep the sums of one half apart, to judge choices on the other. The half of a document, a
vector, a sequence or an edge is the highest bit of a fixed hash of its content: the same in any
order, batch, shard, machine and version, and the same for records that hold the same. Rows of
categories, sets and views hold the same by chance, as there are few that they can be: copies on one
side would make halves differ by more than chance has it, so these are of both in turn.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST_SHIFT: Final = np.uint64(32)
_SECOND_SHIFT: Final = np.uint64(29)
_HIGHEST_BIT: Final = np.uint64(63)
_LOW: Final = np.uint64(0xFFFFFFFF)


def odd_half(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(records,) whether each is of the odd half, by (records,) keys that say all of its content.

    Examples
    --------
    >>> odd_half(np.arange(8, dtype=np.uint64)).astype(int)
    array([0, 1, 0, 0, 0, 1, 1, 0])
    """
    return np.asarray(mixed(keys) >> _HIGHEST_BIT == 1)


def odd_in_turn(first: int, number: int) -> NDArray[np.bool_]:
    """(number,) whether rows are in the odd half, by turns from the one numbered `first`.

    Rows of a shard are numbered from its size in bytes on, so that shards of one row are not all of
    the same half.

    Examples
    --------
    >>> odd_in_turn(3, 4).tolist()
    [True, False, True, False]
    """
    return np.asarray(np.arange(first, first + number) % 2 == 1)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits, each of which depends on all of a number's."""
    for shift in (_FIRST_SHIFT, _SECOND_SHIFT):
        numbers = (numbers ^ (numbers >> shift)) * _MULTIPLIER
    return numbers


@kernel(inline="always")
def _mixed(number: np.uint64) -> Any:
    first = (number ^ (number >> _FIRST_SHIFT)) * _MULTIPLIER
    return (first ^ (first >> _SECOND_SHIFT)) * _MULTIPLIER


def count_keys(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[Any],
    first: int,
    n_words: int,
) -> NDArray[np.uint64]:
    """(records,) keys of counted words, those below `n_words`, which are numbered from `first`.

    Sums of `mixed((first + word) << 32 | count)`, so in any order; keys of several views add up.
    """
    keys = np.zeros(indptr.size - 1, dtype=np.uint64)
    _count_keys(read_only(indptr), read_only(words), read_only(counts), first, n_words, keys)
    return keys


@kernel()
def _count_keys(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[Any],
    first: int,
    n_words: int,
    keys: NDArray[np.uint64],
) -> None:
    for record in range(keys.size):
        key = np.uint64(0)
        for entry in range(indptr[record], indptr[record + 1]):
            if words[entry] < n_words:
                word = np.uint64(first + words[entry])
                key += _mixed(word << _FIRST_SHIFT | np.uint64(counts[entry]))
        keys[record] = key


def row_keys(offsets: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.uint64]:
    """(records,) keys of runs of integers, in their order.

    Sums of `mixed(place << 32 | value)`, places from 1, values modulo 2^32.
    """
    keys = np.zeros(offsets.size - 1, dtype=np.uint64)
    _row_keys(read_only(offsets), read_only(values), keys)
    return keys


@kernel()
def _row_keys(offsets: NDArray[np.int64], values: NDArray[Any], keys: NDArray[np.uint64]) -> None:
    for record in range(keys.size):
        key = np.uint64(0)
        for entry in range(offsets[record], offsets[record + 1]):
            place = np.uint64(entry - offsets[record] + 1)
            key += _mixed(place << _FIRST_SHIFT | np.uint64(np.int64(values[entry])) & _LOW)
        keys[record] = key
