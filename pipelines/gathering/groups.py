"""Groups: shards read on the cluster and added up into one segment, not yet committed."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence, Set, Sized
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from distributed import Future, KilledWorker

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.cluster.tasks import FinishedTasks, WorkersLost, cancel, outcome_of
from streaming_moments.pipelines.gathering.gathering import Gathering
from streaming_moments.pipelines.gathering.parts import (
    PartAddress,
    PartSummary,
    read_part,
    summary_of,
    write_block,
)
from streaming_moments.statistics.base import Foundation
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.log.commits import SegmentReference
from streaming_moments.storage.log.ledger import ShardRecord, copy_of, tells_content
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import Shard


@dataclass(frozen=True)
class Gathered:
    """One group of shards.

    Parameters
    ----------
    segment : Segment or None
        With the records of the shards; None if none could be read.
    shards : tuple of Shard
        Those of the segment.
    bad : tuple of ShardError
        Shards left out.
    """

    segment: Segment | None
    shards: tuple[Shard, ...]
    bad: tuple[ShardError, ...]


class _PartlyRead(Exception):
    """A shard that turned out bad when parts of it had been added up."""

    def __init__(self, error: ShardError) -> None:
        super().__init__(error)
        self.error = error


class _Suspected(Exception):
    """Shards of which parts that the group needs are lost with the workers that held them."""

    def __init__(self, urls: frozenset[str]) -> None:
        super().__init__(urls)
        self.urls = urls


@dataclass
class _Group:
    """Shards on their way to one commit; `parts` are those not yet added up, with their shards."""

    foundation: Foundation
    names: Mapping[str, str]
    parts: dict[Future[Any], str] = field(default_factory=dict)
    nbytes: int = 0
    totals: Any = None
    records: list[ShardRecord] = field(default_factory=list)
    shards: list[Shard] = field(default_factory=list)
    bad: list[ShardError] = field(default_factory=list)
    # shards of which not all parts are read: URL -> (totals, outside) so far
    unfinished: dict[str, tuple[Any, int]] = field(default_factory=dict)
    alone: bool = False  # it holds one shard, suspected of killing workers
    dates: DateRange | None = None
    contents: dict[tuple[str, int], str] | None = None  # those of which no other may be

    def __post_init__(self) -> None:
        self.totals = self.foundation.totals({})

    def add(self, part: Future[Any], address: PartAddress, summary: PartSummary) -> None:
        shard = address.shard
        totals, outside = self.unfinished.pop(shard.url, (self.foundation.totals({}), 0))
        totals, outside = totals + summary.totals, outside + summary.outside
        if summary.rest is None:
            reason = self.foundation.why_not_counted(totals)
            if reason is not None:
                raise ShardError(shard.url, reason)
            self._require_unique(shard, summary.mark)
        self.parts[part] = shard.url
        self.nbytes += summary.nbytes
        self.totals = self.totals + summary.totals
        if summary.rest is None:
            name = self.names.get(shard.url, shard.url)
            numbers = (totals.n_documents, totals.n_tokens, outside)
            self.records.append(ShardRecord(name, shard.size, summary.mark, *numbers))
            self.shards.append(shard)
        else:
            self.unfinished[shard.url] = (totals, outside)

    def _require_unique(self, shard: Shard, mark: str) -> None:
        if self.contents is not None and tells_content(mark):
            other = self.contents.setdefault((mark, shard.size), shard.url)
            if other != shard.url:
                raise ShardError(shard.url, copy_of(other))

    def drop_parts(self) -> None:
        self.parts = {}
        self.nbytes = 0

    @property
    def begun(self) -> bool:
        """Whether there is anything in it."""
        return bool(self.parts or self.shards or self.unfinished)


def gather_group(
    gathering: Gathering, waiting: deque[PartAddress], before: int, total: int
) -> Gathered:
    """Read shards until the memory for counts is full, and add them up in a segment.

    Where it is full in the middle of a shard, what was read is added up in a segment that no
    commit will name, and the group's own segment takes it over.

    A worker that dies takes blame for all that it was doing. So a shard whose readers died goes
    to the end of `waiting`, to be read alone in a group of its own; only one that kills its
    workers there too is a bad one.

    Parameters
    ----------
    gathering : Gathering
        Where and how.
    waiting : deque of PartAddress
        What is still to be read; those of the group are taken from its front.
    before, total : int
        Shards finished before and in all, for the progress.

    Raises
    ------
    ShardError, InvalidInput
        Shards that cannot be read: all of the group.
    StoreError
        The store cannot be written.
    """
    late: list[ShardError] = []
    while True:
        places = list(waiting)
        try:
            return _gather_group(gathering, waiting, late, before, total)
        except _PartlyRead as spoilt:
            # parts of it are in sums already: the group begins again without the shard
            late.append(spoilt.error)
            _begin_again(waiting, places, leave={spoilt.error.url})
        except _Suspected as suspected:
            _begin_again(waiting, places, apart=suspected.urls)


def _begin_again(
    waiting: deque[PartAddress],
    places: Sequence[PartAddress],
    leave: Set[str] = frozenset(),
    apart: Set[str] = frozenset(),
) -> None:
    """Put back what a group has taken, but for shards left out; those apart are read alone."""
    alone = apart | {address.shard.url for address in waiting if address.alone}
    kept = [address for address in places if address.shard.url not in leave]
    waiting.clear()
    waiting.extend(address for address in kept if address.shard.url not in alone)
    waiting.extend(PartAddress(a.shard, alone=True) for a in kept if a.shard.url in alone)


def _gather_group(
    gathering: Gathering,
    waiting: deque[PartAddress],
    late: Sequence[ShardError],
    before: int,
    total: int,
) -> Gathered:
    contents = None if gathering.unique is None else dict(gathering.unique)
    group = _Group(gathering.store.foundation, gathering.names, bad=list(late), contents=contents)
    earlier: list[SegmentReference] = []
    while True:
        with closing(_read_until_full(group, waiting, gathering, bool(earlier))) as reading:
            for done in reading:
                gathering.run.progress.advance("reading shards", before + done, total)
        if group.bad and not gathering.keep_going:
            raise _all_of(group.bad)
        if not group.unfinished:
            break
        tokens, documents = group.totals.n_tokens, group.totals.n_documents
        read = ShardRecord("parts", 0, "sha256:", documents, tokens)
        earlier = [_write_segment(group, [read], earlier, gathering).reference]
        group.drop_parts()
    segment = _write_segment(group, group.records, earlier, gathering) if group.records else None
    return Gathered(segment, tuple(group.shards), tuple(group.bad))


def _read_until_full(
    group: _Group,
    waiting: deque[PartAddress],
    gathering: Gathering,
    only_rests: bool,
) -> Generator[int, None, None]:
    """Fill the group; yields the number of shards finished.

    With `only_rests` no new shard is begun: the group closes with those it has.

    After a bad shard it reads on to the end of the group without keeping anything, so that all
    bad ones are named at once.
    """
    cluster, plan = gathering.run.cluster, gathering.plan
    client, context = cluster.client, gathering.context
    reads = cluster.workers * plan.reads_in_flight
    running: dict[Future[Any], tuple[PartAddress, Future[Any], int]] = {}
    finished = FinishedTasks(cluster)
    # Dask sends a task where the context lies already, which is one worker at first
    turns = cluster.turns(reads)
    kept = 0
    try:
        while True:
            # rests stand before new shards
            ready = bool(waiting) and _may_join(waiting[0], group, running, only_rests, gathering)
            room = plan.counts_bytes - group.nbytes - sum(most for _, _, most in running.values())
            fits = room >= plan.part_bytes or not (running or group.nbytes)
            if not running and not (ready and fits):
                return
            if ready and fits and len(running) < reads:
                address = waiting.popleft()
                group.alone, group.dates = address.alone, gathering.dates.get(address.shard.url)
                most = plan.part_allowed(address.part_bytes, room)
                place = next(turns, None)
                part = client.submit(
                    read_part,
                    address,
                    context,
                    most,
                    pure=False,
                    workers=place,
                    allow_other_workers=place is not None,
                )
                summary = client.submit(summary_of, part, pure=False)
                running[summary] = (address, part, most)
                finished.add(summary)
                continue
            future = finished.next()
            address, part, _ = running.pop(future)
            read = outcome_of(cluster, future)
            try:
                if isinstance(read, KilledWorker):
                    waiting.append(_suspected(address, read, gathering))
                    continue
                if isinstance(read, BaseException):
                    raise read
                if read.rest is not None:
                    # the rest comes next: an unfinished shard holds up the commit
                    waiting.appendleft(read.rest)
                group.add(part, address, read)
            except ShardError as error:
                if address.begun and gathering.keep_going:
                    raise _PartlyRead(error) from error
                group.bad.append(error)
            if group.bad and not gathering.keep_going:
                kept += group.nbytes
                group.drop_parts()
                if kept >= plan.counts_bytes:
                    return
            yield len(group.records) + len(group.bad)
    finally:
        cancel(cluster, [*running, *(part for _, part, _ in running.values())])


def _may_join(
    address: PartAddress, group: _Group, running: Sized, only_rests: bool, gathering: Gathering
) -> bool:
    """Whether the group may take this next."""
    if address.begun:
        return True
    if only_rests or group.alone:
        return False
    if not (running or group.begun):
        return True
    return not address.alone and gathering.dates.get(address.shard.url) == group.dates


def _suspected(address: PartAddress, death: KilledWorker, gathering: Gathering) -> PartAddress:
    """Where a shard whose readers died is read alone; a bad shard if it was alone."""
    if death.task == gathering.context.key:
        raise WorkersLost(
            "the workers died time and again before they read a shard; see their logs, and run it "
            "again"
        ) from death
    if address.alone:
        raise ShardError(
            address.shard.url,
            "killed every worker that read it, though nothing else ran there; give workers more "
            "memory, or cut it into smaller shards",
        ) from death
    if address.begun:
        raise _Suspected(frozenset({address.shard.url})) from death
    return PartAddress(address.shard, alone=True)


def _write_segment(
    group: _Group,
    records: Sequence[ShardRecord],
    earlier: Sequence[SegmentReference],
    gathering: Gathering,
) -> Segment:
    store, run = gathering.store, gathering.run
    writer = store.new_segment()
    calls = [(index, writer, list(group.parts), earlier) for index in range(store.row_blocks)]
    try:
        written = run.calls("adding up row blocks", write_block, calls, run.cluster.threads)
    except WorkersLost as error:
        lost = frozenset(url for part, url in group.parts.items() if part.status == "error")
        if lost and not group.alone:
            raise _Suspected(lost) from error
        raise
    return writer.seal(group.totals, records, chain.from_iterable(written), group.dates)


def _all_of(bad: Sequence[ShardError]) -> InvalidInput | ShardError:
    if len(bad) == 1:
        return ShardError(
            bad[0].url, f"{bad[0].reason}; nothing of its group was counted (or --skip-bad-shards)"
        )
    lines = "; ".join(sorted(map(str, bad)))
    return InvalidInput(
        f"{len(bad)} shards cannot be read, nothing of their group was counted: {lines}; mend or "
        "remove them, or leave them out with --skip-bad-shards"
    )
