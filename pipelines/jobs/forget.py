"""Forget shards, or replace their content: their counts are subtracted exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from streaming_moments.errors import InvalidInput, short
from streaming_moments.pipelines.aggregation.aggregation import Gathering, gathering_on
from streaming_moments.pipelines.aggregation.group_runner import gather_group
from streaming_moments.pipelines.aggregation.partitioning import as_counted, by_days, with_days
from streaming_moments.pipelines.cluster.memory import blocks_in_flight
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import replaced_by_sum, summed
from streaming_moments.pipelines.jobs.rebase import looked_for
from streaming_moments.printing.plural import of_number, plural
from streaming_moments.storage.log.commits import Lineage, SegmentReference
from streaming_moments.storage.log.covering import covered
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, read_ledger
from streaming_moments.storage.operations.appended import (
    counted_part,
    counted_shards,
    is_longer,
)
from streaming_moments.storage.operations.compaction import linked_groups
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

_COPIES = 2  # a task holds a row block this many times: the sum, and the block of one segment
_AT_ONCE = 64  # read the records of this many segments together
_SHOWN = 5


@dataclass(frozen=True)
class _Taken:
    """How counted shards are removed from a version.

    removed : segments to subtract, with the counts of the shards
    dropped : segments of the version that are dropped whole
    again : new segments with the other shards of the dropped segments
    """

    removed: tuple[Segment, ...]
    dropped: tuple[SegmentReference, ...]
    again: tuple[Segment, ...]


def forget(
    store: MomentStore,
    shards: Sequence[Shard],
    run: Run,
    message: str = "",
    allow_again: bool = False,
) -> MomentStore:
    """Subtract counted shards in one commit; their documents are read once more.

    Later updates and nightly jobs skip these shards, by name and by content.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    shards : sequence of Shard
        Counted shards with unchanged content.
    run : Run
        Cluster and options.
    message : str
        Message for the log.
    allow_again : bool
        Let updates count the shards again; this also accepts shards that are forgotten already.

    Raises
    ------
    InvalidInput
        A shard is not counted, or was counted with other content, or a count would fall below zero.
        Nothing is forgotten.
    ShardError
        A shard cannot be read.
    BoundExceeded
        The work does not fit into the memory budget.
    StoreError
        The store cannot be read or written.
    """
    store = store.latest()
    ledger = store.ledger()
    shards = list(counted_shards(ledger, shards))
    allowed = _forgotten_before(store, shards)
    if allowed and not allow_again:
        raise InvalidInput(
            f"{allowed[0]} is already forgotten",
            "to let updates count it again, run {forget.allow_again}",
        )
    shards = [shard for shard in shards if shard.url not in set(allowed)]
    require_known(ledger, [shard.url for shard in shards])
    # check this before anything is written, because a changed shard would leave an uncommitted
    # segment
    for shard, mark in zip(shards, _fingerprints(run, shards), strict=True):
        counted = ledger.find(shard.url)
        if counted is not None:
            require_counted(ledger, replace(counted, fingerprint=mark))
    again = f", {len(allowed)} already forgotten may be counted again" if allowed else ""
    text = message or f"forget: {len(shards)} {plural(len(shards), 'shard')}{again}"
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
    others_again: bool = False,
) -> MomentStore:
    """Subtract the old counts of changed shards and count their current content, in one commit.

    changed : shards with new content, each with its record in the ledger
    old : copies of the old content at any URLs, matched by fingerprint; not needed for content
        whose counts are found in the store (see `_taken`)
    unique : whether to refuse new content that is counted under other names (CopiesCounted)
    again : whether to count new content that was forgotten
    others_again : whether to count all other shards of a segment again if there is no other way

    Raises InvalidInput with the name of a shard whose counts cannot be found. Other errors as in
    `forget`.
    """
    records = _with_parts(gathering.store, [record for _, record in changed])
    copies = dict(zip(_fingerprints(gathering.run, old), old, strict=True))
    missing = [record for record in records if record.fingerprint not in copies]
    # A file that has only become longer still begins with the old content: use this beginning as a
    # copy.
    copies |= {mark: shard for shard, mark in _beginnings(gathering.run, changed, missing)}
    gathering, taken = _taken(gathering, records, copies, others_again)
    new = [shard for shard, _ in changed]
    newly, _ = with_days(gathering, new)
    recount = Recount(
        "replace",
        f"replace: {len(changed)} {plural(len(changed), 'shard')}",
        added=(*gather_all(newly, new), *taken.again),
        removed=taken.removed,
        dropped=taken.dropped,
        unique=unique,
        again=again,
    )
    return _checked(gathering, recount)


def forget_counted(
    store: MomentStore,
    urls: Sequence[str],
    run: Run,
    message: str = "",
    old: Sequence[Shard] = (),
) -> MomentStore:
    """Subtract counted shards in one commit, whatever their files contain now.

    `urls` are names in the ledger. `old` and the errors are as in `replace_changed`. All other
    shards of a segment are counted again if there is no other way. After an error nothing is
    forgotten.
    """
    store = store.latest()
    require_known(store.ledger(), urls)
    found = (store.ledger().find(url) for url in urls)
    records = _with_parts(store, [record for record in found if record is not None])
    copies = dict(zip(_fingerprints(run, old), old, strict=True))
    with gathering_on(store, run) as gathering:
        gathering, taken = _taken(gathering, records, copies, others_again=True)
        text = message or f"forget: {len(urls)} {plural(len(urls), 'shard')}"
        recount = Recount("forget", text, taken.again, taken.removed, taken.dropped)
        return _checked(gathering, recount)


def _with_parts(store: MomentStore, records: Sequence[ShardRecord]) -> list[ShardRecord]:
    """Return records of files, and of the parts that were appended to these files later."""
    parts = store.ledger().parts
    return [one for record in records for one in (record, *parts.get(record.url, ()))]


def _taken(
    gathering: Gathering,
    records: Sequence[ShardRecord],
    copies: Mapping[str, Shard],
    others_again: bool,
) -> tuple[Gathering, _Taken]:
    """Find how to remove counted shards: from their content, or from counts in the store.

    A segment that holds only these shards is dropped. Otherwise, if a segment of any version holds
    a shard alone, its counts are subtracted. Otherwise the segment is dropped and its other shards
    are counted again, if requested.
    """
    missing = [record for record in records if record.fingerprint not in copies]
    dropped = segments_of(gathering.store.commit, gathering.store.ledger(), missing)
    held = _records_of(gathering.store, dropped)
    alone = _recovered(gathering.store, [one for one in missing if one not in held], gathering.run)
    missing = [one for one in missing if one not in held and one not in alone]
    again: tuple[Segment, ...] = ()
    if missing and not others_again:
        raise InvalidInput(
            f"the old content of {of_number(len(missing), 'changed shard')} is needed, "
            f"because no segment holds its counts alone: {_as_counted(missing)}",
            "give copies of it with {update.old}",
        )
    if missing:
        gathering, sums = _sums_of(gathering, missing)
        dropped = segments_of(gathering.store.commit, gathering.store.ledger(), records)
        dropped = (*sums, *(part for part in dropped if part not in sums))
        held = _records_of(gathering.store, dropped)
        others = sorted(held - {*records}, key=lambda one: one.url)
        again = _counted_again(gathering, missing, others)
    removed = [segment for record, segment in alone.items() if record not in held]
    given = [record for record in records if record not in held and record not in alone]
    names = {copies[record.fingerprint].url: record.url for record in given}
    if len(names) < len(given):
        raise InvalidInput(
            "two changed shards had the same content before; replace them in two updates"
        )
    copied = [copies[record.fingerprint] for record in given]
    # give a copy of old content the days of the original
    formerly, _ = with_days(replace(gathering, names=names), copied)
    removed += gather_counted(formerly, copied)
    return gathering, _Taken(tuple(removed), dropped, again)


def _as_counted(records: Sequence[ShardRecord]) -> str:
    return "; ".join(
        f"{one.url} was counted as {short(one.fingerprint)}" for one in records[:_SHOWN]
    )


def _records_of(store: MomentStore, parts: Sequence[SegmentReference]) -> set[ShardRecord]:
    return {record for part in parts for record in store.ledger().records(part.id)}


def _sums_of(
    gathering: Gathering, records: Sequence[ShardRecord]
) -> tuple[Gathering, tuple[SegmentReference, ...]]:
    """Find the segments that hold these records.

    Segments that subtract shards of one another form a group. A group that holds records is first
    replaced by its sum.
    """
    store, urls = gathering.store, [record.url for record in records]
    mine = [part for part in store.commit.segments if part.origin is None]
    for group in linked_groups(mine, store.ledger()):
        if len(group) > 1 and any(store.ledger().holds_any(part.id, urls) for part in group):
            store = replaced_by_sum(store, group, gathering.run)
    parts = [
        part
        for part in store.commit.segments
        if part.origin is None and store.ledger().holds_any(part.id, urls)
    ]
    return replace(gathering, store=store), tuple(parts)


def _counted_again(
    gathering: Gathering, missing: Sequence[ShardRecord], others: Sequence[ShardRecord]
) -> tuple[Segment, ...]:
    """Count `others` again, into new segments; each shard must still exist unchanged."""
    found = looked_for(others, gathering.run)
    gone = [one.url for one, (shard, _) in zip(others, found, strict=True) if shard is None]
    if gone:
        raise InvalidInput(
            f"the counted content no longer exists ({_as_counted(missing)}), nor do other "
            f"shards of its segment ({', '.join(gone[:_SHOWN])})",
            "put them back, or return to a version that counts the present content with {rollback}",
        )
    return gather_as_counted(gathering, [shard for shard, _ in found if shard is not None])


def gather_as_counted(gathering: Gathering, shards: Sequence[Shard]) -> tuple[Segment, ...]:
    """Count shards again, and return their segments; the counts must be the same as before."""
    gathering, _ = with_days(gathering, shards)
    segments = gather_counted(gathering, shards)
    for segment in segments:
        for record in segment.shards:
            require_counted(gathering.store.ledger(), record)
    return segments


def gather_all(gathering: Gathering, shards: Sequence[Shard]) -> tuple[Segment, ...]:
    """Count shards, and return their segments, separated by days; errors as in `gather_group`."""
    waiting = gathering.bundles(by_days(shards, gathering.dates))
    segments: list[Segment] = []
    while waiting:
        done = len(shards) - sum(len(bundle.shards) for bundle in waiting)
        gathered = gather_group(gathering, waiting, done, len(shards))
        if gathered.segment is not None:
            segments.append(gathered.segment)
    return tuple(segments)


def gather_counted(gathering: Gathering, shards: Sequence[Shard]) -> tuple[Segment, ...]:
    """Count shards again, each with its earlier vocabulary, and return their segments.

    Errors as in `gather_all`.
    """
    segments: list[Segment] = []
    for own, part in as_counted(gathering, shards):
        segments += gather_all(own, part)
    return tuple(segments)


def _forgotten_before(store: MomentStore, shards: Sequence[Shard]) -> list[str]:
    """Return the URLs of shards that are not counted because they are forgotten."""
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
    """Return the counted beginnings of files that have grown: shards and their fingerprints.

    Leaves out files whose beginning has changed.
    """
    longer = [
        counted_part(shard, record)
        for shard, record in changed
        if record in missing and is_longer(shard, record)
    ]
    counted = {record.fingerprint for record in missing}
    marks = _fingerprints(run, longer)
    return ((one, mark) for one, mark in zip(longer, marks, strict=True) if mark in counted)


def _checked(gathering: Gathering, recount: Recount) -> MomentStore:
    """Commit a recount, after the cluster has checked that no count falls below zero."""
    store, run = gathering.store, gathering.run
    recount = recount.under(store.commit.lineage)
    for segment in recount.removed:
        for record in segment.shards:
            require_counted(store.ledger(), record)
    taken = [part for part in recount.references if part.sign < 0]
    rest = (*kept_segments(store.commit, recount), *taken)
    joining = joining_bytes(rest, store.layout)
    each = blocks_in_flight(store.layout, run.cluster.threads, run.cluster.memory, _COPIES, joining)
    parts = covered(rest, store.commit.sums)
    calls = [(store.folder, parts, store.layout, index) for index in range(store.row_blocks)]
    run.calls("checking row blocks", require_non_negative, calls, each)
    return commit_recount(store, recount, rest)


def _recovered(
    store: MomentStore, records: Sequence[ShardRecord], run: Run
) -> dict[ShardRecord, Segment]:
    """Copy the counts of shards to new segments, each from a segment that holds this shard alone.

    After a rollback a version may count content that was replaced or deleted since. Subtracting it
    needs no copy of that content, because the earlier subtraction stored its statistics.

    Searches all stored versions, the latest first. `records` are from the latest version.
    Shards that no segment of the same vocabulary holds alone are left out.
    """
    wanted = {record: _words_of(store, record) for record in records}
    found: dict[ShardRecord, Segment] = {}
    candidates, looked_at = _alone(store), 0
    while len(found) < len(wanted) and (parts := list(islice(candidates, _AT_ONCE))):
        ledger = read_ledger(store.folder, parts, Ledger({}))
        for part in parts:
            (record,) = ledger.records(part.id)
            if record not in found and wanted.get(record, ()) == (part.words,):
                found[record] = summed(store, [part], ledger, run)
        looked_at += len(parts)
        run.progress.advance("looking for counted content in other versions", looked_at, looked_at)
    return found


def _words_of(store: MomentStore, record: ShardRecord) -> tuple[int | None, ...]:
    """Return the distinct values of `words` (vocabulary size) of segments that count a shard."""
    ledger, parts = store.ledger(), store.commit.segments
    return tuple(
        words
        for words in dict.fromkeys(part.words for part in parts)
        if ledger.of_segments([part for part in parts if part.words == words]).find(record.url)
    )


def _alone(store: MomentStore) -> Iterator[SegmentReference]:
    """Yield segments of one shard, from any version, with `words` as in the latest version."""
    head = store.commit.lineage
    words = {head.basis: None, **{era.basis: era.words for era in head.eras}}
    seen = set[str]()
    for commit in store.log():
        lineage = commit.lineage
        if _cut(lineage) != _cut(head):
            continue
        for part in commit.segments:
            basis = lineage.basis if part.words is None else lineage.era(part.words).basis
            if part.shards == 1 and part.id not in seen and basis in words:
                seen.add(part.id)
                # Include segments that were copied from an origin, because statistics do not depend
                # on the store that counted them.
                yield replace(part, sign=1, words=words[basis], origin=None)


def _cut(lineage: Lineage) -> tuple[object, ...]:
    """Return what two lineages must have in common so that their segments can be added up."""
    halves = lineage.halves, lineage.halves_by_content
    return lineage.kind, lineage.row_blocks, lineage.codocuments, halves
