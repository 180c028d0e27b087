"""Update a store: count each new shard once, and commit the shards group by group."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streaming_moments.errors import (
    InvalidInput,
    NoRoom,
    PiecesOverlap,
    ShardError,
    SumExceeded,
    printable,
    short,
)
from streaming_moments.pipelines.cluster.memory import UpdatePlan
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.listed.compare import Compared, compare
from streaming_moments.pipelines.jobs.listed.forgotten import (
    Reasons,
    tell_forgotten,
    without_forgotten,
)
from streaming_moments.pipelines.jobs.listed.moved import (
    Moved,
    advice,
    refusal_of_moved,
    without_moved,
)
from streaming_moments.printing.plural import of_number, plural
from streaming_moments.printing.remedies import remedy
from streaming_moments.storage.files.parts import first_byte
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.kinds.registry import may_grow
from streaming_moments.storage.log.forgotten import ShardsForgotten
from streaming_moments.storage.log.ledger import CopiesCounted, ShardRecord, ShardsAlreadyCounted
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

if TYPE_CHECKING:
    from streaming_moments.pipelines.aggregation.aggregation import Gathering
    from streaming_moments.pipelines.aggregation.bundles import Bundle
    from streaming_moments.pipelines.aggregation.group_runner import Gathered

_SHOWN = 20
_IN_COMMAND = 3  # when a message suggests a command, name at most this many shards in it


@dataclass(frozen=True)
class UpdateResult:
    """Result of an update.

    store : the store at the last commit of the update
    counted, already : numbers of shards that this update counted, and that were counted earlier
    documents, tokens, outside : numbers of documents, vocabulary tokens and other tokens that this
        update read
    bad : shards left out because they are unreadable
    replaced : shards that had been counted with other content, which was subtracted
    copies : shards that this update counted although their content is also counted under another
        name, each with that name
    forgotten : shards left out, each with "forgotten" or "purged" as the reason
    unrecorded : shards of `bad` that no commit names yet. The next commit names them, so none are
        left at the end of the update
    seconds : thread time of the tokeniser, and of all reading including the tokeniser
    """

    store: MomentStore
    counted: int
    already: int
    documents: int
    tokens: int
    outside: int
    bad: tuple[ShardError, ...]
    replaced: int = 0
    copies: tuple[tuple[str, str], ...] = ()
    forgotten: tuple[tuple[str, str], ...] = ()
    unrecorded: tuple[ShardError, ...] = ()
    seconds: tuple[float, float] = (0.0, 0.0)

    @property
    def tokeniser_share(self) -> float | None:
        """Share of the reading time that the tokeniser took.

        None for the default tokeniser, or if the time was not measured.
        """
        cutting, reading = self.seconds
        # not measured, or the store has no tokeniser because its records are no texts
        if not cutting:
            return None
        policy = self.store.policy
        return None if policy is None or policy.is_compiled else round(cutting / reading, 3)


def update(
    store: MomentStore,
    shards: Sequence[Shard],
    run: Run,
    skip_bad_shards: bool = False,
    plan: UpdatePlan | None = None,
    old: Sequence[Shard] | None = None,
    unique: bool = False,
    include_forgotten: bool = False,
    others_again: bool = False,
    include_moved: bool = False,
) -> UpdateResult:
    """Count the shards that were not counted before, except forgotten ones.

    Shards form groups, each with a commit. Each task reads one large shard or many small ones, and
    adds to sums that stay on the workers. Then, for each row block, one task adds up the sums of
    all workers and writes them. A crash loses at most the group that is being counted.

    Parameters
    ----------
    store : MomentStore
        The store; its latest version is extended.
    shards : sequence of Shard
        Shards from `list_shards`.
    run : Run
        Cluster and options.
    skip_bad_shards : bool
        Leave out and record bad shards, and commit the others; otherwise stop. A shard is bad if it
        is unreadable, would make a sum overflow, or has pieces of sequences that overlap counted
        pieces.
    plan : UpdatePlan, optional
        How memory is divided; by default from the budget of the cluster.
    old : sequence of Shard, optional
        Old content of changed shards, which new content replaces in one commit. This old content is
        not needed if a segment of any version holds only the counts of this shard. Otherwise a
        changed shard without old content is an error.
    unique : bool
        Whether to treat a shard as bad if its content is counted under another name.
    include_forgotten : bool
        Count forgotten and purged shards as well, and remove them from the list of forgotten
        shards.
    others_again : bool
        Whether to recount all other shards of a segment if there is no other way to find old
        content; otherwise the lack of old content is an error.
    include_moved : bool
        Count moved shards again. By default such a shard is bad: it has the file name and content
        of a counted shard whose file no longer exists. See `rename`.

    Raises
    ------
    BoundExceeded
        The work does not fit into the memory budget.
    SumExceeded
        A sum of the store would overflow; the message names the shard. Earlier groups are
        committed.
    ShardError, InvalidInput
        Shards are unreadable or changed since they were counted. The message names all such shards
        of the group, and gives the number of shards in committed groups. Or a shard lies in a
        folder that is counted as a shard, or is a folder in which a counted shard lies.
    ShardsForgotten
        The new content of a counted shard was forgotten.
    StoreError
        The store cannot be written.
    """
    store = store.latest()
    compared = compare(store.ledger(), shards, run, store.form if may_grow(store) else None)
    for url, nbytes in compared.waiting:
        run.tell(
            f"{url}: its last {nbytes:,} bytes are not a whole line yet; a later update counts them"
        )
    if compared.changed and old is None:
        raise _all_changed(store, [(record, mark) for _, record, mark in compared.changed])
    left, forgotten = compared.new, Reasons()
    if not include_forgotten:
        left, forgotten = without_forgotten(store.commit.forgotten, compared.new, run)
        compared = replace(compared, new=left)
    moved: tuple[Moved, ...] = ()
    if not include_moved:
        left, moved = without_moved(store.ledger(), compared.new, run)
        compared = replace(compared, new=left)
    if moved and not skip_bad_shards:
        raise refusal_of_moved(moved, store.url)
    for line in advice(moved, store.url):
        run.tell(line)
    bad = tuple(one.error for one in moved)
    result = UpdateResult(store, 0, compared.same, 0, 0, 0, bad, forgotten=forgotten)
    result = replace(result, unrecorded=bad)
    if compared.new or compared.changed:
        # imported here so that an update without new shards starts faster
        from streaming_moments.pipelines.aggregation.aggregation import gathering_on

        with gathering_on(store, run, plan) as gathering:
            gathering = replace(gathering, keep_going=skip_bad_shards)
            again = include_forgotten
            result = _updated(result, gathering, compared, old, unique, again, others_again)
    elif bad:
        from streaming_moments.pipelines.aggregation.group_runner import Gathered

        result = _committed(result, Gathered(None, (), ()), last=True)
    tell_forgotten(result.forgotten, run)
    return result


def _updated(
    result: UpdateResult,
    gathering: Gathering,
    compared: Compared,
    old: Sequence[Shard] | None,
    unique: bool,
    again: bool,
    others_again: bool,
) -> UpdateResult:
    from streaming_moments.pipelines.aggregation.group_runner import Gathered
    from streaming_moments.pipelines.aggregation.partitioning import by_days, with_days
    from streaming_moments.pipelines.jobs.forget import replace_changed

    if compared.changed and old is not None:
        changed = [(shard, record) for shard, record, _ in compared.changed]
        strict = replace(gathering, keep_going=False)
        store = replace_changed(strict, changed, old, unique, again, others_again)
        result = replace(result, store=store, replaced=len(changed))
    # form groups of shards of the same day, so that a refit can choose among days
    gathering, undated = with_days(gathering, compared.new)
    left_out = {error.url for error in undated}
    readable = [shard for shard in compared.new if shard.url not in left_out]
    waiting = gathering.bundles(by_days(readable, gathering.dates))
    result = _committed(result, Gathered(None, (), undated))
    # Divide a group into two halves if pieces of sequences overlap in the group, or if the counts
    # of the group would overflow the integer sums of the store. Read the smaller groups before the
    # next group.
    reading = [(gathering, waiting)]
    while reading:
        gathering, waiting = reading[-1]
        if not waiting:
            reading.pop()
            continue
        if unique:
            gathering = replace(
                gathering, unique=result.store.ledger().contents(compared.new.sizes)
            )
        try:
            total = len(compared.new)
            result, apart = _commit_group(result, waiting, gathering, total, again)
        except (ShardError, InvalidInput, SumExceeded) as error:
            if not result.counted:
                raise
            raise _stopped(error, result.counted) from error
        if apart:
            plan = replace(gathering.plan, group_shards=len(apart) // 2)
            gathering = replace(gathering, plan=plan)
            reading.append((gathering, gathering.bundles(apart)))
    return _committed(result, Gathered(None, (), ()), last=True)


def _commit_group(
    result: UpdateResult, waiting: deque[Bundle], gathering: Gathering, total: int, again: bool
) -> tuple[UpdateResult, Sequence[Shard]]:
    """Count and commit one group, without shards that another writer counted meanwhile.

    Shards that were forgotten, perhaps meanwhile, are left out, too.

    Returns the shards in two cases, so that the caller reads them in smaller groups: if pieces of
    sequences overlap in the group, or if its counts would overflow the integer sums of the store. A
    group of a single such shard cannot be divided, so the shard is bad.
    """
    from streaming_moments.pipelines.aggregation.group_runner import Gathered, gather_group

    before, shards = result.counted + len(result.bad), _shards_of(waiting)
    try:
        gathered = gather_group(gathering, waiting, before, total)
    except SumExceeded as full:
        left = _shards_of(waiting)
        taken = [shard for url, shard in shards.items() if url not in left]
        return _without_room(result, gathering, taken, (), full)
    if gathered.segment is None and not gathered.bad:
        return result, ()
    try:
        return _committed(result, gathered, gathering.unique is not None, again), ()
    except SumExceeded as full:
        return _without_room(result, gathering, gathered.shards, gathered.bad, full)
    except PiecesOverlap as overlap:
        if not gathering.keep_going:
            left_out = remedy("{update.skip_bad_shards} leaves out overlapping shards")
            raise InvalidInput(remedy("{overlap}", overlap=overlap), left_out) from overlap
        bad, apart = gathered.bad, gathered.shards
        if len(apart) == 1:
            bad, apart = (*bad, ShardError(apart[0].url, *overlap.args[:1])), ()
        # Sort the shards, so that of two overlapping shards the same one counts, whatever the
        # order in which they are listed.
        return _committed(result, Gathered(None, (), bad)), sorted(apart, key=lambda one: one.url)
    except (ShardsAlreadyCounted, CopiesCounted, ShardsForgotten) as conflict:
        store = result.store.latest()
        # leave out only shards that another writer counted; copies of counted shards are found when
        # the group is read again
        counted = conflict.urls if isinstance(conflict, ShardsAlreadyCounted) else ()
        _require_same(store, gathered, counted)
        forgotten = conflict.reasons if isinstance(conflict, ShardsForgotten) else ()
        gone = {*counted, *(url for url, _ in forgotten)}
        rest = [shard for shard in gathered.shards if shard.url not in gone]
        waiting.extendleft(reversed(gathering.bundles(rest)))
        result = replace(
            result,
            store=store,
            already=result.already + len(counted),
            forgotten=(*result.forgotten, *forgotten),
        )
        # keep the errors of unreadable shards, which are not read again
        return _committed(result, replace(gathered, segment=None, shards=())), ()


def _shards_of(waiting: deque[Bundle]) -> dict[str, Shard]:
    return {shard.url: shard for bundle in waiting for shard in bundle.shards}


def _without_room(
    result: UpdateResult,
    gathering: Gathering,
    shards: Sequence[Shard],
    bad: tuple[ShardError, ...],
    full: SumExceeded,
) -> tuple[UpdateResult, Sequence[Shard]]:
    """Return shards that together would overflow the integer sums of the store.

    The caller then reads them in smaller groups. A shard that alone would overflow a sum is bad.
    """
    from streaming_moments.pipelines.aggregation.group_runner import Gathered

    if not shards:
        raise full
    if len(shards) > 1:
        return _committed(result, Gathered(None, (), bad)), sorted(shards, key=lambda one: one.url)
    (shard,) = shards
    if not gathering.keep_going:
        raise SumExceeded(
            remedy("{url}: {full}", url=printable(shard.url), full=full),
            "{update.skip_bad_shards} leaves out shards that would overflow the sums",
        ) from full
    return _committed(result, Gathered(None, (), (*bad, NoRoom(shard.url, *full.args)))), ()


def _stopped(
    error: ShardError | InvalidInput | SumExceeded, counted: int
) -> ShardError | InvalidInput | SumExceeded:
    """Return the error, with the number of shards that were committed before the error."""
    are = "is" if counted == 1 else "are"
    done = f"{of_number(counted, 'shard')} before it {are} counted and committed; "
    done += "the same command counts the rest"
    if isinstance(error, ShardError):
        return ShardError(*error.args, done)
    kind = SumExceeded if isinstance(error, SumExceeded) else InvalidInput
    return kind(remedy("{error}", error=error), done)


def _require_same(store: MomentStore, gathered: Gathered, urls: Sequence[str]) -> None:
    """Raise an error if another writer has counted some of the shards with other content."""
    records = gathered.segment.shards if gathered.segment else ()
    mine = {record.url: record.fingerprint for record in records}
    # ignore parts of a growing file: two writers may see different parts, and the next update
    # counts the following parts
    counted = ((url, store.ledger().find(url)) for url in urls if first_byte(url) is None)
    changed = [
        (record, mine[url])
        for url, record in counted
        if record is not None and record.fingerprint != mine[url]
    ]
    if changed:
        raise _all_changed(store, changed)


def _all_changed(store: MomentStore, changed: Sequence[tuple[ShardRecord, str]]) -> InvalidInput:
    lines = "; ".join(
        f"{record.url} was counted as {short(record.fingerprint)} and is now {short(mark)}"
        for record, mark in changed[:_SHOWN]
    )
    more = f"; and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    shards = [record.url for record, _ in changed[:_IN_COMMAND]]
    command = shlex.join(
        ["streaming-moments", "update", shard_name(store.url), *shards, "--replace"]
    )
    others = ", and the others in the same way" if len(changed) > _IN_COMMAND else ""
    return InvalidInput(
        f"counted with other content: {of_number(len(changed), 'shard')}: {lines}{more}.",
        remedy(
            "Put the old content back or give new content a new name, or count it instead "
            "with `{command}`{others}",
            command=command,
            others=others,
        ),
    )


def _committed(
    result: UpdateResult,
    gathered: Gathered,
    unique: bool = False,
    again: bool = False,
    last: bool = False,
) -> UpdateResult:
    """Commit a segment, and record the bad shards that were found since the last commit.

    Without a segment, bad shards are committed only if this is the last commit of the update.
    """
    bad, segment = (*result.unrecorded, *gathered.bad), gathered.segment
    cutting, reading = (sum(pair) for pair in zip(result.seconds, gathered.seconds, strict=True))
    result = replace(
        result,
        bad=(*result.bad, *gathered.bad),
        unrecorded=bad,
        seconds=(cutting, reading),
    )
    if segment is None and not (last and bad):
        return result
    records = segment.shards if segment is not None else ()
    documents = sum(record.documents for record in records)
    shards = f"{len(records)} {plural(len(records), 'shard')}"
    message = f"update: {shards}, {documents:,} {plural(documents, 'document')}"
    if bad:
        message += f", {len(bad)} bad {plural(len(bad), 'shard')} left out"
    skipped = [(error.url, error.reason) for error in bad]
    store = result.store.append(segment, message, skipped, unique, again)
    return replace(
        result,
        store=store,
        counted=result.counted + len(records),
        documents=result.documents + documents,
        tokens=result.tokens + sum(record.tokens for record in records),
        outside=result.outside + sum(record.outside for record in records),
        unrecorded=(),
        copies=(*result.copies, *(store.ledger().copies(records) if records else ())),
    )
