"""Forget shards, or replace their content: what was counted of them is taken away exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.memory import blocks_in_flight
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.gathering.divisions import as_counted, by_days, with_days
from streaming_moments.pipelines.gathering.gathering import Gathering, gathering_on
from streaming_moments.pipelines.gathering.groups import gather_group
from streaming_moments.storage.log.ledger import ShardRecord
from streaming_moments.storage.operations.appended import (
    counted_part,
    counted_shards,
    is_longer,
)
from streaming_moments.storage.operations.forgetting import commit_recount, require_non_negative
from streaming_moments.storage.segments.blocks import joining_bytes
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import Shard, fingerprint
from streaming_moments.storage.store.changes import (
    Recount,
    kept_segments,
    require_counted,
    require_known,
    segments_of,
)
from streaming_moments.storage.store.store import MomentStore

_COPIES = 2  # the sum, and one segment of it


def forget(
    store: MomentStore,
    shards: Sequence[Shard],
    run: Run,
    message: str = "",
    allow_again: bool = False,
) -> MomentStore:
    """Take counted shards away, all of them in one commit; their documents are read once more.

    Updates and nights leave them out from then on, by their names and by their contents.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    shards : sequence of Shard
        Counted, with the content that was counted.
    run : Run
        Where to run, and what its steps are told.
    message : str
        For the log.
    allow_again : bool
        Let updates count them again. Shards that were forgotten before may be given then, too.

    Raises
    ------
    InvalidInput
        A shard is not counted, or was counted with other content; or a count would fall below
        zero. Nothing is forgotten.
    ShardError
        A shard cannot be read.
    BoundExceeded
        The memory budget cannot hold the work.
    StoreError
        The store cannot be read or written.
    """
    store = store.latest()
    ledger = store.ledger()
    shards = list(counted_shards(ledger, shards))
    allowed = _forgotten_before(store, shards)
    if allowed and not allow_again:
        raise InvalidInput(
            f"{allowed[0]} was forgotten before, so it is not counted; let updates count it again "
            "by `forget --allow-again`"
        )
    shards = [shard for shard in shards if shard.url not in set(allowed)]
    require_known(ledger, [shard.url for shard in shards])
    # before anything is written: what has changed would leave a segment that nobody commits
    for shard, mark in zip(shards, _fingerprints(run, shards), strict=True):
        counted = ledger.find(shard.url)
        if counted is not None:
            require_counted(ledger, replace(counted, fingerprint=mark))
    again = f", {len(allowed)} forgotten before may be counted again" if allowed else ""
    text = message or f"forget: {len(shards)} shards{again}"
    recount = Recount("forget", text, lists=not allow_again, allowed=tuple(allowed))
    if not shards:
        return commit_recount(store, recount)
    with gathering_on(store, run) as gathering:
        gathering, _ = with_days(gathering, shards)
        removed = gather_counted(gathering, shards)
    return _checked(gathering, replace(recount, removed=removed))


def replace_changed(
    gathering: Gathering,
    changed: Sequence[tuple[Shard, ShardRecord]],
    old: Sequence[Shard],
    unique: bool = False,
    again: bool = False,
) -> MomentStore:
    """Take away what was counted of changed shards and count what they hold now, in one commit.

    Parameters
    ----------
    gathering : Gathering
        Where and how to read.
    changed : sequence of (Shard, ShardRecord)
        Shards with new content, as they were counted.
    old : sequence of Shard
        Copies of the old content at any URLs; they are told apart by their fingerprints. Content
        that a segment of the store holds alone needs none: that segment is dropped.
    unique : bool
        Whether to refuse new content that is counted under other names.
    again : bool
        Whether to count new content that was forgotten.

    Raises
    ------
    CopiesCounted
        Such content, where it is to be unique.
    InvalidInput
        The old content of a shard is not among `old`, nor alone in a segment.
    ShardError, BoundExceeded, StoreError
        As `forget`.
    """
    marks = _fingerprints(gathering.run, old)
    copies = dict(zip(marks, old, strict=True))
    store = gathering.store
    parts = store.ledger().parts
    records = [one for _, record in changed for one in (record, *parts.get(record.url, ()))]
    missing = [record for record in records if record.fingerprint not in copies]
    # a file whose last record went on has its old content still
    copies |= {mark: shard for shard, mark in _beginnings(gathering.run, changed, missing)}
    missing = [record for record in records if record.fingerprint not in copies]
    dropped = segments_of(store.commit, store.ledger(), missing)
    held = {record for part in dropped for record in store.ledger().records(part.id)}
    missing = [record for record in missing if record not in held]
    if missing:
        lines = "; ".join(f"{record.url} was counted as {record.fingerprint}" for record in missing)
        raise InvalidInput(
            f"the old content of {len(missing)} changed shards is not given, and no segment holds "
            f"it alone: {lines}; give copies of it with --old URL"
        )
    given = [record for record in records if record not in held]
    names = {copies[record.fingerprint].url: record.url for record in given}
    if len(names) < len(given):
        raise InvalidInput(
            "two changed shards had the same content before; replace them in two updates"
        )
    new, copied = [shard for shard, _ in changed], [copies[part.fingerprint] for part in given]
    newly, _ = with_days(gathering, new)
    # a copy is of the days of what it is a copy of
    formerly, _ = with_days(replace(gathering, names=names), copied)
    recount = Recount(
        "replace",
        f"replace: {len(changed)} shards",
        added=gather_all(newly, new),
        removed=gather_counted(formerly, copied),
        dropped=dropped,
        unique=unique,
        again=again,
    )
    return _checked(gathering, recount)


def gather_all(gathering: Gathering, shards: Sequence[Shard]) -> tuple[Segment, ...]:
    """Segments of all shards, those of different days apart; errors as `gather_group`."""
    waiting = gathering.bundles(by_days(shards, gathering.dates))
    segments: list[Segment] = []
    while waiting:
        done = len(shards) - sum(len(bundle.shards) for bundle in waiting)
        gathered = gather_group(gathering, waiting, done, len(shards))
        if gathered.segment is not None:
            segments.append(gathered.segment)
    return tuple(segments)


def gather_counted(gathering: Gathering, shards: Sequence[Shard]) -> tuple[Segment, ...]:
    """Segments of counted shards, those of different vocabularies apart; errors as `gather_all`."""
    segments: list[Segment] = []
    for own, part in as_counted(gathering, shards):
        segments += gather_all(own, part)
    return tuple(segments)


def _forgotten_before(store: MomentStore, shards: Sequence[Shard]) -> list[str]:
    """Those of some shards that are not counted, as they were forgotten."""
    forgotten, ledger = store.commit.forgotten, store.ledger()
    return [
        shard.url
        for shard in (shards if forgotten else ())
        if ledger.find(shard.url) is None and forgotten.reason(shard.url) is not None
    ]


def _fingerprints(run: Run, shards: Sequence[Shard]) -> list[str]:
    return run.looked_at("checking counted content", fingerprint, shards)


def _beginnings(
    run: Run, changed: Sequence[tuple[Shard, ShardRecord]], missing: Sequence[ShardRecord]
) -> Iterator[tuple[Shard, str]]:
    """What changed files begin with, where it is what was counted."""
    longer = [
        counted_part(shard, record)
        for shard, record in changed
        if record in missing and is_longer(shard, record)
    ]
    counted = {record.fingerprint for record in missing}
    marks = _fingerprints(run, longer)
    return ((one, mark) for one, mark in zip(longer, marks, strict=True) if mark in counted)


def _checked(gathering: Gathering, recount: Recount) -> MomentStore:
    """Commit after every row block was checked on the cluster."""
    store, run = gathering.store, gathering.run
    recount = recount.under(store.commit.lineage)
    for segment in recount.removed:
        for record in segment.shards:
            require_counted(store.ledger(), record)
    taken = [part for part in recount.references if part.sign < 0]
    rest = (*kept_segments(store.commit, recount), *taken)
    joining = joining_bytes(rest, store.layout)
    each = blocks_in_flight(store.layout, run.cluster.threads, run.cluster.memory, _COPIES, joining)
    calls = [(store.folder, rest, store.layout, index) for index in range(store.row_blocks)]
    run.calls("checking row blocks", require_non_negative, calls, each)
    return commit_recount(store, recount, rest)
