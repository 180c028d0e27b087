"""Rows of a version of a store: a Dask task for each row block, few of them in flight.

Of a small one the steps run in the process of the job.
"""

from __future__ import annotations

import copy
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from distributed import Future
from threadpoolctl import ThreadpoolController

from streaming_moments.models.rows import added, strips, tree_sum
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import result_of, run_bounded, run_in_turn
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import Lengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.storage.operations.windows import StatisticsSource

# Bytes that a job holds beside its process, up to which it is small. A task of Dask costs some
# milliseconds, which is more than a step on so little does, and a fit has a thousand of them.
SMALL = 512 << 20
# Threads that wait for storage, and bytes of row blocks that they read at a time, each of them
# twice: a plan knows of one.
_READERS, _READ_BYTES = 8, 32 << 20


@dataclass(frozen=True, eq=False)
class BlockAddress:
    """A row block of a version of a store, for tasks that read it themselves.

    `halves` says whether the statistics of half of the documents are read as well.
    """

    store: StatisticsSource
    index: int
    halves: bool = False


def load_block(address: BlockAddress) -> Statistics:
    """Sum of a row block over the segments of the version."""
    return address.store.load_block(address.index, address.halves)


BlockSource = BlockAddress | Statistics


@dataclass(frozen=True, eq=False)
class OnCluster:
    """`Rows` of a version of a store on a cluster; what a step keeps stays on the workers.

    totals : of the records; for documents, which of them count a row
    blocks : all row blocks, as addresses that each step reads or as statistics in memory
    in_flight : tasks of all workers at a time
    whole_core : whether a worker can hold the pair counts of all core words
    keep_prepared : whether memory can hold the results of `prepared` for all blocks
    preparing : prepares each block that a step reads, where memory cannot hold all results
    halves, keeps_halves : whether the statistics have halves of the documents, and whether memory
        holds the results of `prepared` for both at once
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
        """Rows of a version: with `keep` read once, at most so many tasks a worker at a time.

        Without `halves` they are as of a store that keeps none.
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
        """Each read by a worker, where it stays."""
        return [run.cluster.client.submit(load_block, one, pure=False) for one in blocks]

    @property
    def basis(self) -> Basis:
        """Q, of counts."""
        basis: Basis = self.foundation.basis
        return basis

    @property
    def lengths(self) -> RowLengths[Lengths]:
        """Which documents count a row."""
        lengths: RowLengths[Lengths] = self.totals
        return lengths

    def each(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Futures."""
        blocks = [([block], *shared) for block in self.blocks]
        return self.calls(step, OnBlocks(function, self.preparing), blocks, keep=True)

    def prepared(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> OnCluster:
        """Left on the workers that made it."""
        rows = replace(self, blocks=self._read_with(halves))
        if not self.keep_prepared:
            return replace(rows, preparing=function)
        return replace(self, blocks=rows.each(step, function))

    def brought(
        self, step: str, function: Callable[[Statistics], Any], halves: bool = False
    ) -> OnCluster:
        """In the process of the job."""
        parts = replace(self, blocks=self._read_with(halves)).gathered(step, function)
        here = {one.name: getattr(self, one.name) for one in fields(self)}
        return RowsHere(**here | {"blocks": parts, "preparing": None, "keeps_halves": True})

    def _read_with(self, halves: bool) -> list[Any]:
        """The blocks; those that are read come with `halves`."""
        return [
            replace(one, halves=halves) if isinstance(one, BlockAddress) else one
            for one in self.blocks
        ]

    def gathered(self, step: str, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Results, as they finish."""
        blocks = [([block], *shared) for block in self.blocks]
        return self.calls(step, OnBlocks(function, self.preparing), blocks)

    def summed(
        self, step: str, function: Callable[..., Any], *shared: Any, nbytes: int
    ) -> Future[Any]:
        """A task adds up the blocks of a strip, others two sums each as soon as there are two."""
        each = [(strip, *shared) for strip in strips(self.blocks, nbytes)]
        run, call = self.run, OnBlocks(function, self.preparing)
        in_turn = run_in_turn(
            run.cluster, call, each, self.in_flight, run.progress, step, keep=True
        )
        with closing(in_turn) as sums:
            total: Future[Any] = tree_sum(sums, len(each), self._added)
            return total

    def _added(self, left: Future[Any], right: Future[Any]) -> Future[Any]:
        # before further strips: it leaves one sum of two
        return self.run.cluster.client.submit(operator.add, left, right, pure=False, priority=1)

    def over(
        self, step: str, function: Callable[..., Any], parts: Sequence[Any], *shared: Any
    ) -> list[Any]:
        """Futures."""
        each = [(function, part, *shared) for part in parts]
        return self.calls(step, on_aligned, each, keep=True)

    def shared(self, value: Any) -> Future[Any]:
        """On one worker, from which the others have it."""
        placed: Future[Any] = self.run.cluster.client.scatter(value, hash=False)
        return placed

    def once(self, step: str, function: Callable[..., Any], *values: Any) -> Future[Any]:
        """A task with all threads of a worker."""
        threads = self.run.cluster.threads
        future = self.run.cluster.client.submit(alone, threads, function, *values, pure=False)
        finished: Future[Any] = result_of(self.run.cluster, future, step, keep=True)
        return finished

    def value(self, handle: Future[Any]) -> Any:
        """Brought here."""
        return result_of(self.run.cluster, handle, "reading a result")

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        keep: bool = False,
        in_flight: int | None = None,
    ) -> list[Any]:
        """Results of `function(*call)`, or futures, as of `run_bounded`."""
        at_a_time, run = in_flight or self.in_flight, self.run
        return run_bounded(run.cluster, function, calls, at_a_time, run.progress, step, keep)


@dataclass(frozen=True, eq=False)
class RowsHere(OnCluster):
    """`Rows` of a small version: no step is a task, and each has the bits that tasks give.

    Handles are the values themselves.
    """

    @staticmethod
    def loaded(blocks: Sequence[BlockAddress], run: Run) -> list[Any]:
        """Read at once, several at a time."""
        nbytes = max(one.store.layout.block_bytes for one in blocks)
        with ThreadPoolExecutor(max(1, min(_READERS, _READ_BYTES // (2 * nbytes)))) as readers:
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


@dataclass(frozen=True)
class OnBlocks:
    """A function of statistics, summed over blocks, as a task that bears its name.

    A block is read when its turn comes, unless it was kept, and prepared if anything does.
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
    """Call a function with all threads of a worker: no other task runs beside it."""
    with _libraries(len(sys.modules)).limit(limits=threads):
        return on_aligned(function, *values)


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """Those of BLAS that are loaded; looked for anew once a module came, with which one may."""
    return ThreadpoolController()


def on_aligned(function: Callable[..., Any], *values: Any) -> Any:
    """Call a function with values whose arrays lie as they did where they were made."""
    return function(*map(aligned, values))


def aligned(value: Any) -> Any:
    """A value whose arrays, in lists and dataclasses too, all begin at a multiple of 8 bytes.

    Out of a message from another worker they begin anywhere, and NumPy multiplies such arrays
    without BLAS: with other last bits.

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
        object.__setattr__(found, name, array)  # frozen, and checked when it was made
    return found


def _loaded(source: BlockSource) -> Statistics:
    return load_block(source) if isinstance(source, BlockAddress) else source


def _one_thread() -> AbstractContextManager[Any]:
    """BLAS with one thread, as tasks have it: bits of a product depend on the threads."""
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited
