"""Rows of a version of a store: a step of a job runs as one Dask task for each row block.

Few tasks run at a time. For a small version, the steps run in the process of the job.
"""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from distributed import Future
from threadpoolctl import ThreadpoolController

from streaming_moments.models.rows import added, strips, tree_sum
from streaming_moments.pipelines.cluster.memory import blocks_at_once
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import result_of, run_bounded, run_in_turn, task_key
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.storage.operations.windows import StatisticsSource

# A job that needs at most this many bytes beside its process is small and runs without the cluster.
# A task of Dask costs some milliseconds, more than a step on so little data, and a fit has a
# thousand steps.
SMALL = 512 << 20
# copies of a row block in memory while it is read: from the files, and as their sum
_READ_COPIES = 2


@dataclass(frozen=True, eq=False)
class BlockAddress:
    """Place of a row block in a version of a store, for tasks that read the block themselves.

    `halves` decides whether the statistics of one half of the documents are read as well.
    """

    store: StatisticsSource
    index: int
    halves: bool = False


def load_block(address: BlockAddress) -> Statistics:
    """Return the sum of a row block over the segments of the version."""
    return address.store.load_block(address.index, address.halves)


BlockSource = BlockAddress | Statistics


@dataclass(frozen=True, eq=False)
class OnCluster:
    """`Rows` of a version of a store on a cluster; results of a step stay on the workers.

    totals : totals of the records. For documents, they determine how many documents the counts of
        a row include
    blocks : all row blocks: addresses from which each step reads them, or statistics in memory
    in_flight : largest number of tasks on all workers at a time
    whole_core : whether a worker can hold the pair counts of all core words
    keep_prepared : whether memory can hold the results of `prepared` for all blocks
    preparing : function of `prepared` that each step calls for each block that it reads, if memory
        cannot hold all results
    halves : whether the statistics of one half of the documents can be read as well
    keeps_halves : whether memory can hold the results of `prepared` for both halves at once
    """

    foundation: Any
    totals: Any
    blocks: list[BlockAddress | Future[Any]]
    run: Run
    in_flight: int
    whole_core: bool = True
    keep_prepared: bool = True
    preparing: Callable[[Statistics], Any] | None = None
    halves: bool = False
    keeps_halves: bool = False

    @classmethod
    def of(
        cls,
        store: StatisticsSource,
        totals: Any,
        run: Run,
        per_worker: int,
        keep: bool = False,
        whole_core: bool = True,
        keep_prepared: bool = True,
        keeps_halves: bool = False,
        halves: bool = True,
    ) -> OnCluster:
        """Return the rows of a version, with at most `per_worker` tasks on a worker at a time.

        With `keep`, the rows are read once and stay in memory. Without `halves`, the rows equal
        those of a store that counts no half of the documents separately.
        """
        halves = halves and store.halves
        places = range(store.row_blocks)
        blocks: list[Any] = [BlockAddress(store, index, keep and halves) for index in places]
        if keep:
            blocks = cls.loaded(blocks, run)
        in_flight = run.cluster.workers * per_worker
        foundation: Any = store.layout.foundation
        return cls(
            foundation,
            totals,
            blocks,
            run,
            in_flight,
            whole_core,
            keep_prepared,
            halves=halves,
            keeps_halves=keeps_halves,
        )

    @staticmethod
    def loaded(blocks: Sequence[BlockAddress], run: Run) -> list[Any]:
        """Read each block on a worker, which keeps it in memory."""
        submit, step = run.cluster.client.submit, "loading row blocks"
        return [submit(load_block, one, pure=False, key=task_key(step)) for one in blocks]

    @property
    def in_memory(self) -> bool:
        """Whether all row blocks are in memory."""
        return not any(isinstance(one, BlockAddress) for one in self.blocks)

    @property
    def basis(self) -> Basis:
        """Basis (matrix Q) of a store of documents."""
        basis: Basis = self.foundation.basis
        return basis

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Totals of the records.

        They determine how many documents the counts of each row include.
        """
        lengths: RowLengths[Lengths] = self.totals
        return lengths

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call the function for each block, and return futures of the results."""
        blocks = [([block], *shared) for block in self.blocks]
        return self.calls(step, OnBlocks(function, self.preparing), blocks, keep=True)

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> OnCluster:
        """Return rows whose steps get `function(statistics)` instead of the statistics.

        The results of `function` stay on the workers. If memory cannot hold all results, each step
        computes them again.
        """
        rows = replace(self, blocks=self._read_with(halves))
        if not self.keep_prepared:
            return replace(rows, preparing=function)
        return replace(self, blocks=rows.each(step, function))

    def brought(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> OnCluster:
        """Return rows in this process that hold `function(statistics)` for each block."""
        parts = replace(self, blocks=self._read_with(halves)).gathered(step, function)
        here = {one.name: getattr(self, one.name) for one in fields(self)}
        return RowsHere(**here | {"blocks": parts, "preparing": None, "keeps_halves": True})

    def _read_with(self, halves: bool) -> list[Any]:
        """Return the blocks; sets `halves` in the address of each block that is not in memory."""
        return [
            replace(one, halves=halves) if isinstance(one, BlockAddress) else one
            for one in self.blocks
        ]

    def gathered(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Call the function for each block, and return the results in this process."""
        blocks = [([block], *shared) for block in self.blocks]
        return self.calls(step, OnBlocks(function, self.preparing), blocks)

    def summed(
        self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int
    ) -> Future[Any]:
        """Add up the results for all blocks.

        Each of the first tasks adds up the results for several blocks (a strip). Further tasks add
        two sums each.
        """
        each = [(strip, *shared) for strip in strips(self.blocks, nbytes)]
        run, call = self.run, OnBlocks(function, self.preparing)
        in_turn = run_in_turn(
            run.cluster, call, each, self.in_flight, run.progress, step, keep=True
        )
        with closing(in_turn) as sums:
            total: Future[Any] = tree_sum(sums, len(each), self._added)
            return total

    def _added(self, left: Future[Any], right: Future[Any]) -> Future[Any]:
        # Run additions before further strips are summed, because each addition frees one of its two
        # sums.
        submit, key = self.run.cluster.client.submit, task_key("adding sums")
        return submit(operator.add, left, right, pure=False, priority=1, key=key)

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """Call the function for each of `parts`, and return futures of the results."""
        each = [(function, part, *shared) for part in parts]
        return self.calls(step, on_aligned, each, keep=True)

    def shared(self, value: Any) -> Future[Any]:
        """Send the value to one worker, from which other workers get the value."""
        placed: Future[Any] = self.run.cluster.client.scatter(value, hash=False)
        return placed

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Future[Any]:
        """Run a task with all threads of a worker."""
        threads = self.run.cluster.threads
        submit, key = self.run.cluster.client.submit, task_key(step)
        future = submit(alone, threads, function, *values, pure=False, key=key)
        finished: Future[Any] = result_of(self.run.cluster, future, step, keep=True)
        return finished

    def value(self, handle: Future[Any]) -> Any:
        """Fetch the result of the future `handle` to this process."""
        return result_of(self.run.cluster, handle, "reading a result")

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        keep: bool = False,
        in_flight: int | None = None,
    ) -> list[Any]:
        """Return the results of `function(*call)`, or with `keep` futures; see `run_bounded`."""
        at_a_time, run = in_flight or self.in_flight, self.run
        return run_bounded(run.cluster, function, calls, at_a_time, run.progress, step, keep)


@dataclass(frozen=True, eq=False)
class RowsHere(OnCluster):
    """`Rows` of a small version: steps run in this process instead of as tasks.

    The results equal those of tasks to the last bit. Methods that return futures on a cluster
    return the values themselves here.
    """

    @staticmethod
    def loaded(blocks: Sequence[BlockAddress], run: Run) -> list[Any]:
        """Read all blocks, several at a time."""
        store, halves = blocks[0].store, blocks[0].halves
        return [
            block
            for indices in blocks_at_once(store.layout, _READ_COPIES)
            for block in store.load_blocks(indices, halves)
        ]

    def summed(self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int) -> Any:
        """Add up the results in the same order as on a cluster."""
        call = OnBlocks(function, self.preparing)
        each = [(strip, *shared) for strip in strips(self.blocks, nbytes)]
        with _one_thread():
            return tree_sum(enumerate(self._in_turn(step, call, each)), len(each))

    def shared(self, value: Any) -> Any:
        """Return the value itself, because all steps run in this process and not on workers."""
        return value

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Any:
        """Call the function in this process, and return its result."""
        with _one_thread():
            return function(*values)

    def value(self, handle: Any) -> Any:
        """Return the handle itself, because it is the value."""
        return handle

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        keep: bool = False,
        in_flight: int | None = None,
    ) -> list[Any]:
        """Call the function for each of `calls`, one after another."""
        with _one_thread():
            return list(self._in_turn(step, function, calls))

    def _in_turn(
        self, step: str, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[Any]:
        for number, call in enumerate(calls, 1):
            result = function(*call)
            self.run.progress.advance(step, number, len(calls))
            yield result
            del result  # only the caller should hold the result, so that its memory can be freed


def rows_for(nbytes: int) -> type[OnCluster]:
    """Return the class that runs the steps of a job which holds this many bytes of data."""
    return RowsHere if nbytes <= SMALL else OnCluster


@dataclass(frozen=True)
class OnBlocks:
    """Call a function on the statistics of each block, and add up the results.

    The Dask task is named after the function. A block that is not in memory is read when its turn
    comes. With `preparing`, the function gets the prepared block instead of the statistics.
    """

    function: Callable[..., Any]
    preparing: Callable[[Statistics], Any] | None = None

    @property
    def __name__(self) -> str:
        return self.function.__name__

    def __call__(self, sources: Sequence[BlockSource], *shared: Any) -> Any:
        known = [aligned(one) for one in shared]
        return added(self.function(self._given(source), *known) for source in sources)

    def _given(self, source: BlockSource) -> Any:
        block = _loaded(source)
        return block if self.preparing is None else self.preparing(block)


def alone(threads: int, function: Callable[..., Any], *values: Any) -> Any:
    """Call a function with all threads of a worker, while no other task runs there."""
    with _libraries(len(sys.modules)).limit(limits=threads):
        return on_aligned(function, *values)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Return the loaded BLAS libraries; search again after an import, which may load one."""
    return ThreadpoolController()


def on_aligned(function: Callable[..., Any], *values: Any) -> Any:
    """Align the arrays in the values, and call a function with them; see `aligned`."""
    return function(*map(aligned, values))


def aligned(value: Any) -> Any:
    """Return a value whose arrays all begin at a multiple of 8 bytes, in containers as well.

    Arrays from a message of another worker may begin at any address. NumPy multiplies such arrays
    without BLAS, so the last bits of the product would differ.

    Examples
    --------
    >>> import numpy as np
    >>> odd = np.frombuffer(bytes(17), np.uint8)[1:].view(np.float64)
    >>> odd.flags.aligned, aligned([odd])[0].flags.aligned
    (False, True)
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy(order="K")
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(map(aligned, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    moved = {one.name: aligned(getattr(value, one.name)) for one in fields(value)}
    if all(array is getattr(value, name) for name, array in moved.items()):
        return value
    found = copy.copy(value)
    for name, array in moved.items():
        # bypass the constructor: the dataclass is frozen, and `value` is already validated
        object.__setattr__(found, name, array)
    return found


def _loaded(source: BlockSource) -> Statistics:
    return load_block(source) if isinstance(source, BlockAddress) else source


def _one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS to one thread, as in tasks: the number of threads changes the last bits."""
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited
