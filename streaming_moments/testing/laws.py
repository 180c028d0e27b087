"""Checks of the laws of mergeable statistics, for any type with `zero`, `of`, `+` and `-`."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any


def check_laws(
    zero: Any,
    of: Callable[[Any], Any],
    join: Callable[[Sequence[Any]], Any],
    parts: Sequence[Any],
    order: Sequence[int],
) -> None:
    """Check the laws of mergeable statistics, such as `of(a) + of(b) == of(join([a, b]))`.

    The laws are checked on a sample that is cut into `parts`, also after reordering the parts by
    `order`. `of` maps a sample to its statistic, and `join` concatenates samples. Statistics must
    be equal bit for bit.
    """
    whole = of(join(parts))
    each = [of(part) for part in parts]
    before = [copy.deepcopy(statistic) for statistic in each]

    assert zero + whole == whole, "zero is the identity on the left"
    assert whole + zero == whole, "zero is the identity on the right"
    assert functools.reduce(operator.add, each, zero) == whole, "partitions do not matter"
    assert functools.reduce(operator.add, [each[i] for i in order]) == whole, (
        "order does not matter"
    )
    assert of(join([parts[i] for i in order])) == whole, "the order of the sample does not matter"
    if len(each) > 2:
        assert (each[0] + each[1]) + each[2] == each[0] + (each[1] + each[2]), "associative"
    assert each[0] + each[-1] == each[-1] + each[0], "commutative"
    for one, rest in zip(each, _leave_one_out(each, zero), strict=True):
        assert whole - one == rest, "subtraction undoes addition"
        assert (rest + one) - one == rest
    assert whole - whole == zero, "subtracting all parts gives zero"
    assert each == before, "the inputs are unchanged"


def check_records(
    zero: Any,
    of: Callable[[Any], Any],
    take: Callable[[Any, Sequence[int]], Any],
    sample: Any,
    order: Sequence[int],
    cuts: Sequence[int],
) -> None:
    """Check that neither the contribution nor the half of a record depends on other records.

    `take` selects records of a sample by index. The records are reordered by `order`, a
    permutation, and the sample is cut before the indices `cuts`. Statistics must be equal bit for
    bit.
    """
    whole = of(sample)
    ends = [0, *sorted(cuts), len(order)]
    pieces = [list(order[first:end]) for first, end in itertools.pairwise(ends)]
    each = [of(take(sample, piece)) for piece in pieces]

    assert of(take(sample, order)) == whole, "the order of the records does not matter"
    assert functools.reduce(operator.add, each, zero) == whole, "the cuts do not matter"
    for piece, one in zip(pieces, each, strict=True):
        left = [place for place in range(len(order)) if place not in piece]
        assert whole - one == of(take(sample, left)), "subtraction leaves no trace"
    twice = of(take(sample, [*order, *order]))
    assert twice == whole + whole, "equal records are in the same half"


def _leave_one_out(each: Sequence[Any], zero: Any) -> list[Any]:
    return [
        functools.reduce(operator.add, [s for j, s in enumerate(each) if j != i], zero)
        for i in range(len(each))
    ]
