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
)
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost
from streaming_moments.pipelines.cluster.worker_rpc import deaths_of
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

    A run that loses sums is given up, with the segment it wrote to: the next run writes to its own
    segment. For a worker that Dask takes for dead may live, and may still write sums to which
    others have added since. Only files of a run that lost nothing are sealed. Any writer of these
    files writes the same content, as no sums change after such a run.

    Workers also die for outside reasons. Other workers then recount what they held, so one death
    ends nothing. It is charged to the row blocks that the dead worker was writing: a block that
    takes too much memory would kill each of its writers. Closing any block may take too much
    memory, over another block each time. So the number of all such deaths is bounded, too, while no
    run gets further.

    written : segment and files of each row block that is done
    fruitless : runs in a row that lost sums, none of which was to be recounted
    charged : losses by row block
    reached : row blocks that any run has written
    deaths : losses in which workers died while writing, since a run got further than all before it
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

        Raises WorkersLost if workers die of one row block, or one after the other, or repeatedly
        cannot reach one another.
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
    """Return the number of pieces in which row block `place` of `blocks` is added up.

    Each piece is added up by another worker. Blocks that all workers get in equal numbers are added
    up whole. The others are in as few pieces as share them evenly: of eight blocks or more, no
    worker receives a fifth more than the others send on average, or a block more.

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

    With several pieces, each is added up by another worker and collected here. SumsLost if a worker
    or its sums are gone.
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
