"""Rows of which some blocks alone exist, for plans: each step of a fit is run and timed."""

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
    """`Rows` whose first blocks stand for all.

    Parameters
    ----------
    basis : Basis
        Q.
    lengths : RowLengths
        Which documents count a row.
    blocks : sequence of MomentStatistics
        The first row blocks, one a thread.
    pool : ThreadPoolExecutor
        Its threads work on the blocks at once.
    known : mapping
        What a step gives of all blocks, where the first blocks cannot stand for the others.
    seconds : dict
        Of each step so far: of the slowest block, or of the sum.
    """

    basis: Basis
    lengths: RowLengths[Lengths]
    blocks: Sequence[MomentStatistics]
    pool: ThreadPoolExecutor
    known: Mapping[str, list[Any]]
    seconds: dict[str, float] = field(default_factory=dict)
    foundation: Any = None  # asked for by kinds that are not planned
    whole_core: bool = True
    halves: bool = False  # their rounds are planned by those of the whole
    keeps_halves: bool = False

    def prepared(self, step: str, function: Callable[..., Any], halves: bool = False) -> Timed:
        """Of the blocks there are."""
        return replace(self, blocks=self._on_all(step, function, ()))

    brought = prepared

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """What is known of all; or rows of the first block, cut to length, for those not there."""
        found = self._on_all(step, function, shared)
        if step in self.known:
            return self.known[step]
        blocks = self.blocks[0].block.step
        sizes = [RowBlock(index, blocks).size(self.basis.n_words) for index in range(blocks)]
        missing = sizes[len(found) :]
        return [*found, *(_first_rows(found[0], size) for size in missing)]

    gathered = each

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Of the blocks there are."""
        found = self._on_all(step, function, shared)
        cut = strips(found, nbytes)
        return tree_sum(enumerate(map(added, cut)), len(cut))

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """On the clock."""
        self.seconds[step], found = timed(lambda: [function(part, *shared) for part in parts])
        return found

    def shared(self, value: Any) -> Any:
        """The value."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """On the clock."""
        self.seconds[step], result = timed(lambda: function(*values))
        return result

    def value(self, handle: Any) -> Any:
        """The handle."""
        return handle

    def _on_all(
        self, step: str, function: Callable[..., Any], shared: tuple[Any, ...]
    ) -> list[Any]:
        self.seconds[step], found = timed_on_all(
            self.pool, lambda block: function(block, *shared), self.blocks
        )
        return found


def _first_rows(found: Any, size: int) -> Any:
    """Of an array, or of each of some."""
    if isinstance(found, tuple):
        return tuple(array[:size] for array in found)
    return found[:size]
