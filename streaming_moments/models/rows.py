"""Rows: all rows of some statistics, block by block, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths import Lengths
from streaming_moments.statistics.counts.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics

_Item = TypeVar("_Item")

_MOST_STRIP_SUMS = 128 << 20  # bytes


class Rows(Protocol):
    """Runs the steps of a fit; each step has a name, for progress and clocks.

    What `each`, `summed` and `once` return is a handle, to be given to `once`; of the latter two
    also to `value`, or as a shared argument. All functions and arguments must be picklable.
    """

    @property
    def basis(self) -> Basis:
        """Q."""

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> Any:
        """`function(statistics, *shared)` of every row block, in a list; left where it was made."""

    def gathered(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """As `each`, but the results themselves, brought here."""

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """The sum of what `each` gives, of so many bytes for each block, in the order of `strips`.

        So it has the same bits whoever adds it up.
        """

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """`function(*values)`, with nothing beside it."""

    def value(self, handle: Any) -> Any:
        """The result itself."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Rows held in this process.

    Parameters
    ----------
    blocks : sequence of MomentStatistics or WeightedStatistics
        All row blocks in their order; one for all rows.

    Raises
    ------
    InvalidInput
        A block is missing.
    """

    blocks: Sequence[Statistics]

    def __post_init__(self) -> None:
        held = [(one.block.index, one.block.step) for one in self.blocks]
        if not held or held != [(index, len(held)) for index in range(len(held))]:
            named = ", ".join(f"row block {index} of {step}" for index, step in held)
            raise InvalidInput(f"the statistics hold {named or 'no rows'}; merge all blocks first")

    @property
    def basis(self) -> Basis:
        """Q."""
        return self.blocks[0].basis

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""
        return self.blocks[0].row_lengths

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """One after another."""
        return [function(block, *shared) for block in self.blocks]

    gathered = each

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Strip by strip."""
        return added(
            added(function(block, *shared) for block in strip)
            for strip in strips(self.blocks, nbytes)
        )

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


def strips(blocks: Sequence[_Item], nbytes: int) -> list[list[_Item]]:
    """Blocks shared out so that the sums of all strips, of so many bytes each, stay bounded.

    The number depends on nothing but these bytes and the blocks, so neither does the order in
    which sums are added up.

    Examples
    --------
    >>> strips(range(5), nbytes=48 << 20)
    [[0, 2, 4], [1, 3]]
    """
    number = number_of_strips(len(blocks), nbytes)
    return [list(blocks[start::number]) for start in range(number)]


def number_of_strips(blocks: int, nbytes: int) -> int:
    """Strips that so many row blocks make up, of each of which the sum has so many bytes.

    Two at least, and otherwise as many as keep all sums, which one worker adds up, bounded.

    Examples
    --------
    >>> number_of_strips(31, 64_000), number_of_strips(31, 8 * 400**3)
    (31, 2)
    """
    return min(blocks, max(2, _MOST_STRIP_SUMS // nbytes))
