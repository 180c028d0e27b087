"""Rows for plans, with few of their blocks: each step of a fit runs on these and is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from streaming_moments.models.rows import added, strips, tree_sum
from streaming_moments.pipelines.planning.stopwatch import timed, timed_on_all
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.row_block import RowBlock


@dataclass(frozen=True, eq=False)
class Timed:
    """`Rows` whose first blocks represent all.

    basis : Q
    lengths : rows by which documents count
    blocks : the first row blocks, one for each thread
    pool : threads that work on the blocks in parallel
    known : results of steps for all blocks, if the first blocks cannot represent the others
    seconds : seconds of each step so far: of the slowest block, or of the sum
    """

    basis: Basis
    lengths: RowLengths[Lengths]
    blocks: Sequence[MomentStatistics]
    pool: ThreadPoolExecutor
    known: Mapping[str, list[Any]]
    seconds: dict[str, float] = field(default_factory=dict)
    foundation: Any = None  # only fits of kinds without a plan use it
    whole_core: bool = True
    halves: bool = False  # the plan derives the cost of halves from that of all documents
    keeps_halves: bool = False

    def prepared(self, step: str, function: Callable[..., Any], halves: bool = False) -> Timed:
        """Call the function for the existing blocks."""
        return replace(self, blocks=self._on_all(step, function, ()))

    brought = prepared

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return the known values of all blocks.

        If a step has none, the result of the first block stands for the missing blocks.
        """
        found = self._on_all(step, function, shared)
        if step in self.known:
            return self.known[step]
        blocks = self.blocks[0].block.step
        sizes = [RowBlock(index, blocks).size(self.basis.n_words) for index in range(blocks)]
        missing = sizes[len(found) :]
        return [*found, *(_first_rows(found[0], size) for size in missing)]

    gathered = each

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Sum over the existing blocks."""
        found = self._on_all(step, function, shared)
        cut = strips(found, nbytes)
        return tree_sum(enumerate(map(added, cut)), len(cut))

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """Run the function and measure the time."""
        self.seconds[step], found = timed(lambda: [function(part, *shared) for part in parts])
        return found

    def shared(self, value: Any) -> Any:
        """Return the value."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """Run the function and measure the time."""
        self.seconds[step], result = timed(lambda: function(*values))
        return result

    def value(self, handle: Any) -> Any:
        """Return the handle."""
        return handle

    def _on_all(
        self, step: str, function: Callable[..., Any], shared: tuple[Any, ...]
    ) -> list[Any]:
        self.seconds[step], found = timed_on_all(
            self.pool, lambda block: function(block, *shared), self.blocks
        )
        return found


def _first_rows(found: Any, size: int) -> Any:
    """Total bytes of an array, or of several."""
    if isinstance(found, tuple):
        return tuple(array[:size] for array in found)
    return found[:size]
