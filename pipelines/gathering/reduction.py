"""Reduction: row blocks added up over the workers that hold sums of them, and written."""

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

from streaming_moments.pipelines.cluster.asking import deaths_of
from streaming_moments.pipelines.cluster.cluster import Cluster
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.cluster.tasks import (
    FinishedTasks,
    cancel,
    outcome_of,
    required,
)
from streaming_moments.pipelines.cluster.waiting import WorkersLost
from streaming_moments.pipelines.gathering.exchange import (
    REDUCE,
    TAKE,
    Source,
    SumsLost,
    add_theirs,
    ring_from,
)
from streaming_moments.pipelines.gathering.gathering import Gathering
from streaming_moments.pipelines.gathering.sums import Opening, own, process_sums
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.segments.segments import Segment, SegmentWriter
from streaming_moments.storage.store.store import MomentStore

STEP = "adding up row blocks"

_LOSSES = 10  # that are borne: one after another where nobody died, or of one row block
_DEATHS = 20  # of any blocks, none of which was written before
_UNEVEN = 1.05  # times its share of the rows that a worker adds up at most


@dataclass
class Reduction:
    """Row blocks of one segment on their way to the storage.

    A run that loses sums is given up, and so is the segment it wrote to: the next one writes to a
    segment of its own. For a worker that Dask takes for dead may live, and write when it likes what
    it made of sums to which others added since. Only files of a run that lost nothing are sealed,
    and whoever writes one of these writes the same: no sums change after such a run.

    Workers die of what is not ours, and others count again what they held, so that a loss by death
    ends nothing. It is charged to the row blocks that the dead was writing: memory that one of them
    takes would kill whoever writes it, for ever. Memory that the close takes of whatever block may
    kill over another one each time: all such deaths are bounded too, while no run gets further.

    Parameters
    ----------
    store : MomentStore
        Where the segment will be.
    writer : SegmentWriter
        Of the segment that this run writes to.
    written : dict
        Segment and files of each row block that is done.
    fruitless : int
        Runs one after another that lost sums, none of which was to be counted again.
    charged : Counter
        Losses by row block.
    reached : set of int
        Row blocks that any run has written.
    deaths : int
        Losses in which workers died that were writing, since a run got further than all before it.
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
        """Add up and write the blocks of a pass; False where sums were lost, and none is written.

        Raises
        ------
        WorkersLost
            The workers die of one row block, or of one after the other, or time and again do not
            reach one another.
        StoreError
            The store cannot be written.
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
                    # the others may dial the dead for seconds: whatever they write is given up
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
                f"{self.fruitless} times in a row sums were not to be had where they lay: {loss}; "
                "see that each worker may connect to every other one, and run it again"
            ) from loss
        for index in blocks:
            self.written.pop(index, None)
        self.writer = self.store.new_segment()

    def _charge(
        self, cluster: Cluster, running: Mapping[Future[Any], int], failed: int, loss: SumsLost
    ) -> None:
        deaths = deaths_of(cluster.client, running)
        died_of = Counter({index: deaths.get(future.key, 0) for future, index in running.items()})
        # who died was writing none: of what the block that failed asked of it
        self.charged.update(+died_of or {failed: 1})
        self.deaths += bool(+died_of)
        (index, losses), beside = self.charged.most_common(1)[0], ""
        if losses <= _LOSSES:
            losses, beside = self.deaths, " or of blocks beside it"
        if losses > (_DEATHS if beside else _LOSSES):
            raise WorkersLost(
                f"the workers died {losses} times while {STEP}, of row block {index}{beside} it "
                "seems; give them more memory, or a smaller --memory budget, and run it again"
            ) from loss

    def seal(
        self, run: Run, totals: Any, shards: Sequence[ShardRecord], dates: DateRange | None
    ) -> Segment:
        """Seal the segment, with the blocks of earlier passes; errors as `SegmentWriter.seal`."""
        elsewhere = [part for part in self.written.values() if part[0] != self.writer.id]
        calls = [(self.writer, *part) for part in elsewhere]
        run.calls("copying row blocks", SegmentWriter.take_over, calls, run.cluster.threads)
        files = [record for _, (_, part) in sorted(self.written.items()) for record in part]
        return self.writer.seal(totals, shards, files, dates)


def pieces_of(place: int, blocks: int, workers: int) -> int:
    """Pieces that one of so many row blocks is added up in, each by another worker.

    As many blocks as come to all workers alike are added up whole. The others are in as few pieces
    as share them evenly, so that, of eight blocks or more, none receives a fifth more than what all
    others send on average, or a block more.

    Parameters
    ----------
    place : int
        Of the block among those that are added up.
    blocks, workers : int
        How many there are.

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
    """Add up a row block over the workers that hold sums of it, and write it to the segment.

    In several pieces, each is added up by another worker, and collected here.

    Raises
    ------
    SumsLost
        A worker, or its sums, are gone.
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
    # views, as what is written is for reading only; totals, maybe large, are no part of a block
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
    """Have rows of a block added up by as many workers as there are pieces, and take them."""
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
    # none may still write into the sums when one fails
    for outcome in await asyncio.gather(*collected, return_exceptions=True):
        if outcome is not None:
            raise outcome
