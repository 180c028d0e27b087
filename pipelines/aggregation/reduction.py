"""Add up the sums of all workers, one row block at a time, and write each block."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Future, Worker, get_worker
from distributed.utils import sync
from numpy.typing import NDArray

from streaming_moments.pipelines.aggregation.aggregation import Gathering
from streaming_moments.pipelines.aggregation.exchange import (
    REDUCE,
    TAKE,
    Source,
    SumsLost,
    add_theirs,
    ring_from,
)
from streaming_moments.pipelines.aggregation.sums import Opening, own, process_sums
from streaming_moments.pipelines.cluster.cluster import Cluster
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import (
    FinishedTasks,
    cancel,
    outcome_of,
    required,
    task_key,
)
from streaming_moments.pipelines.cluster.worker_loss import MORE_MEMORY, WorkersLost
from streaming_moments.pipelines.cluster.worker_rpc import deaths_of
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.segments.segments import Segment, SegmentWriter
from streaming_moments.storage.store.store import MomentStore

STEP = "adding up row blocks"

# The job fails if one row block causes more deaths of workers than this. It also fails if workers
# cannot fetch sums from each other more often than this in a row, although no worker died.
_LOSSES = 10
# The job fails if more workers than this die one after the other while no new row block is written.
_DEATHS = 20
# A worker adds up at most this many times the rows that it would have if all had equally many.
_UNEVEN = 1.05


@dataclass
class Reduction:
    """Row blocks of one segment while they are added up and written.

    If a call of `run` loses sums, it stops and its segment is dropped. The next call writes to a
    new segment, because a worker that Dask considers dead may still be alive. Such a worker may
    write sums that have changed since. Only files of calls without losses are sealed. Every writer
    of these files writes the same content, because no sums change after such a call.

    If a worker dies, others count its shards again, so a single death does not end the job. The
    death is charged to the row blocks that the worker was writing, because a block that needs too
    much memory kills each of its writers. Workers can also die at a different block each time. So
    the job also fails after too many deaths in which no further block was written.

    written : segment and files of each finished row block
    fruitless : consecutive calls that lost sums although no shard had to be counted again
    charged : number of deaths charged to each row block
    reached : row blocks that any call has written
    deaths : number of losses of sums because a writer died, since the last addition to `reached`
    """

    store: MomentStore
    writer: SegmentWriter = field(init=False)
    written: dict[int, tuple[str, tuple[FileRecord, ...]]] = field(default_factory=dict)
    fruitless: int = 0
    charged: Counter[int] = field(default_factory=Counter)
    reached: set[int] = field(default_factory=set)
    deaths: int = 0

    def __post_init__(self) -> None:
        self.writer = self.store.new_segment()

    def run(self, gathering: Gathering, opening: Opening, sources: Sequence[Source]) -> bool:
        """Add up and write the blocks of a pass; return False if sums were lost.

        After such a loss, none of these blocks counts as written.

        Raises WorkersLost if one row block kills workers, if workers die one after the other, or if
        they repeatedly cannot connect to each other.
        """
        cluster, progress = gathering.run.cluster, gathering.run.progress
        all_blocks = self.writer.layout.row_blocks
        running: dict[Future[Any], int] = {}
        finished = FinishedTasks(cluster)
        blocks, workers = len(opening.blocks), max(1, len(sources))
        waiting = enumerate(opening.blocks)
        try:
            while True:
                while len(running) < cluster.workers * cluster.threads:
                    place, index = next(waiting, (blocks, 0))
                    if place == blocks:
                        break
                    pieces = pieces_of(place, blocks, workers)
                    future = cluster.client.submit(
                        write_block,
                        index,
                        self.writer,
                        opening.owner,
                        tuple(sources),
                        pieces,
                        pure=False,
                        key=task_key("adding up row blocks"),
                        workers=sources[index % len(sources)][0] if sources else None,
                        allow_other_workers=bool(sources),
                    )
                    running[future] = index
                    finished.add(future)
                if not running:
                    self.fruitless = 0
                    return True
                future = finished.next()
                outcome = outcome_of(cluster, future)
                if isinstance(outcome, SumsLost):
                    # do not wait for the other tasks: they may try for seconds to reach the dead
                    # worker, and the blocks that they write are dropped
                    self._give_up(opening.blocks, outcome)
                    self._charge(cluster, running, running[future], outcome)
                    return False
                index = running.pop(future)
                self.written[index] = (self.writer.id, required(outcome, STEP))
                if index not in self.reached:
                    self.reached.add(index)
                    self.deaths = 0
                progress.advance(STEP, len(self.written), all_blocks)
        finally:
            cancel(cluster, running)

    def _give_up(self, blocks: range, loss: SumsLost) -> None:
        self.fruitless += 1
        if self.fruitless > _LOSSES:
            raise WorkersLost(
                f"workers could not fetch sums from each other {self.fruitless} times in a row: "
                f"{loss}. Make sure that each worker can connect to every other one, and run the "
                "job again"
            ) from loss
        for index in blocks:
            self.written.pop(index, None)
        self.writer = self.store.new_segment()

    def _charge(
        self, cluster: Cluster, running: Mapping[Future[Any], int], failed: int, loss: SumsLost
    ) -> None:
        deaths = deaths_of(cluster.client, running)
        died_of = Counter({index: deaths.get(future.key, 0) for future, index in running.items()})
        # if the dead worker was not writing a block, attribute its death to the block that needed
        # its sums
        self.charged.update(+died_of or {failed: 1})
        self.deaths += bool(+died_of)
        (index, losses), beside = self.charged.most_common(1)[0], ""
        if losses <= _LOSSES:
            losses, beside = self.deaths, " or of other blocks"
        if losses > (_DEATHS if beside else _LOSSES):
            raise WorkersLost(
                f"the workers died {losses} times while {STEP}, apparently because of row block "
                f"{index}{beside}.",
                MORE_MEMORY,
            ) from loss

    def seal(
        self, run: Run, totals: Any, shards: Sequence[ShardRecord], dates: DateRange | None
    ) -> Segment:
        """Copy row blocks that are in other segments into this segment, and seal it.

        Errors as in `SegmentWriter.seal`.
        """
        elsewhere = [part for part in self.written.values() if part[0] != self.writer.id]
        calls = [(self.writer, *part) for part in elsewhere]
        run.calls("copying row blocks", SegmentWriter.take_over, calls, run.cluster.threads)
        files = [record for _, (_, part) in sorted(self.written.items()) for record in part]
        return self.writer.seal(totals, shards, files, dates)


def pieces_of(place: int, blocks: int, workers: int) -> int:
    """Return the number of pieces in which row block `place` of `blocks` is added up.

    A different worker adds up each piece. As many blocks as divide evenly among the workers stay
    whole. Each of the last blocks is cut into the fewest pieces that give all workers about the
    same number of rows. With eight blocks or more, no worker receives over 20% more than the
    average, or over one block more than it, whichever is larger.

    Examples
    --------
    >>> [pieces_of(place, 8, workers=6) for place in range(8)]
    [1, 1, 1, 1, 1, 1, 3, 3]
    >>> pieces_of(0, 8, workers=8), pieces_of(0, 10, workers=256)
    (1, 49)
    """
    rest = blocks % workers
    if place < blocks - rest:
        return 1
    pieces = -(-workers // rest)
    while -(-rest * pieces // workers) * workers > _UNEVEN * rest * pieces:
        pieces += 1
    return pieces


def write_block(
    index: int,
    writer: SegmentWriter,
    owner: str,
    sources: Sequence[Source],
    pieces: int,
) -> tuple[FileRecord, ...]:
    """Add up the sums of all workers for one row block, and write the block to the segment.

    If there are several pieces, a different worker adds up each piece, and this worker collects
    the pieces. Raises SumsLost if a worker or its sums are lost.
    """
    worker, foundation, block = get_worker(), writer.layout.foundation, writer.layout.block(index)
    here, others = ring_from(sources, worker.address)
    sums: dict[str, NDArray[np.int64]] = {}
    if here is not None and pieces == 1:
        sums = process_sums(worker).rows(owner, here[1], index, slice(None)) or {}
        if not sums:
            raise SumsLost(worker.address)
        if others:
            sums = own(sums)
    else:
        shapes = foundation.shapes(block)
        sums = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    if pieces == 1:
        for address, token in others:
            asked = {"op": TAKE, "owner": owner, "token": token, "index": index}
            sync(worker.loop, add_theirs, worker, address, asked, 0, sums)
    else:
        sync(worker.loop, _collect, worker, owner, index, sources, pieces, sums)
    # Pass views, because writing makes the arrays that it gets read-only. Pass empty totals,
    # because a block is written without them.
    arrays = {name: array[:] for name, array in sums.items()}
    return writer.write_block(foundation.statistics(block, foundation.totals({}), arrays))


async def _collect(
    worker: Worker,
    owner: str,
    index: int,
    sources: Sequence[Source],
    pieces: int,
    sums: Mapping[str, NDArray[np.int64]],
) -> None:
    """Let several workers add up rows of a block, one piece each, and collect the pieces."""
    rows = max(len(array) for array in sums.values())
    edges = [rows * piece // pieces for piece in range(pieces + 1)]
    asked = {"op": REDUCE, "owner": owner, "index": index, "sources": sources}
    collected = [
        add_theirs(
            worker,
            sources[(index * pieces + piece) % len(sources)][0],
            asked,
            start,
            {name: array[start:stop] for name, array in sums.items()},
            patience=pieces * len(sources),
        )
        for piece, (start, stop) in enumerate(pairwise(edges))
        if start < stop
    ]
    # wait for all fetches, so that none still adds to the sums after another one has failed
    for outcome in await asyncio.gather(*collected, return_exceptions=True):
        if outcome is not None:
            raise outcome
