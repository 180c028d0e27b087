"""Halves of records by their definition, in Python's integers."""

from collections.abc import Iterable, Mapping

_BITS = (1 << 64) - 1


def mixed(number: int) -> int:
    """Mix the 64 bits of a number."""
    for shift in (32, 29):
        number = (number ^ (number >> shift)) * 0x9E3779B97F4A7C15 & _BITS
    return number


def is_odd(entries: Iterable[tuple[int, int]]) -> bool:
    """Whether a record of (number, value) entries is in the odd half.

    >>> is_odd([(0, 1), (1, 2)]), is_odd([(1, 3)]), is_odd([])
    (True, True, False)
    """
    key = sum(mixed(number << 32 | value % (1 << 32)) for number, value in entries)
    return mixed(key & _BITS) >> 63 == 1


def odd_document(counts: Mapping[int, int]) -> bool:
    """Whether a document with counts of words is in the odd half."""
    return is_odd((word, count) for word, count in counts.items() if count)


def odd_row(values: Iterable[int]) -> bool:
    """Whether a row of integers, or a sequence of symbols, is in the odd half."""
    return is_odd(enumerate(values, start=1))
