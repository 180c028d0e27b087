"""Update a store: count each new shard once, commit group by group."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from distributed import Future, as_completed

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.lengths import LengthHistogram
from streaming_moments.pipelines.cluster import Cluster
from streaming_moments.pipelines.memory import BATCH_BYTES, StateSize, UpdatePlan, plan_update
from streaming_moments.pipelines.parts import (
    PartAddress,
    PartSummary,
    ReadingContext,
    read_part,
    summary_of,
    write_block,
)
from streaming_moments.pipelines.progress import Silent, StepProgress
from streaming_moments.pipelines.tasks import run_bounded
from streaming_moments.storage.documents import ReadLimits
from streaming_moments.storage.ledger import ShardRecord
from streaming_moments.storage.segments import Segment
from streaming_moments.storage.shards import Shard, fingerprint
from streaming_moments.storage.store import MomentStore
from streaming_moments.storage.versions import SegmentReference


@dataclass(frozen=True)
class UpdateResult:
    """What an update did.

    Parameters
    ----------
    store : MomentStore
        At the last commit.
    counted : int
        Shards counted now.
    already : int
        Shards that were counted before.
    documents, tokens, outside : int
        Documents and vocabulary tokens counted now, and tokens outside the vocabulary.
    bad : tuple of ShardError
        Shards left out because they cannot be read.
    """

    store: MomentStore
    counted: int
    already: int
    documents: int
    tokens: int
    outside: int
    bad: tuple[ShardError, ...]


class _PartlyRead(Exception):
    """A shard that turned out bad when parts of it had been added up."""

    def __init__(self, error: ShardError) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class _Group:
    """Shards on their way to one commit; `parts` are those not yet added up."""

    parts: list[Future[Any]] = field(default_factory=list)
    nbytes: int = 0
    histogram: LengthHistogram = field(default_factory=LengthHistogram.zero)
    records: list[ShardRecord] = field(default_factory=list)
    bad: list[ShardError] = field(default_factory=list)
    # shards of which not all parts are read: URL -> (documents, tokens, outside) so far
    unfinished: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def add(self, part: Future[Any], address: PartAddress, summary: PartSummary) -> None:
        shard, histogram = address.shard, summary.histogram
        documents, tokens, outside = self.unfinished.pop(shard.url, (0, 0, 0))
        documents += histogram.n_documents
        tokens += histogram.C1
        outside += summary.outside
        if summary.rest is None and not tokens:
            raise ShardError(
                shard.url,
                f"none of its {documents} documents holds a word of the vocabulary; check its "
                "language and the column, or create a store from such shards",
            )
        self.parts.append(part)
        self.nbytes += summary.nbytes
        self.histogram = self.histogram + histogram
        if summary.rest is None:
            record = ShardRecord(shard.url, shard.size, summary.mark, documents, tokens, outside)
            self.records.append(record)
        else:
            self.unfinished[shard.url] = (documents, tokens, outside)

    def drop_parts(self) -> None:
        self.parts = []
        self.nbytes = 0


def update(
    store: MomentStore,
    shards: Sequence[Shard],
    cluster: Cluster,
    skip_bad_shards: bool = False,
    limits: ReadLimits | None = None,
    storage_options: Mapping[str, object] | None = None,
    progress: StepProgress | None = None,
    plan: UpdatePlan | None = None,
) -> UpdateResult:
    """Count the shards that were not counted before.

    Shards go in groups that fit the memory budget: read tasks, one shard each (a shard too large
    for one task is read in parts), then one task for each row block adds the group up and writes
    it, then one commit. A crash loses at most the open group.

    Parameters
    ----------
    store : MomentStore
        The store; its latest version is extended.
    shards : sequence of Shard
        As `list_shards` gives them.
    cluster : Cluster
        Where to run.
    skip_bad_shards : bool
        Commit the others when some cannot be read, and record those; else stop.
    limits : ReadLimits, optional
        Bounds on documents; the batch size is the plan's.
    storage_options : mapping, optional
        Options of the shards' file systems.
    progress : StepProgress, optional
        Told of each shard.
    plan : UpdatePlan, optional
        How memory is divided; by default as the cluster's budget allows.

    Raises
    ------
    BoundExceeded
        The memory budget cannot hold the work, or a sum its integer.
    ShardError, InvalidInput
        Shards that cannot be read, or changed since they were counted: all of the group.
    StoreError
        The store cannot be written.
    """
    progress = progress or Silent()
    store = store.latest()
    limits = limits or ReadLimits(document_bytes=BATCH_BYTES)
    plan = plan or plan_of(store, cluster, limits.document_bytes)
    new, already = _not_counted(store, shards, cluster, storage_options, progress)
    limits = replace(limits, batch_bytes=plan.batch_bytes)
    context = cluster.client.submit(ReadingContext.of, store, limits, storage_options, pure=False)
    waiting = deque(PartAddress(shard) for shard in new)
    result = UpdateResult(store, 0, already, 0, 0, 0, ())
    late: list[ShardError] = []
    while waiting:
        before = list(waiting)
        try:
            result = _commit_group(
                result, waiting, late, context, cluster, plan, skip_bad_shards, progress, len(new)
            )
            late = []
        except _PartlyRead as spoilt:
            # parts of it are in sums already: the group begins again without the shard
            late.append(spoilt.error)
            waiting = deque(place for place in before if place.shard.url != spoilt.error.url)
            if not waiting:
                result = _committed(result, None, [], late)
    return result


def plan_of(store: MomentStore, cluster: Cluster, document_bytes: int = BATCH_BYTES) -> UpdatePlan:
    """Memory plan of an update of this store on this cluster."""
    size = StateSize(store.basis, store.row_blocks, store.codocuments)
    return plan_update(size, cluster.threads, cluster.memory, document_bytes)


def _not_counted(
    store: MomentStore,
    shards: Sequence[Shard],
    cluster: Cluster,
    storage_options: Mapping[str, object] | None,
    progress: StepProgress,
) -> tuple[list[Shard], int]:
    """Shards not in the ledger, and how many are; a changed one is an error."""
    ledger = store.ledger()
    known = [(shard, record) for shard in shards if (record := ledger.find(shard.url))]
    marks = run_bounded(
        cluster.client,
        fingerprint,
        [(shard, storage_options) for shard, _ in known],
        2 * cluster.workers * cluster.threads,
        progress,
        "checking counted shards",
    )
    changed = [
        f"{shard.url} was counted as {record.fingerprint} and is now {mark}"
        for (shard, record), mark in zip(known, marks, strict=True)
        if mark != record.fingerprint
    ]
    if changed:
        raise InvalidInput(
            f"{len(changed)} counted shards have new content: {'; '.join(changed)}; "
            "put the old content back, or give new content a new name"
        )
    counted = {shard.url for shard, _ in known}
    return [shard for shard in shards if shard.url not in counted], len(known)


def _commit_group(
    result: UpdateResult,
    waiting: deque[PartAddress],
    late: Sequence[ShardError],
    context: Future[Any],
    cluster: Cluster,
    plan: UpdatePlan,
    skip_bad_shards: bool,
    progress: StepProgress,
    total: int,
) -> UpdateResult:
    """Read, add up and commit shards until the memory for counts is full.

    Where it is full in the middle of a shard, what was read is added up in a segment that no
    commit will name, and the group's own segment takes it over.
    """
    group = _Group(bad=list(late))
    earlier: list[SegmentReference] = []
    before = result.counted + len(result.bad)
    while True:
        reading = _read_until_full(
            group, waiting, context, cluster, plan, skip_bad_shards, only_rests=bool(earlier)
        )
        with closing(reading):
            for done in reading:
                progress.advance("reading shards", before + done, total)
        if group.bad and not skip_bad_shards:
            raise _all_of(group.bad)
        if not group.unfinished:
            break
        tokens, documents = group.histogram.C1, group.histogram.n_documents
        read = ShardRecord("parts", 0, "sha256:", documents, tokens)
        scratch = _write_segment(result.store, group, [read], earlier, cluster, progress)
        earlier = [scratch.reference]
        group.drop_parts()
    if not group.records and not group.bad:
        return result
    segment = None
    if group.records:
        segment = _write_segment(result.store, group, group.records, earlier, cluster, progress)
    return _committed(result, segment, group.records, group.bad)


def _read_until_full(
    group: _Group,
    waiting: deque[PartAddress],
    context: Future[Any],
    cluster: Cluster,
    plan: UpdatePlan,
    keep_going: bool,
    only_rests: bool,
) -> Generator[int, None, None]:
    """Fill the group; yields the number of shards finished.

    With `only_rests` no new shard is begun: the group closes with those it has.

    After a bad shard it reads on to the end of the group without keeping anything, so that all
    bad ones are named at once.
    """
    client = cluster.client
    most = cluster.workers * plan.reads_in_flight
    running: dict[Future[Any], tuple[PartAddress, Future[Any]]] = {}
    finished = as_completed(with_results=False)
    kept = 0
    try:
        while True:
            # rests stand before new shards
            ready = bool(waiting) and (not only_rests or waiting[0].first_batch > 0)
            if not running and not (ready and group.nbytes < plan.counts_bytes):
                return
            expected = group.nbytes + len(running) * plan.part_bytes
            room = len(running) < most and expected < plan.counts_bytes
            if ready and (room or not running):
                address = waiting.popleft()
                part = client.submit(read_part, address, context, plan.part_bytes, pure=False)
                summary = client.submit(summary_of, part, pure=False)
                running[summary] = (address, part)
                finished.add(summary)
                continue
            future = next(finished)
            address, part = running.pop(future)
            failure = future.exception()
            try:
                if failure is not None:
                    raise failure
                read: PartSummary = future.result()
                if read.rest is not None:
                    # the rest comes next: an unfinished shard holds up the commit
                    waiting.appendleft(read.rest)
                group.add(part, address, read)
            except ShardError as error:
                if address.first_batch and keep_going:
                    raise _PartlyRead(error) from error
                group.bad.append(error)
            if group.bad and not keep_going:
                kept += group.nbytes
                group.drop_parts()
                if kept >= plan.counts_bytes:
                    return
            yield len(group.records) + len(group.bad)
    finally:
        client.cancel([*running, *(part for _, part in running.values())])


def _write_segment(
    store: MomentStore,
    group: _Group,
    records: Sequence[ShardRecord],
    earlier: Sequence[SegmentReference],
    cluster: Cluster,
    progress: StepProgress,
) -> Segment:
    writer = store.new_segment()
    calls = [(index, writer, group.parts, earlier) for index in range(store.row_blocks)]
    in_flight = cluster.workers * cluster.threads
    written = run_bounded(
        cluster.client, write_block, calls, in_flight, progress, "adding up row blocks"
    )
    return writer.seal(group.histogram, records, chain.from_iterable(written))


def _committed(
    result: UpdateResult,
    segment: Segment | None,
    records: Sequence[ShardRecord],
    bad: Sequence[ShardError],
) -> UpdateResult:
    documents = sum(record.documents for record in records)
    message = f"update: {len(records)} shards, {documents} documents"
    if bad:
        message += f", {len(bad)} bad shards left out"
    skipped = [(error.url, error.reason) for error in bad]
    return replace(
        result,
        store=result.store.append(segment, message, skipped),
        counted=result.counted + len(records),
        documents=result.documents + documents,
        tokens=result.tokens + sum(record.tokens for record in records),
        outside=result.outside + sum(record.outside for record in records),
        bad=(*result.bad, *bad),
    )


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
