"""Rows: all rows of some statistics, block by block, wherever they lie."""

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
_MOST_STRIP_SUMS = 128 << 20  # bytes, where there are more strips than that


class Rows(Protocol):
    """Runs the steps of a fit; each step has a name, for progress and clocks.

    What `each`, `summed` and `once` return is a handle, to be given to `once`; of the latter two
    also to `value`, or as a shared argument. All functions and arguments must be picklable.
    """

    @property
    def foundation(self) -> Any:
        """What the statistics are gathered on, where they are of another kind than counts."""

    @property
    def basis(self) -> Basis:
        """Q, of counts; so the lengths."""

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""

    @property
    def whole_core(self) -> bool:
        """Whether a step of `once` can hold the pair counts of all core words."""

    @property
    def halves(self) -> bool:
        """Whether the statistics keep halves of the documents."""

    @property
    def keeps_halves(self) -> bool:
        """Whether memory holds what `prepared` makes of each half, both at once."""

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> Any:
        """`function(statistics, *shared)` of every row block, in a list; left where it was made."""

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> Rows:
        """Rows of which the steps are given `function(statistics)` in place of the statistics.

        It is called once for each block where memory allows, otherwise anew by every step. Without
        `halves` the statistics may be as of a store that keeps none, as they are for other steps.
        """

    def brought(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> Rows:
        """As `prepared`, of so little that it is brought here, where steps on it will run."""

    def gathered(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """As `each`, but the results themselves, brought here."""

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """The sum of what `each` gives, of so many bytes for each block: `strips`, then `tree_sum`.

        So it has the same bits whoever adds it up.
        """

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> Any:
        """`function(part, *shared)` of every part, a handle or some of them; left as of `each`."""

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(*values)`, with nothing beside it."""

    def shared(self, value: Any) -> Any:
        """A handle of a value made here, sent once however many steps take it."""

    def value(self, handle: Any) -> Any:
        """The result itself."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows held in this process.

    Parameters
    ----------
    blocks : sequence of MomentStatistics, WeightedStatistics or ViewStatistics
        All row blocks in their order; one for all rows.
    whole_core : bool
        False makes it whiten by rows of the core, as workers that cannot hold all of it.
    ready : sequence
        What `prepared` made of the blocks.
    keeps_halves : bool
        False makes it prepare halves anew each time.

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
        """What the statistics are gathered on."""
        return self.blocks[0].foundation

    @property
    def basis(self) -> Basis:
        """Q."""
        basis: Basis = self.blocks[0].basis
        return basis

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""
        lengths: RowLengths[Lengths] = self.blocks[0].row_lengths
        return lengths

    @property
    def halves(self) -> bool:
        """Whether the statistics keep halves of the documents."""
        return self.blocks[0].even_pair_counts is not None

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """One after another."""
        return [function(block, *shared) for block in self.ready or self.blocks]

    gathered = each

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> InMemory:
        """Made at once."""
        return replace(self, ready=self.each(step, function))

    brought = prepared

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Strip by strip."""
        cut = strips(self.ready or self.blocks, nbytes)
        sums = (
            (index, added(function(block, *shared) for block in strip))
            for index, strip in enumerate(cut)
        )
        return tree_sum(sums, len(cut))

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """One after another."""
        return [function(part, *shared) for part in parts]

    def shared(self, value: Any) -> Any:
        """The value."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """At once."""
        return function(*values)

    def value(self, handle: Any) -> Any:
        """The handle."""
        return handle


def added(parts: Iterable[Any]) -> Any:
    """The sum of some parts, at least one, in their order."""
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
    """The sum of so many parts, each with its index, in a binary tree by index.

    So their order does not matter, and in the order of their indices at most one part of each
    level is held, `strip_sums_held` of them.

    Examples
    --------
    >>> tree_sum([(2, "c"), (0, "a"), (1, "b")], 3, lambda left, right: f"({left} + {right})")
    '((a + b) + c)'
    """
    waiting: dict[tuple[int, int], Any] = {}
    for index, part in parts:
        place, width, total = index, number, part
        del part  # what was added up is not held until the next one comes
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
    """Blocks shared out, a strip for one task, of each of which the sum has so many bytes.

    Examples
    --------
    >>> strips(range(80), nbytes=1 << 30)[0]
    [0, 64]
    """
    number = number_of_strips(len(blocks), nbytes)
    return [list(blocks[start::number]) for start in range(number)]


def number_of_strips(blocks: int, nbytes: int) -> int:
    """Strips that so many row blocks make up, of each of which the sum has so many bytes.

    64 at least, so that as many workers share them however large the sums are, and more where all
    sums together stay small. It depends on nothing else, so neither does the order in which sums
    are added up.

    Examples
    --------
    >>> number_of_strips(31, 64_000), number_of_strips(4000, 64_000)
    (31, 2097)
    >>> number_of_strips(4000, 8 * 400**3)
    64
    """
    return min(blocks, max(FEWEST_STRIPS, _MOST_STRIP_SUMS // nbytes))


def strip_sums_held(blocks: int, nbytes: int) -> int:
    """Sums, done and waiting, of those strips that are added up in their order.

    Examples
    --------
    >>> strip_sums_held(4000, 8 * 400**3)
    6
    """
    return (number_of_strips(blocks, nbytes) - 1).bit_length()
