"""Purge shards from every version, model and file of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streaming_moments.errors import InvalidInput, ShardError, StreamingMomentsError, Unfinished
from streaming_moments.pipelines.aggregation.aggregation import gathering_on
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import summed
from streaming_moments.pipelines.jobs.forget import gather_as_counted
from streaming_moments.pipelines.jobs.rebase import counted_shard, looked_for
from streaming_moments.storage.files.created import CreationUnknown
from streaming_moments.storage.files.parts import first_byte
from streaming_moments.storage.files.patterns import names_among
from streaming_moments.storage.files.urls import is_signed
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.inbox.purging import (
    inboxes_of_others,
    left_in_inboxes,
    purge_inboxes,
    require_no_deletion,
    sealed_in_inboxes,
)
from streaming_moments.storage.log.commits import Commit, SegmentReference
from streaming_moments.storage.log.content_marks import tells_content
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.operations.compaction import linked_groups
from streaming_moments.storage.operations.purges.purge_records import (
    begin_purge,
    committed_names,
    end_purges,
)
from streaming_moments.storage.operations.purges.purging import (
    Holdings,
    Purge,
    Replacement,
    commit_purge,
    holdings_of,
    ledger_of_all,
    planned_purge,
    require_no_copies,
    require_no_origin,
)
from streaming_moments.storage.operations.purges.traces import Trace, erase_unnamed, traces_of
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import Shard, files_of, fingerprint
from streaming_moments.storage.store.changes import Recount, segments_of
from streaming_moments.storage.store.garbage import sweep
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 5


@dataclass(frozen=True)
class PurgePlan:
    """Shards of a purge, and where a store holds them.

    store : the store at its latest version
    ledger : records of all segments that any version names
    holdings : which segments, versions and models hold data of the shards
    before : shards that an earlier call purged, so that no version holds them
    read_at : for each name of a shard, the signed URL at which it is read
    """

    store: MomentStore
    ledger: Ledger
    holdings: Holdings
    before: frozenset[str]
    read_at: Mapping[str, str]

    @property
    def purge(self) -> Purge:
        """Data that the purge would delete."""
        if not self.holdings.names:
            return Purge((), (), (), (), False)
        return planned_purge(self.store.commit, self.holdings)


@dataclass(frozen=True)
class PurgeResult:
    """Result of a purge.

    store : the store at its latest version
    recounted : number of other shards that were recounted, because files of purged shards no longer
        existed
    erased : deleted files with traces of the shards: in inboxes, and files in the store's folder
        that do not belong to the store
    before : shards that an earlier call purged; this call deleted their remaining files
    """

    store: MomentStore
    purge: Purge
    recounted: int
    erased: tuple[str, ...]
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class PurgedShards:
    """Remains of purged shards.

    names : names under which the ledger lists the shards
    traces : data of the shards that remain in the store, and files whose content is unknown
    unread : shards whose content was not read, so that only their names were searched for
    """

    names: tuple[str, ...]
    traces: tuple[Trace, ...]
    unread: tuple[str, ...]


@dataclass(frozen=True)
class _Group:
    """Segments that share a vocabulary, some of them with shards to purge.

    sources : all segments of the group, including those whose counts are subtracted
    dropped : ids of segments that contain only shards to purge
    `purged`, `kept` : records of the shards in all other segments: of those to subtract, and of
        those to keep
    """

    sources: tuple[SegmentReference, ...]
    dropped: frozenset[str]
    purged: tuple[ShardRecord, ...]
    kept: tuple[ShardRecord, ...]


def plan_purge(
    store: MomentStore,
    shards: Sequence[str],
    storage_options: Mapping[str, object] | None = None,
) -> PurgePlan:
    """Find all data of some shards in all versions of a store.

    `shards` are URLs, patterns or folders, which need not exist any more. Raises InvalidInput for a
    URL that no version holds and no earlier call purged, or if `shards` names a shard, but not
    another counted shard with the same content.
    """
    store = store.latest()
    log, forgotten = store.log(), store.commit.forgotten
    ledger = ledger_of_all(store.folder, log, store.ledger())
    known = _known_names(log, ledger) | committed_names(store.folder, forgotten)
    named = {url: names_among(url, known, storage_options) for url in shards}
    signed = {names[0]: url for url, names in named.items() if is_signed(url)}
    names = frozenset(name for found in named.values() for name in found)
    held = holdings_of(log, ledger, names).known
    before = frozenset(name for name in names - held if forgotten.has_purged(name))
    _require_known(store, sorted(names - held - before), storage_options)
    holdings = holdings_of(log, ledger, names - before)
    require_no_copies(holdings)
    require_no_origin(store.commit, holdings)
    return PurgePlan(store, ledger, holdings, before, signed)


def look_for_purged(
    store: MomentStore,
    shards: Sequence[str],
    storage_options: Mapping[str, object] | None = None,
) -> PurgedShards:
    """Search the folder of a store for all traces of some shards, by name and content."""
    log = store.log()
    known = _known_names(log, ledger_of_all(store.folder, log))
    names, marks, unread = set[str](), set[tuple[str, int]](), list[str]()
    for url in shards:
        for name in names_among(url, known, storage_options):
            names.add(name)
            if first_byte(name) is not None:
                # search for a part of a growing file only by its name, not by its content
                unread.append(name)
                continue
            try:
                shard = Shard(name, 0, read_at=url if is_signed(url) else "")
                size = sum(state.size for state in files_of(shard, storage_options))
                marks.add((fingerprint(shard, storage_options), size))
            except ShardError:
                unread.append(name)
    traces = traces_of(store.folder, names, {mark for mark in marks if tells_content(mark[0])})
    inboxes = (Trace(*found) for found in left_in_inboxes(names, storage_options))
    return PurgedShards(tuple(sorted(names)), (*traces, *inboxes), tuple(sorted(unread)))


def purge(store: MomentStore, shards: Sequence[str], run: Run, message: str = "") -> PurgeResult:
    """Remove some shards from a store: their counts, models, versions and files.

    Shards of an inbox are also deleted in the inbox, with all traces of their documents. An inbox
    of another store does not change, and a message names it.

    If a segment holds other shards, too, the counts of the purged shards are subtracted exactly,
    so their files are read again. If these files no longer exist, the other shards of the segment
    are recounted. One commit drops all versions and models with any part of the shards, and then
    the files are deleted. An error before the commit changes nothing. If the process dies after
    the commit, or fails with Unfinished, the same call deletes the remaining files.

    `shards` are URLs, patterns or folders that any version counted. `message` must not name a
    shard. Raises InvalidInput in three cases. The first is a shard that no version holds and no
    earlier call purged. The second is a shard whose content is also counted under a name that
    `shards` lacks. The third is a shard that is missing or changed, if other shards of its segment
    are, too.
    """
    plan = plan_purge(store, shards, run.storage_options)
    names, recounted, done = plan.holdings.names, 0, plan.purge
    store = plan.store
    if names:
        owner = Owner.at(store.url, run.storage_options)
        require_no_deletion(names, run.storage_options, owner)
        replaced, recounted = _replaced(plan, _groups_of(plan), run)
        store, done = _committed(plan, replaced, message)
    everything = names | plan.before
    try:
        erased = _finished(store, everything, run)
        return PurgeResult(store.latest(), done, recounted, erased, tuple(sorted(plan.before)))
    except StreamingMomentsError as error:
        raise Unfinished(
            f"no version of {store.url} holds the {len(everything)} shards any more, but not all "
            f"of their files could be deleted ({error}); run the same purge again"
        ) from error


def _known_names(log: Sequence[Commit], ledger: Ledger) -> set[str]:
    """Return the names of all shards in any version."""
    counted = {url for table in ledger.tables.values() for url in table["url"].to_pylist()}
    left_out = {url for commit in log for url, _ in commit.skipped}
    return counted | left_out | {one.url for commit in log for one in commit.forgotten.shards}


def _committed(
    plan: PurgePlan, replaced: Sequence[Replacement], message: str
) -> tuple[MomentStore, Purge]:
    """Commit the purge; first write a record of its shards, which stays until the purge is done."""
    names, folder = plan.holdings.names, plan.store.folder
    record = begin_purge(folder, names)
    try:
        return commit_purge(plan.store, names, replaced, message, plan.ledger)
    except CreationUnknown as error:
        raise Unfinished(f"{error}; then run the same purge again") from error
    except StreamingMomentsError:
        folder.delete([record])
        raise


def _finished(store: MomentStore, names: frozenset[str], run: Run) -> tuple[str, ...]:
    """Delete the remaining files of purged shards, also those that a dead process left."""
    sweep(store.folder)
    erased = erase_unnamed(store.folder, names)
    owner = Owner.at(store.url, run.storage_options)
    for inbox, other in inboxes_of_others(names, owner, run.storage_options):
        run.tell(
            f"{inbox} belongs to the store {other} and still holds these shards; run the same "
            "purge there"
        )
    erased += purge_inboxes(names, run.storage_options, owner)
    end_purges(store.folder, names)
    return erased


def _require_known(
    store: MomentStore, unknown: Sequence[str], storage_options: Mapping[str, object] | None
) -> None:
    """Raise InvalidInput for shards that no version holds and that were not purged before."""
    if not unknown:
        return
    sealed = sealed_in_inboxes(unknown, storage_options)
    if sealed:
        raise InvalidInput(
            f"the service has accepted {sealed[0]}, but no version of {store.url} counts it; if "
            "this is the store of the service, run `streaming-moments accumulate --once`, then "
            "purge again"
        )
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    raise InvalidInput(
        f"no version of {store.url} holds {', '.join(unknown[:_SHOWN])}{more}, and it has purged "
        "no such shard; check the URLs and the store"
    )


def _groups_of(plan: PurgePlan) -> list[_Group]:
    store, holdings = plan.store, plan.holdings
    ledger = store.ledger()
    found = []
    for group in linked_groups(store.commit.segments, ledger):
        if not any(part.id in holdings.segments for part in group):
            continue
        records = list(ledger.of_segments(group))
        purged = [record for record in records if record.url in holdings.names]
        own = {part.id for part in group}
        alone = [part for part in segments_of(store.commit, ledger, purged) if part.id in own]
        held = {record for part in alone for record in ledger.records(part.id)}
        found.append(
            _Group(
                group,
                frozenset(part.id for part in alone),
                tuple(record for record in purged if record not in held),
                tuple(record for record in records if record.url not in holdings.names),
            )
        )
    return found


def _replaced(plan: PurgePlan, groups: Sequence[_Group], run: Run) -> tuple[list[Replacement], int]:
    """Make the segments that replace each group; also return the number of recounted shards."""
    wanted = [record for group in groups if group.kept for record in group.purged]
    there = _there(plan, wanted, run)
    replaced, recounted = [], 0
    for group in groups:
        if not group.kept:
            replaced.append(Replacement(group.sources, ()))
        elif all(record.url in there for record in group.purged):
            taken = _gathered(plan, [there[record.url] for record in group.purged], run)
            replaced.append(Replacement(group.sources, (_less(plan, group, taken, run),)))
        else:
            present = _present(plan, group, run)
            replaced.append(Replacement(group.sources, _gathered(plan, present, run)))
            recounted += len(present)
    return replaced, recounted


def _there(plan: PurgePlan, records: Sequence[ShardRecord], run: Run) -> dict[str, Shard]:
    """Find the counted shards that exist unchanged, by name."""
    if not records:
        return {}
    looked = [(record, plan.read_at.get(record.url, "")) for record in records]
    found = run.looked_at("looking for counted shards", _look, looked)
    return {shard.url: shard for shard, _ in found if shard is not None}


def _look(
    asked: tuple[ShardRecord, str], storage_options: Mapping[str, object] | None
) -> tuple[Shard | None, str]:
    record, read_at = asked
    return counted_shard(record, storage_options, read_at)


def _present(plan: PurgePlan, group: _Group, run: Run) -> list[Shard]:
    """Find the shards of the group that are not purged; they must be recounted."""
    found = looked_for(group.kept, run)
    missing = [
        f"{record.url} {why}"
        for record, (shard, why) in zip(group.kept, found, strict=True)
        if shard is None
    ]
    if missing:
        gone = [record.url for record in group.purged]
        raise InvalidInput(
            f"the purge must subtract {', '.join(gone[:_SHOWN])} from a group of shards, but some "
            "of these files are missing or changed, and so are other shards of the group: "
            f"{'; '.join(missing[:_SHOWN])}. Put back either the shards to purge or the others, "
            "or `forget` the others as well, then run the same purge again"
        )
    return [shard for shard, _ in found if shard is not None]


def _gathered(plan: PurgePlan, shards: Sequence[Shard], run: Run) -> tuple[Segment, ...]:
    """Count shards again and return their segments; each must give the same counts as before."""
    if not shards:
        return ()
    with gathering_on(plan.store, run) as gathering:
        return gather_as_counted(gathering, shards)


def _less(plan: PurgePlan, group: _Group, taken: Sequence[Segment], run: Run) -> Segment:
    """Return the sum of the segments of a group, without the counts of the purged shards."""
    away = Recount("purge", "", removed=tuple(taken)).under(plan.store.commit.lineage).references
    sources = [part for part in group.sources if part.id not in group.dropped]
    tables = {part.reference.id: table_of(part.shards) for part in taken}
    ledger = Ledger({**plan.store.ledger().tables, **tables})
    return summed(plan.store, [*sources, *away], ledger, run)
