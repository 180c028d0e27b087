"""Task that reads shards on a worker and adds their counts to the sums of its process."""

from __future__ import annotations

import time
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

    If these sums already include task `number`, returns its receipt and adds nothing. Otherwise
    adds up to `lump_bytes` of batches at a time.

    The receipt names unreadable shards; the other shards are counted. Raises SumsAstray if the sums
    are closed, and InvalidInput on a worker with less memory than planned. Raises ShardError if a
    shard to subtract no longer exists, and SumExceeded if a sum could exceed 2^62.
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
    """Refuse to count on a worker that joined later with less memory than planned."""
    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    if limit and limit < least_limit:
        raise InvalidInput(
            f"the worker {worker.address} joined with a memory limit of {limit:,} bytes, but "
            f"the job was planned with {least_limit:,} bytes for each worker. Stop that worker, "
            "or run the job again to plan with the smaller limit; all commits so far are "
            "stored"
        )


def count_shards(
    shards: Sequence[Shard], context: ReadingContext, sums: GroupSums, lump_bytes: int
) -> Receipt:
    """Read shards and add them to the sums, several batches (a lump) at a time.

    A lump joins batches of several shards. A shard that fits into a lump is added only after it was
    read to its end.
    """
    begun, cutting = time.perf_counter(), 0.0
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
        cutting += reading.cutting
    if ready.batches:
        sums.add(ready.batches, lump_bytes)
    seconds = (cutting, time.perf_counter() - begun)
    return Receipt(sums.nonce, tuple(counted), tuple(spoilt), totals, seconds)


class _Lump:
    """Batches that are added together, and their size in bytes.

    The size is a running total, because small shards make thousands of batches.
    """

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
    """One shard while it is read and added."""

    def __init__(
        self, shard: Shard, context: ReadingContext, sums: GroupSums, lump_bytes: int
    ) -> None:
        self._shard, self._context = shard, context
        self._sums, self._lump_bytes = sums, lump_bytes
        self.ready = _Lump()  # batches of earlier shards that are not added yet
        self.mark = ""
        self.totals: Any = context.store.foundation.totals({})
        self.added: Any = self.totals
        self.outside, self.batches = 0, 0
        self.cutting = 0.0  # seconds of the tokeniser

    def run(self, ready: _Lump) -> _Lump:
        """Read the shard to its end, and return the batches that are not added yet."""
        context, shard, foundation = self._context, self._shard, self._context.store.foundation
        self.ready, own = ready, _Lump()
        # Hashing may read the whole shard, so do it once; later reads are compared with this hash.
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
            self.cutting += read.cutting
        reason = foundation.rejection_reason(self.totals)
        # accept shards of a single document, or of an inbox, even if they contain no word of the
        # vocabulary
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
    """Read the added part of a shard again and subtract it.

    Raises ShardError if the content of the shard has changed.
    """
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
    # the loop read only the first batches, so hash the whole shard to see whether it has changed
    marks = {content.mark, content_of(shard, context.storage_options).mark}
    if marks != {taken.mark} or (totals.n_documents, totals.n_tokens) != taken.numbers:
        raise changed(shard.url)
    return Receipt(sums.nonce, (), (), totals)
