"""Rows for a plan: each step of a fit runs on a few of the row blocks and is timed."""

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
    """`Rows` that hold only the first row blocks; these represent all blocks.

    basis : the basis of the store
    lengths : lengths of the documents that each row counts
    blocks : the first row blocks, one for each thread
    pool : threads that work on the blocks in parallel
    known : for steps in which the first blocks do not represent the rest, the results of all blocks
    seconds : seconds of each step that has run: of its slowest block, or of the whole step
    """

    basis: Basis
    lengths: RowLengths[Lengths]
    blocks: Sequence[MomentStatistics]
    pool: ThreadPoolExecutor
    known: Mapping[str, list[Any]]
    seconds: dict[str, float] = field(default_factory=dict)
    # used only in fits to other records than documents, which are not timed by row blocks
    foundation: Any = None
    whole_core: bool = True
    halves: bool = False  # not timed: a plan derives the cost of halves from that of all documents
    keeps_halves: bool = False

    def prepared(self, step: str, function: Callable[..., Any], halves: bool = False) -> Timed:
        """Call the function for each block in memory; return rows with its results as blocks."""
        return replace(self, blocks=self._on_all(step, function, ()))

    brought = prepared

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return a result of a step for every block.

        These are the known results, if the step has some. Otherwise, the result of the first block
        stands for the blocks that are not in memory.
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
        """Return the sum of the results for the blocks in memory."""
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
    """Return the first `size` rows of an array, or of each of several arrays."""
    if isinstance(found, tuple):
        return tuple(array[:size] for array in found)
    return found[:size]
