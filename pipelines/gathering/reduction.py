"""Reduction: row blocks added up over the workers that hold sums of them, and written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from distributed import Future, Worker, get_worker
from distributed.comm.core import connect
from distributed.core import send_recv
from distributed.utils import sync
from numpy.typing import NDArray

from streaming_moments.pipelines.cluster.tasks import FinishedTasks, cancel, outcome_of, required
from streaming_moments.pipelines.gathering.gathering import Gathering
from streaming_moments.pipelines.gathering.sums import TAKE, Opening, process_sums
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.log.manifests import FileRecord
from streaming_moments.storage.segments.segments import SegmentWriter

STEP = "adding up row blocks"
MESSAGE_BYTES = 16 << 20  # of the rows that one worker sends another at a time
_CONNECT_SECONDS = 4.0  # a peer that answers does so at once; dialling a dead one is waiting
_MESSAGE_SECONDS = 120.0

Source = tuple[str, str]  # address of a worker, nonce of its sums


class SumsLost(Exception):
    """Sums that were to be added up are gone with the worker that held them."""


@dataclass
class Reduction:
    """Row blocks of one segment on their way to the storage.

    Parameters
    ----------
    writer : SegmentWriter
        Of the segment.
    written : dict
        Files of each row block that is done.
    """

    writer: SegmentWriter
    written: dict[int, tuple[FileRecord, ...]] = field(default_factory=dict)

    def run(
        self, gathering: Gathering, opening: Opening, sources: Sequence[Source], totals: Any
    ) -> bool:
        """Add up and write the blocks that are not written yet; False where sums were lost.

        Raises
        ------
        WorkersLost
            The workers die of it.
        StoreError
            The store cannot be written.
        """
        cluster, progress = gathering.run.cluster, gathering.run.progress
        blocks = [index for index in opening.blocks if index not in self.written]
        all_blocks = self.writer.layout.row_blocks
        running: dict[Future[Any], int] = {}
        finished = FinishedTasks(cluster)
        lost = False
        waiting = iter(blocks)
        try:
            while True:
                while len(running) < cluster.workers * cluster.threads and not lost:
                    index = next(waiting, None)
                    if index is None:
                        break
                    call = (index, self.writer, opening.owner, tuple(sources), totals)
                    future = cluster.client.submit(
                        write_block,
                        *call,
                        pure=False,
                        workers=sources[index % len(sources)][0] if sources else None,
                        allow_other_workers=bool(sources),
                    )
                    running[future] = index
                    finished.add(future)
                if not running:
                    return not lost
                future = finished.next()
                index = running.pop(future)
                outcome = outcome_of(cluster, future)
                if isinstance(outcome, SumsLost):
                    lost = True
                    continue
                self.written[index] = required(outcome, STEP)
                progress.advance(STEP, len(self.written), all_blocks)
        finally:
            cancel(cluster, running)

    def files(self) -> list[FileRecord]:
        """All files that are written."""
        return [record for index in sorted(self.written) for record in self.written[index]]


def write_block(
    index: int, writer: SegmentWriter, owner: str, sources: Sequence[Source], totals: Any
) -> tuple[FileRecord, ...]:
    """Add up a row block over the workers that hold sums of it, and write it to the segment.

    What is here is taken as it is; the others are asked in a ring from here on, so that not all
    ask the same one at the same time.

    Raises
    ------
    SumsLost
        A worker, or its sums, are gone.
    """
    worker, layout = get_worker(), writer.layout
    addresses = [address for address, _ in sources]
    here = addresses.index(worker.address) if worker.address in addresses else None
    start = 0 if here is None else here
    block, foundation = layout.block(index), layout.foundation
    sums: dict[str, NDArray[np.int64]] = {}
    if here is not None:
        nonce = sources[here][1]
        sums = process_sums(worker).rows(owner, nonce, index, slice(None)) or {}
        if not sums:
            raise SumsLost(worker.address)
    others = [*sources[start:], *sources[:start]][0 if here is None else 1 :]
    if not sums:
        shapes = foundation.shapes(block)
        sums = {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}
    elif others:
        sums = {name: array.copy() for name, array in sums.items()}
    for source in others:
        sync(worker.loop, _add_theirs, worker, source, owner, index, layout, sums)
    # a view: what is written of it is for reading only
    arrays = {name: array[:] for name, array in sums.items()}
    return writer.write_block(foundation.statistics(block, totals, arrays))


async def _add_theirs(
    worker: Worker,
    source: Source,
    owner: str,
    index: int,
    layout: SegmentLayout,
    sums: Mapping[str, NDArray[np.int64]],
) -> None:
    """Add what another worker holds of a block, some rows at a time."""
    address, nonce = source
    rows = max(len(array) for array in sums.values())
    nbytes = sum(array.nbytes for array in sums.values())
    step = max(1, rows * MESSAGE_BYTES // max(nbytes, 1))
    security: Any = worker.security.get_connection_args("worker")
    try:
        comm = await connect(address, timeout=_CONNECT_SECONDS, **security)
        try:
            for begin in range(0, rows, step):
                end = min(begin + step, rows)
                asked: Any = {"owner": owner, "nonce": nonce, "index": index}
                answer = await asyncio.wait_for(
                    send_recv(comm, op=TAKE, start=begin, stop=end, **asked), _MESSAGE_SECONDS
                )
                if answer is None:
                    raise SumsLost(address)
                for name, part in answer.items():
                    into = sums[name][begin:end]
                    np.add(into, part, out=into)
        finally:
            comm.abort()
    except (OSError, TimeoutError) as error:
        raise SumsLost(address) from error
