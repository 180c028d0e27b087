"""Rows of a small version of a store: the steps of a fit run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from streaming_moments.models.rows import strips, tree_sum
from streaming_moments.pipelines.cluster.rows_on_cluster import (
    BlockAddress,
    OnBlocks,
    OnCluster,
    blas_libraries,
    load_block,
)
from streaming_moments.pipelines.cluster.run import Run

# Bytes that a job holds beside its process, up to which it is small. A task of Dask costs some
# milliseconds, which is more than a step on so little does, and a fit has a thousand of them.
SMALL = 512 << 20
_READERS = 8  # threads that wait for storage


@dataclass(frozen=True, eq=False)
class RowsHere(OnCluster):
    """`Rows` of a small version: no step is a task, and each has the bits that tasks give.

    Handles are the values themselves.
    """

    @staticmethod
    def loaded(blocks: Sequence[BlockAddress], run: Run) -> list[Any]:
        """Read at once, several at a time."""
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(load_block, blocks))

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """In the order in which a cluster adds up."""
        call = OnBlocks(function, self.preparing)
        each = [(strip, *shared) for strip in strips(self.blocks, nbytes)]
        with _one_thread():
            return tree_sum(enumerate(self._in_turn(step, call, each)), len(each))

    def shared(self, value: Any) -> Any:
        """The value."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """At once."""
        with _one_thread():
            return function(*values)

    def value(self, handle: Any) -> Any:
        """The handle."""
        return handle

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        keep: bool = False,
        in_flight: int | None = None,
    ) -> list[Any]:
        """One after another."""
        with _one_thread():
            return list(self._in_turn(step, function, calls))

    def _in_turn(
        self, step: str, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        for number, call in enumerate(calls, 1):
            result = function(*call)
            self.run.progress.advance(step, number, len(calls))
            yield result
            del result  # who took it says how long it is kept


def rows_for(nbytes: int) -> type[OnCluster]:
    """Who runs the steps of a job that holds so many bytes beside its process."""
    return RowsHere if nbytes <= SMALL else OnCluster


def _one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread, as tasks have it: bits of a product depend on the threads."""
    limited: AbstractContextManager[Any] = blas_libraries(len(sys.modules)).limit(limits=1)
    return limited
