"""State of a group of shards before its commit: which shards are counted, and which are not."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Sized
from dataclasses import dataclass, field, replace
from typing import Any

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.aggregation import Gathering
from streaming_moments.pipelines.aggregation.bundles import Bundle, Counted, Receipt, Spoilt
from streaming_moments.pipelines.aggregation.sums import Opening
from streaming_moments.storage.contents import changed
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.ledger import ShardRecord, copy_of
from streaming_moments.storage.shards import Shard


class WithoutShard(Exception):
    """A shard cannot be counted or subtracted a second time with the same result.

    The group then starts again without this shard.
    """

    def __init__(self, url: str, error: ShardError) -> None:
        super().__init__(url, error)
        self.url, self.error = url, error


@dataclass(eq=False)
class Group:
    """Shards of one commit, read in one or more passes over the row blocks.

    `receipts` holds the receipts of this pass, by the number of the task. `again` lists bundles
    that this pass must still count or subtract.
    """

    gathering: Gathering
    bad: list[ShardError]
    opening: Opening
    contents: dict[tuple[str, int], str] | None
    begun: float = field(default_factory=time.monotonic)
    closed: bool = False  # whether the group accepts no new shards any more
    rows: dict[str, Counted] = field(default_factory=dict)
    shards: dict[str, Shard] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    receipts: dict[int, tuple[Bundle, Receipt]] = field(default_factory=dict)
    again: deque[Bundle] = field(default_factory=deque)
    taken: int = 0  # number of shards that the group has accepted
    alone: bool = False  # whether the group has only shards that may have killed a worker
    dates: DateRange | None = None
    context_deaths: int = 0
    # time of the tokeniser, and time of all reading including it, each summed over the threads
    seconds: tuple[float, float] = (0.0, 0.0)

    def may_take(self, bundle: Bundle, running: Sized) -> bool:
        """Whether the group may accept this bundle in its first pass."""
        if not self.taken:
            return not running
        plan, pace = self.gathering.plan, self.gathering.pace
        if self.alone or bundle.alone or self.taken >= plan.group_shards:
            return False
        if time.monotonic() - self.begun >= pace.seconds / plan.passes:
            return False
        return self.gathering.dates.get(bundle.shards[0].url) == self.dates

    def take(self, bundle: Bundle) -> None:
        self.alone, self.dates = bundle.alone, self.gathering.dates.get(bundle.shards[0].url)
        self.taken += len(bundle.shards)

    def note(self, number: int, bundle: Bundle, receipt: Receipt) -> None:
        """Record a receipt; raises WithoutShard if an earlier pass counted a shard differently."""
        self.receipts[number] = (bundle, receipt)
        (cutting, reading), (more, longer) = self.seconds, receipt.seconds
        self.seconds = (cutting + more, reading + longer)
        shards = {shard.url: shard for shard in bundle.shards}
        for row in receipt.counted:
            if self.rows.get(row.url, row) != row:
                raise WithoutShard(row.url, changed(row.url))
            if row.url not in self.rows:
                self._count(row, shards[row.url])
        for spoilt in receipt.spoilt:
            if spoilt.url in self.rows:
                raise WithoutShard(spoilt.url, spoilt.error)
            self._leave_out(spoilt, shards[spoilt.url])

    def _count(self, row: Counted, shard: Shard) -> None:
        if self.contents is not None and tells_content(row.mark):
            other = self.contents.setdefault((row.mark, shard.size), shard.url)
            if other != shard.url:
                error = ShardError(shard.url, copy_of(other))
                numbers = (row.documents, row.tokens)
                self._leave_out(Spoilt(shard.url, error, None, row.mark, numbers), shard)
                return
        self.rows[row.url] = row
        self.shards[row.url] = shard

    def _leave_out(self, spoilt: Spoilt, shard: Shard) -> None:
        self.bad.append(spoilt.error)
        self.left_out.add(shard.url)
        if spoilt.batches != 0:
            self.again.append(Bundle((shard,), taken=spoilt))

    def void(self, numbers: Collection[int]) -> None:
        """Drop the receipts of these tasks, and list their bundles in `again`."""
        bundles = {number: bundle for number, (bundle, _) in self.receipts.items()}
        taken = {number: one.taken.url for number, one in bundles.items() if one.taken is not None}
        added = set(numbers) - taken.keys()
        lost = {shard.url for number in added for shard in bundles[number].shards}
        if any(url in lost for number, url in taken.items() if number not in numbers):
            # the sums to which a shard was added are lost, but not the sums from which it was
            # subtracted: begin this pass again
            numbers, lost = list(bundles), {*lost, *taken.values()}
            self._open(self.opening.blocks)
        for number in numbers:
            del self.receipts[number]
            bundle = bundles[number]
            if number not in taken:
                bundle = bundle.without(self.left_out)
            if bundle.shards and taken.get(number) not in lost:
                self.again.append(bundle)

    def next_pass(self, blocks: range) -> None:
        """Start another pass, which counts the same shards again for other row blocks."""
        bundles = [bundle for bundle, _ in self.receipts.values() if bundle.taken is None]
        kept = (bundle.without(self.left_out) for bundle in bundles)
        self.again.extend(bundle for bundle in kept if bundle.shards)
        self.receipts = {}
        self._open(blocks)

    def _open(self, blocks: range) -> None:
        group = next(self.gathering.numbers)
        self.opening = replace(self.opening, group=group, epoch=0, blocks=blocks)

    def totals(self) -> Any:
        """Totals of all records in the sums of this pass."""
        total: Any = self.gathering.store.foundation.totals({})
        for bundle, receipt in self.receipts.values():
            if bundle.taken is None:
                total = total + receipt.totals
        for bundle, receipt in self.receipts.values():
            if bundle.taken is not None:
                total = total - receipt.totals
        return total

    def records(self) -> list[ShardRecord]:
        """Return the ledger records of the counted shards."""
        names = self.gathering.names
        return [
            ShardRecord(
                names.get(url, url),
                self.shards[url].size,
                row.mark,
                row.documents,
                row.tokens,
                row.outside,
            )
            for url, row in self.rows.items()
        ]
