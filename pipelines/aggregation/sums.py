"""Sums that a worker process has added up for the open group; its threads share them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from distributed import Worker, WorkerPlugin, get_worker
from distributed.protocol.serialize import to_serialize
from numpy.typing import NDArray

from streaming_moments.errors import SumExceeded
from streaming_moments.pipelines.aggregation.bundles import Receipt
from streaming_moments.pipelines.aggregation.exchange import (
    REDUCE,
    TAKE,
    Source,
    SumsLost,
    add_theirs,
    ring_from,
)
from streaming_moments.statistics.base import Prepared, Sums
from streaming_moments.storage.log.layout import SegmentLayout

NAME = "streaming-moments-sums"
_INT32 = np.iinfo(np.int32)
_ROWS = 1024  # read this many rows at a time to find the largest entry


class SumsAstray(Exception):
    """The sums for this task are deleted or closed, so another task counts its shards."""


@dataclass(frozen=True)
class Opening:
    """Address of the sums to which a task adds.

    owner : job that owns the sums
    group : number of this pass of the group; later passes and groups have larger numbers
    epoch : how often the sums of the group were frozen; a task of an earlier epoch is too late
    blocks : row blocks to add up
    least_limit : smallest memory limit of a worker in the plan, in bytes
    """

    owner: str
    group: int
    epoch: int
    blocks: range
    least_limit: int = 0


@dataclass(frozen=True)
class Frozen:
    """Description of frozen sums, to which nothing more is added.

    nonce : identifies the sums
    token : identifies this freeze; requests for rows must name it
    included : numbers of the tasks whose shards were added
    bound : largest possible entry of the sums
    """

    nonce: str
    token: str
    included: tuple[int, ...]
    bound: float = 0.0


@dataclass(eq=False)
class GroupSums:
    """Sums of one group, or one pass of a group, in one process.

    The nonce identifies the sums. If they are lost, their shards are counted again elsewhere. The
    token identifies the last freeze. Sums that are open to tasks have no token.
    """

    layout: SegmentLayout
    opening: Opening
    epoch: int
    nonce: str = field(default_factory=lambda: uuid.uuid4().hex)
    included: dict[int, Receipt] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    token: str = ""
    bound: float = 0.0  # upper bound of every entry once all running additions are done
    blocks: dict[int, Sums] = field(init=False)
    _adding: float = 0.0  # upper bound of what the running additions add to an entry
    _locks: dict[int, Lock] = field(init=False)
    _bound_lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        foundation, block = self.layout.foundation, self.layout.block
        self.blocks = {index: foundation.sums(block(index)) for index in self.opening.blocks}
        self._locks = {index: Lock() for index in self.opening.blocks}

    def add(self, batches: Sequence[Prepared], most_bytes: int) -> None:
        """Add batches to every block; join small batches first, up to `most_bytes` together.

        Raises SumsAstray if the sums are deleted, and SumExceeded if a sum could exceed 2^62. In
        that case nothing is added.
        """
        self._each_lump(batches, most_bytes, lambda block, lump: block.add([lump]))

    def subtract(self, batches: Sequence[Prepared], most_bytes: int) -> None:
        """Subtract batches exactly; raises the same errors as `add`."""
        self._each_lump(batches, most_bytes, lambda block, lump: block.subtract([lump]))

    def give_up(self) -> None:
        """Free the arrays to make room; waits for tasks that are adding to a block."""
        for index in self.opening.blocks:
            with self._locks[index]:
                self.blocks.pop(index, None)

    def _each_lump(
        self,
        batches: Sequence[Prepared],
        most_bytes: int,
        work: Callable[[Sums, Prepared], None],
    ) -> None:
        own = float(sum(batch.bound for batch in batches))
        try:
            self._make_room(own)
        except SumExceeded:
            if len(batches) < 2:
                raise
            # After the first half is added, the bound is computed again from the true sums. They
            # are smaller than the old bound, so the second half may fit.
            middle = len(batches) // 2
            for part in (batches[:middle], batches[middle:]):
                self._each_lump(part, most_bytes, work)
            return
        for lump in self.layout.foundation.joined(batches, most_bytes):
            self._each_block(lump, work)
            # Free this lump of batches before the next one is made: for some kinds it is as large
            # as the sums of all blocks.
            del lump
        with self._bound_lock:
            self._adding -= own

    def _make_room(self, gain: float) -> None:
        """Raise the bound of the sums by the bound of the next batches; errors as in `add`."""
        foundation = self.layout.foundation
        with self._bound_lock:
            try:
                foundation.require_bounded(self.bound + gain)
            except SumExceeded:
                foundation.require_bounded(gain)
                # Replace the bound by a smaller one, from the true sums. Added up, the bounds of
                # batches are far too high: they assume, for example, that all tokens of a document
                # are one word.
                self.bound = self._adding + self._largest()
                foundation.require_bounded(self.bound + gain)
            self.bound += gain
            self._adding += gain

    def _largest(self) -> float:
        """Return the largest absolute entry of any block, read a few rows at a time."""
        foundation, most = self.layout.foundation, 0
        for index in self.opening.blocks:
            rows = max(shape[0] for shape in foundation.shapes(self.layout.block(index)).values())
            with self._locks[index]:
                if index not in self.blocks:
                    raise SumsAstray(self.nonce)
                for start in range(0, rows, _ROWS):
                    found = self.blocks[index].rows(slice(start, start + _ROWS)).values()
                    most = max(most, *(_magnitude(array) for array in found))
        return float(most)

    def _each_block(self, lump: Prepared, work: Callable[[Sums, Prepared], None]) -> None:
        """Call `work` for every block with the lump, first for blocks that no other thread uses."""
        waiting = list(self.opening.blocks)
        while waiting:
            index = next((i for i in waiting if self._locks[i].acquire(blocking=False)), None)
            if index is None:
                index = waiting[0]
                self._locks[index].acquire()
            try:
                waiting.remove(index)
                if index not in self.blocks:
                    raise SumsAstray(self.nonce)
                work(self.blocks[index], lump)
            finally:
                self._locks[index].release()


class ProcessSums(WorkerPlugin):
    """All sums of a worker process, by the job that owns them."""

    name = NAME
    idempotent = True  # Dask keeps the plugin of an earlier job, so that all jobs share one object

    def setup(self, worker: Worker) -> None:
        """Start without sums, and let other workers fetch rows and request additions."""
        self._worker = worker
        self._reducing = asyncio.Lock()
        self._held: dict[str, GroupSums] = {}
        self._released: set[str] = set()
        self._lock = Lock()
        worker.handlers[TAKE] = self.take
        worker.handlers[REDUCE] = self.reduce

    def teardown(self, worker: Worker) -> None:
        """Delete the sums."""
        self._held.clear()

    @contextmanager
    def counting(self, opening: Opening, layout: SegmentLayout, number: int) -> Iterator[GroupSums]:
        """Yield the sums to which task `number` may add; delete them if the task fails meanwhile.

        Raises SumsAstray if the group is closed, or was frozen after the task was sent.
        """
        sums = self._entered(opening, layout, number)
        try:
            yield sums
        except BaseException:
            self.discard(opening.owner, sums.nonce)
            raise

    def finished(self, sums: GroupSums, opening: Opening, number: int, receipt: Receipt) -> None:
        """Record what a task added; raises SumsAstray if the sums were frozen or deleted."""
        with self._lock:
            if self._held.get(opening.owner) is not sums or sums.epoch != opening.epoch:
                raise SumsAstray(number)
            sums.running.discard(number)
            sums.included[number] = receipt

    def freeze(self, owner: str, group: int, epoch: int) -> Frozen | None:
        """Freeze the sums: they refuse tasks of epochs before `epoch`.

        Readers with the token of an earlier freeze are refused, too.

        Returns None if the group has no sums. Deletes sums to which an abandoned task is
        adding at this moment.
        """
        with self._lock:
            sums = self._held.get(owner)
            if sums is None or sums.opening.group != group:
                return None
            sums.epoch = epoch
            if sums.running:
                self._give_up(owner)
                return None
            sums.token = uuid.uuid4().hex
            return Frozen(sums.nonce, sums.token, tuple(sums.included), sums.bound)

    def discard(self, owner: str, nonce: str) -> None:
        """Delete the sums of the owner if they have that nonce."""
        with self._lock:
            if owner in self._held and self._held[owner].nonce == nonce:
                self._give_up(owner)

    def release(self, owner: str) -> None:
        """Delete the sums of a job, and refuse its later tasks."""
        with self._lock:
            self._give_up(owner)
            self._released.add(owner)

    def keep_only(self, owners: Set[str]) -> None:
        """Delete the sums of all jobs, except jobs whose client is in `owners`.

        The name of a job begins with the id of its client, before a slash.
        """
        with self._lock:
            for owner in list(self._held):
                if owner.partition("/")[0] not in owners:
                    self._give_up(owner)

    def rows(
        self, owner: str, token: str, index: int, rows: slice
    ) -> dict[str, NDArray[np.int64]] | None:
        """Return some rows of a block of frozen sums.

        Returns None if the sums are lost, or have been frozen again since they got this token.
        """
        sums = self._held.get(owner)
        if sums is None or not token or sums.token != token:
            return None
        block = sums.blocks.get(index)
        return None if block is None else block.rows(rows)

    async def take(
        self, owner: str, token: str, index: int, start: int, stop: int
    ) -> dict[str, Any] | None:
        """Return the result of `rows` for another worker.

        An array is sent with 4 bytes for each entry if every entry fits into them.
        """
        found = self.rows(owner, token, index, slice(start, stop))
        return None if found is None else _sent(found)

    async def reduce(
        self, owner: str, sources: Sequence[Source], index: int, start: int, stop: int
    ) -> dict[str, Any] | None:
        """Add up some rows over all workers, and return them to the worker that writes their block.

        Adds up one message at a time, which bounds the memory. Returns None if the sums of any
        worker are lost.
        """
        here, others = ring_from(sources, self._worker.address)
        async with self._reducing:
            mine = here and self.rows(owner, here[1], index, slice(start, stop))
            if not mine:
                return None
            sums = own(mine)
            try:
                for address, token in others:
                    asked = {"op": TAKE, "owner": owner, "token": token, "index": index}
                    await add_theirs(self._worker, address, asked, start, sums)
            except SumsLost:
                return None
            return _sent(sums)

    def _give_up(self, owner: str) -> None:
        """Delete sums, and free their arrays at once.

        Otherwise a running task would hold old arrays in memory beside new ones.
        """
        sums = self._held.pop(owner, None)
        if sums is not None:
            sums.give_up()

    def _entered(self, opening: Opening, layout: SegmentLayout, number: int) -> GroupSums:
        owner = opening.owner
        with self._lock:
            sums = self._held.get(owner)
            place = None if sums is None else (sums.opening.group, sums.epoch)
            late = place is not None and (opening.group, opening.epoch) < place
            if owner in self._released or late:
                raise SumsAstray(number)
            if sums is not None and number in sums.running:
                # the same task already runs here: do not wait for it, and start new sums
                sums = None
            if sums is None or sums.opening.group != opening.group:
                self._give_up(owner)
                sums = self._held[owner] = GroupSums(layout, opening, opening.epoch)
            sums.epoch, sums.token = opening.epoch, ""
            if number not in sums.included:
                sums.running.add(number)
            return sums


def process_sums(worker: Worker | None = None) -> ProcessSums:
    """Return the sums of the process in which the task runs."""
    plugin: Any = (worker or get_worker()).plugins[NAME]
    held: ProcessSums = plugin
    return held


def own(arrays: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """Return arrays that the caller may change: views are copied."""
    return {name: np.require(array, requirements="O") for name, array in arrays.items()}


def _sent(arrays: Mapping[str, NDArray[np.int64]]) -> dict[str, Any]:
    return {name: to_serialize(_narrow(array)) for name, array in arrays.items()}


def _magnitude(array: NDArray[np.int64]) -> int:
    return max(int(array.max(initial=0)), -int(array.min(initial=0)))


def _narrow(array: NDArray[np.int64]) -> NDArray[Any]:
    fits = not array.size or (array.min() >= _INT32.min and array.max() <= _INT32.max)
    return array.astype(np.int32) if fits else np.ascontiguousarray(array)
