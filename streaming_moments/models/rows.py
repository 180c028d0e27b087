"""Rows: run the steps of a fit on all row blocks of some statistics, in memory or on workers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics

_Item = TypeVar("_Item")

FEWEST_STRIPS = 64
# Row blocks are summed in strips. There are more strips than `FEWEST_STRIPS` only if the sums of
# all strips together take at most this many bytes.
_MOST_STRIP_SUMS = 128 << 20


class Rows(Protocol):
    """Runner of the steps of a fit; each step has a name, for progress and timing.

    `each`, `summed` and `once` return handles of results, which can stay on workers. A handle can
    be an argument of `once`. Handles from `summed` and `once` can also be given to `value`, or be
    the `shared` arguments of other steps. All functions and arguments must be picklable.
    """

    @property
    def foundation(self) -> Any:
        """Foundation of the statistics, if they are of a kind other than counts."""

    @property
    def basis(self) -> Basis:
        """Basis of the counts; other kinds of statistics have neither a basis nor `lengths`."""

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Totals of the lengths of the counted documents."""

    @property
    def whole_core(self) -> bool:
        """Whether a step of `once` can hold the pair counts of all core words."""

    @property
    def halves(self) -> bool:
        """Whether the statistics have halves of the documents."""

    @property
    def keeps_halves(self) -> bool:
        """Whether memory can hold what `prepared` returns for both halves at once."""

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> Any:
        """Call `function(statistics, *shared)` for each row block; results stay where they are."""

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> Rows:
        """Return rows whose steps get `function(statistics)` instead of the statistics.

        The function is called once for each block if memory allows, otherwise again in every step.
        If `halves` is false, the statistics that the function gets may lack the sums of the two
        halves of documents.
        """

    def brought(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> Rows:
        """Do as `prepared` does for results that are small enough to copy them between workers."""

    def gathered(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Do as `each` does, but copy the results to this process."""

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Sum the results of `each`, which have `nbytes` bytes each.

        The blocks are split into strips by `strips`. First, the results of the blocks of each strip
        are summed. Then `tree_sum` adds the sums of the strips. The result has the same bits on any
        workers.
        """

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> Any:
        """Call `function(part, *shared)` for all parts, as `each` does for row blocks.

        Each part is a handle, or several handles.
        """

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """Call `function(*values)` while no other step runs."""

    def shared(self, value: Any) -> Any:
        """Return a handle of a value of this process; workers get the value once, for all steps."""

    def value(self, handle: Any) -> Any:
        """Return the result behind a handle."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows held in this process.

    Parameters
    ----------
    blocks : sequence of MomentStatistics, WeightedStatistics or ViewStatistics
        All row blocks in order; or one block of all rows.
    whole_core : bool
        False makes a fit whiten the pair counts of the core in strips of rows, as on workers that
        cannot hold all of them.
    ready : sequence
        For each block, the result of the function that was given to `prepared`.
    keeps_halves : bool
        False makes a fit prepare the two halves of the documents again each time that it uses them.

    Raises
    ------
    InvalidInput
        A block is missing.
    """

    blocks: Sequence[Any]
    whole_core: bool = True
    ready: Sequence[Any] = ()
    keeps_halves: bool = True

    __repr__ = short_repr

    def __post_init__(self) -> None:
        held = [(one.block.index, one.block.step) for one in self.blocks]
        if not held or held != [(index, len(held)) for index in range(len(held))]:
            named = ", ".join(f"row block {index} of {step}" for index, step in held)
            raise InvalidInput(f"the statistics hold {named or 'no rows'}; merge all blocks first")

    @property
    def foundation(self) -> Any:
        """Foundation of the statistics."""
        return self.blocks[0].foundation

    @property
    def basis(self) -> Basis:
        """Basis Q."""
        basis: Basis = self.blocks[0].basis
        return basis

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Totals of the lengths of the counted documents."""
        lengths: RowLengths[Lengths] = self.blocks[0].row_lengths
        return lengths

    @property
    def halves(self) -> bool:
        """Whether the statistics have halves of the documents."""
        return self.blocks[0].even_pair_counts is not None

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call the function for one row block after another."""
        return [function(block, *shared) for block in self.ready or self.blocks]

    gathered = each

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> InMemory:
        """Return rows that hold the results of the function for all blocks."""
        return replace(self, ready=self.each(step, function))

    brought = prepared

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Sum strip by strip."""
        cut = strips(self.ready or self.blocks, nbytes)
        sums = (
            (index, added(function(block, *shared) for block in strip))
            for index, strip in enumerate(cut)
        )
        return tree_sum(sums, len(cut))

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """Call the function for one part after another."""
        return [function(part, *shared) for part in parts]

    def shared(self, value: Any) -> Any:
        """Return the value itself."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """Call the function."""
        return function(*values)

    def value(self, handle: Any) -> Any:
        """Return the value itself: in memory, a handle is the value."""
        return handle


def added(parts: Iterable[Any]) -> Any:
    """Sum one or more parts, in their order."""
    waiting = iter(parts)
    total = next(waiting)
    for part in waiting:
        total = total + part
    return total


def tree_sum(
    parts: Iterable[tuple[int, _Item]],
    number: int,
    add: Callable[[Any, Any], Any] = operator.add,
) -> Any:
    """Sum `number` parts, each with its index, in a binary tree by index.

    The order in which parts arrive does not change the result. If they arrive in the order of their
    indices, memory holds at most one sum of each level of the tree, `strip_sums_held` in all.

    Examples
    --------
    >>> tree_sum([(2, "c"), (0, "a"), (1, "b")], 3, lambda left, right: f"({left} + {right})")
    '((a + b) + c)'
    """
    waiting: dict[tuple[int, int], Any] = {}
    for index, part in parts:
        place, width, total = index, number, part
        del part  # free this part before the next one arrives
        while width > 1:
            if place ^ 1 < width:
                if (width, place ^ 1) not in waiting:
                    break
                pair = (waiting.pop((width, place ^ 1)), total)
                total = add(*(pair if place & 1 else pair[::-1]))
                del pair
            place, width = place // 2, -(-width // 2)
        waiting[width, place] = total
        del total
    return waiting.pop((1, 0))


def strips(blocks: Sequence[_Item], nbytes: int) -> list[list[_Item]]:
    """Split row blocks into strips, one for each task; the sum of a strip has `nbytes` bytes."""
    number = number_of_strips(len(blocks), nbytes)
    return [list(blocks[start::number]) for start in range(number)]


def number_of_strips(blocks: int, nbytes: int) -> int:
    """Return the number of strips for row blocks whose sums have `nbytes` bytes each.

    It is at least 64, unless there are fewer blocks, so that 64 workers share the work even if sums
    are large. It is larger if the sums of all strips together stay small. It depends on nothing
    else, so the order of summation is the same on any workers.

    Examples
    --------
    >>> number_of_strips(31, 64_000), number_of_strips(4000, 64_000)
    (31, 2097)
    >>> number_of_strips(4000, 8 * 400**3)
    64
    """
    return min(blocks, max(FEWEST_STRIPS, _MOST_STRIP_SUMS // nbytes))


def strip_sums_held(blocks: int, nbytes: int) -> int:
    """Return how many sums of strips memory holds at most, if strips are summed in order."""
    return (number_of_strips(blocks, nbytes) - 1).bit_length()
