"""Counting on workers: the task that reads shards and adds them to the sums of its process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from distributed import get_worker

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.aggregation.bundles import Bundle, Counted, Receipt, Spoilt
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.aggregation.sums import GroupSums, Opening, process_sums
from streaming_moments.statistics.base import Prepared
from streaming_moments.storage.contents import changed, content_of
from streaming_moments.storage.files.parts import DOCUMENT, SEALED_NAME
from streaming_moments.storage.shards import Shard


def count_bundle(
    bundle: Bundle, context: ReadingContext, opening: Opening, number: int, lump_bytes: int
) -> Receipt:
    """Count the shards of a bundle into the sums of this process, or subtract them.

    Task `number` adds once, however often it runs in this process; it adds `lump_bytes` of batches
    at a time. Shards that cannot be read are named in the receipt, and the others count. It raises
    SumsAstray if the sums are closed, InvalidInput on a worker smaller than planned, ShardError if
    what is to be subtracted is gone, and SumExceeded if a sum could pass 2^62.
    """
    _require_room(opening.least_limit)
    held = process_sums()
    with held.counting(opening, context.store.layout, number) as sums:
        if number in sums.included:
            return sums.included[number]
        if bundle.taken is None:
            receipt = count_shards(bundle.shards, context, sums, lump_bytes)
        else:
            receipt = _subtract(bundle.shards[0], bundle.taken, context, sums, lump_bytes)
        held.finished(sums, opening, number, receipt)
        return receipt


def _require_room(least_limit: int) -> None:
    """Refuse to count on a worker that joined later and has less memory than was planned with."""
    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    if limit and limit < least_limit:
        raise InvalidInput(
            f"the worker {worker.address} joined with a memory limit of {limit:,} bytes, but the "
            f"job was planned with {least_limit:,} bytes for each; every commit so far is kept: "
            "stop that worker, or keep it, and run it again, planned with what the smallest has"
        )


def count_shards(
    shards: Sequence[Shard], context: ReadingContext, sums: GroupSums, lump_bytes: int
) -> Receipt:
    """Add shards to sums; a batch is added once its lump is full, those of several shards joined.

    A shard that fits in a lump is added once it was read to its end.
    """
    counted: list[Counted] = []
    spoilt: list[Spoilt] = []
    totals: Any = context.store.foundation.totals({})
    ready = _Lump()
    for shard in shards:
        reading = _Reading(shard, context, sums, lump_bytes)
        try:
            ready = reading.run(ready)
        except ShardError as error:
            ready = reading.ready
            numbers = (reading.added.n_documents, reading.added.n_tokens)
            spoilt.append(Spoilt(shard.url, error, reading.batches, reading.mark, numbers))
            totals = totals + reading.added
        else:
            counted.append(reading.row())
            totals = totals + reading.totals
    if ready.batches:
        sums.add(ready.batches, lump_bytes)
    return Receipt(sums.nonce, tuple(counted), tuple(spoilt), totals)


class _Lump:
    """Batches that are not yet added, and their bytes: of small shards there are thousands."""

    def __init__(self) -> None:
        self.batches: list[Prepared] = []
        self.nbytes = 0

    def append(self, prepared: Prepared) -> None:
        self.batches.append(prepared)
        self.nbytes += prepared.nbytes

    def extend(self, other: _Lump) -> None:
        self.batches += other.batches
        self.nbytes += other.nbytes


class _Reading:
    """One shard on its way into the sums."""

    def __init__(
        self, shard: Shard, context: ReadingContext, sums: GroupSums, lump_bytes: int
    ) -> None:
        self._shard, self._context = shard, context
        self._sums, self._lump_bytes = sums, lump_bytes
        self.ready = _Lump()  # of shards before, not yet added
        self.mark = ""
        self.totals: Any = context.store.foundation.totals({})
        self.added: Any = self.totals
        self.outside, self.batches = 0, 0

    def run(self, ready: _Lump) -> _Lump:
        """Read it to its end; what is still to be added, of shards before and of this one."""
        context, shard, foundation = self._context, self._shard, self._context.store.foundation
        self.ready, own = ready, _Lump()
        # hashing may read all of the shard: once is enough, what is read later is held to it
        content = content_of(shard, context.storage_options)
        self.mark = content.mark
        for number, (prepared, read) in enumerate(context.prepared(shard, content)):
            if self.ready.nbytes + own.nbytes + prepared.nbytes > self._lump_bytes:
                if self.ready.batches:
                    self._sums.add(self.ready.batches, self._lump_bytes)
                    self.ready = _Lump()
                elif own.batches:
                    self._sums.add(own.batches, self._lump_bytes)
                    self.batches, self.added = self.batches + len(own.batches), self.totals
                    own = _Lump()
            own.append(prepared)
            self.totals = self.totals + prepared.totals if number else prepared.totals
            self.outside += read.outside
        reason = foundation.rejection_reason(self.totals)
        # of many that are a document each, or what came by chance, some may have no known word
        if reason is not None and not shard.url.endswith((DOCUMENT, SEALED_NAME)):
            raise ShardError(shard.url, reason)
        self.ready.extend(own)
        return self.ready

    def row(self) -> Counted:
        return Counted(
            self._shard.url, self.mark, self.totals.n_documents, self.totals.n_tokens, self.outside
        )


def _subtract(
    shard: Shard, taken: Spoilt, context: ReadingContext, sums: GroupSums, lump_bytes: int
) -> Receipt:
    """Read once more what was added of a shard, which must be the same, and take it away."""
    totals: Any = context.store.foundation.totals({})
    lump = _Lump()
    content = content_of(shard, context.storage_options)
    for prepared, _ in islice(context.prepared(shard, content), taken.batches):
        if lump.batches and lump.nbytes + prepared.nbytes > lump_bytes:
            sums.subtract(lump.batches, lump_bytes)
            lump = _Lump()
        lump.append(prepared)
        totals = totals + prepared.totals
    sums.subtract(lump.batches, lump_bytes)
    # the beginning alone was read: nobody has looked yet whether it changed meanwhile
    marks = {content.mark, content_of(shard, context.storage_options).mark}
    if marks != {taken.mark} or (totals.n_documents, totals.n_tokens) != taken.numbers:
        raise changed(shard.url)
    return Receipt(sums.nonce, (), (), totals)
