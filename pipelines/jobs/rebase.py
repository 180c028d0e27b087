"""Rebase a store: choose new words and a new basis from a pilot, and count all shards again.

Stores of vectors get a new grid and sketch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.pipelines.aggregation.aggregation import Gathering, gathering_on
from streaming_moments.pipelines.aggregation.group_runner import gather_group
from streaming_moments.pipelines.aggregation.partitioning import by_days, with_days
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import CountingOptions, PilotOptions
from streaming_moments.pipelines.jobs.kinds.create_kinds import require_options_of
from streaming_moments.pipelines.jobs.kinds.options import KindOptions
from streaming_moments.pipelines.jobs.kinds.registry import redraw_of
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.files.parts import STANDARD_INPUT
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, ShardsAlreadyCounted, table_of
from streaming_moments.storage.operations.appended import counted_part, is_longer
from streaming_moments.storage.operations.lineages import (
    LineageAstray,
    LineageBehind,
    adopt,
    give_up,
    require_no_origins,
    stage_segment,
    staged_store,
)
from streaming_moments.storage.operations.windows import StatisticsSource, WindowedStore
from streaming_moments.storage.shards import PARTITIONS, Shard, files_of, fingerprint
from streaming_moments.storage.store.store import MomentStore

_SHOWN = 5
# Number of attempts to rebase; each further attempt follows a commit of another writer.
_ROUNDS = 20


class ShardsMissing(InvalidInput):
    """Counted shards no longer exist or have new content, so they cannot be counted again."""


@dataclass(frozen=True)
class RebaseResult:
    """Result of a rebase.

    store : the store at the commit that adopted the new lineage
    shards : number of recounted shards
    left_out : URLs of shards that the new lineage lacks, each with the reason
    resumed : whether an interrupted rebase was resumed
    """

    store: MomentStore
    shards: int
    left_out: tuple[tuple[str, str], ...]
    resumed: bool


def pilot_of(store: MomentStore) -> PilotOptions:
    """Return the options by which the vocabulary and basis of the store were made.

    Options that the store does not record have their defaults.

    Examples
    --------
    >>> from dataclasses import fields
    >>> sorted(field.name for field in fields(PilotOptions))[:2]
    ['core', 'length_weights']
    """
    written = store.commit.lineage.pilot or {}
    known = asdict(PilotOptions()) | dict(redraw_of(store).known(store))
    return PilotOptions(**{name: written.get(name, value) for name, value in known.items()})


def rebase(
    store: MomentStore,
    run: Run,
    options: PilotOptions | None = None,
    allow_missing: bool = False,
    halves: bool | None = None,
) -> RebaseResult:
    """Give a store a new lineage, with vocabulary and basis from a pilot of its counted shards.

    A store of vectors gets a new grid and sketch. Stores of other kinds are refused.

    The counts of the new lineage grow with each group of shards, while readers and writers use the
    old one. One commit then adopts the new lineage. If a rebase is killed, the next rebase
    continues it. Earlier versions keep the old lineage.

    Parameters
    ----------
    store : MomentStore
        Its latest version is extended.
    run : Run
        Cluster and options.
    options : PilotOptions, optional
        As in `create`; by default the options of the current vocabulary and basis.
    allow_missing : bool
        Leave out shards that are missing, changed or unreadable; otherwise they are an error.
    halves : bool, optional
        Whether to count half of the documents separately; by default as in the old lineage.

    Raises
    ------
    ShardsMissing
        Shards are missing or changed; the message names them.
    InvalidInput
        No counted shard exists, the store is of another kind, or options of words are given for
        vectors.
    ShardError, BoundExceeded, StoreError, WorkersLost, SchedulerLost
        As in `create` and `update`; groups that were counted stay.
    ForeignStatistics, StoreError
        Another rebase replaced this one.
    """
    store = store.latest()
    require_no_origins(store.commit)
    redraw = redraw_of(store)
    require_options_of(KindOptions(store.kind), CountingOptions(), options or PilotOptions())
    resumed = store.commit.staged is not None
    for _ in range(_ROUNDS):
        present, left_out = present_shards(store, run, allow_missing)
        if store.commit.staged is None:
            store = redraw.begun(store, present, options or pilot_of(store), halves, run)
        aside = staged_store(store)
        with gathering_on(aside, run) as gathering:
            gathering = replace(gathering, keep_going=allow_missing)
            store, known, bad = _gathered(store, gathering, present)
        left_out |= bad
        counted = staged_store(store).commit
        message = (
            f"rebase: {of_number(counted.shards, 'shard')}, "
            f"{of_number(counted.documents, 'document')}"
        )
        if left_out:
            message += f", {len(left_out)} left out"
        try:
            adopted = adopt(store, left_out, message, known)
        except LineageBehind:
            store = store.latest()
        except LineageAstray:
            store = give_up(store, "rebase: given up")
        else:
            return RebaseResult(adopted, counted.shards, tuple(left_out.items()), resumed)
    raise InvalidInput(
        f"other writers changed the shards of {store.url} {_ROUNDS} times while it was rebased; "
        "run the rebase again when the other writers have finished"
    )


def counted_shard(
    record: ShardRecord, storage_options: Mapping[str, object] | None = None, read_at: str = ""
) -> tuple[Shard | None, str]:
    """Return a counted shard if its files still have the counted content, or None and a reason.

    `read_at` is a signed URL at which the shard can be read.
    """
    if record.url.startswith((PARTITIONS, STANDARD_INPUT)):
        return None, "is not a file"
    try:
        files = files_of(Shard(record.url, record.size, read_at=read_at), storage_options)
    except ShardError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None, "is gone"
        raise
    if not files:
        return None, "is gone"
    folder = record.url.endswith("/")
    size = sum(state.size for state in files)
    shard = Shard(record.url, size, None if folder else files[0].etag, read_at)
    if is_longer(shard, record):
        shard, size = counted_part(shard, record), record.size
    if size == record.size and fingerprint(shard, storage_options) == record.fingerprint:
        return shard, ""
    return None, "has changed since it was counted"


def looked_for(records: Sequence[ShardRecord], run: Run) -> list[tuple[Shard | None, str]]:
    """Call `counted_shard` for each record, on the cluster."""
    return run.looked_at("looking for counted shards", counted_shard, records)


def present_shards(
    source: StatisticsSource, run: Run, allow_missing: bool
) -> tuple[list[Shard], dict[str, str]]:
    """Return the counted shards that exist unchanged, and what is wrong with each other shard.

    Shards that were counted by other stores (origins) are never read, even if they could be. Raises
    ShardsMissing if a shard is missing or changed and `allow_missing` is False. Raises InvalidInput
    if no shard exists.
    """
    every = source.ledger()
    parts = source.segments if isinstance(source, WindowedStore) else source.commit.segments
    theirs = [part for part in parts if part.origin is not None]
    missing = {one.url: "is at an origin" for one in every.of_segments(theirs)} if theirs else {}
    if missing and not allow_missing:
        names = sorted({(part.origin or "").partition("/")[0] for part in theirs})
        raise ShardsMissing(
            f"{len(missing)} of {of_number(len(every), 'counted shard')} "
            f"{'is' if len(missing) == 1 else 'are'} at {', '.join(names)}, and a rebase does not "
            "read the documents of other stores; give SHARDS to read, or use only those of this "
            "store with --allow-missing"
        )
    records = [one for one in every if one.url not in missing]
    found = looked_for(records, run)
    missing |= {
        record.url: reason
        for record, (shard, reason) in zip(records, found, strict=True)
        if shard is None
    }
    present = [shard for shard, _ in found if shard is not None]
    if missing and not allow_missing:
        lines = "; ".join(f"{url} {reason}" for url, reason in list(missing.items())[:_SHOWN])
        more = f"; and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ShardsMissing(
            f"{len(missing)} of {of_number(len(records), 'counted shard')} "
            f"{'is' if len(missing) == 1 else 'are'} missing or changed: "
            f"{lines}{more}; put them back, or leave them out with --allow-missing"
        )
    if not present:
        raise InvalidInput(
            f"no shard of version {source.version} of the store exists any more, so there is "
            "nothing to read; run `streaming-moments update` first"
        )
    return present, missing


def _gathered(
    store: MomentStore, gathering: Gathering, present: Sequence[Shard]
) -> tuple[MomentStore, Ledger, dict[str, str]]:
    """Count the shards that the new lineage lacks; return store, ledger and bad shards."""
    known = gathering.store.ledger()
    done = set(known.counted([shard.url for shard in present]))
    lacking = [shard for shard in present if shard.url not in done]
    gathering, undated = with_days(gathering, lacking)
    bad = {error.url: error.reason for error in undated}
    readable = [shard for shard in lacking if shard.url not in bad]
    waiting = gathering.bundles(by_days(readable, gathering.dates))
    counted = len(done)
    while waiting:
        gathered = gather_group(gathering, waiting, counted + len(bad), len(present))
        bad |= {error.url: error.reason for error in gathered.bad}
        if gathered.segment is None:
            continue
        segment, shards = gathered.segment, gathered.segment.shards
        try:
            store = stage_segment(
                store,
                segment,
                f"rebase: {of_number(len(shards), 'shard')} counted in the new lineage",
                known,
            )
            known = Ledger({**known.tables, segment.reference.id: table_of(shards)})
            counted += len(shards)
        except ShardsAlreadyCounted as conflict:
            # another rebase of the same lineage has already counted these shards
            again = [shard for shard in gathered.shards if shard.url not in conflict.urls]
            waiting.extendleft(reversed(gathering.bundles(again)))
            store = store.latest()
    return store, known, bad
