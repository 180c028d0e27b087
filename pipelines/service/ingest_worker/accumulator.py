"""The accumulator: seals pending documents into shards, and counts them as an update does.

Several accumulators may serve one store. They take turns, because each cycle runs under the lock of
the store; an accumulator that finds the lock held tries again in its next cycle. An accumulator
that slept until its lock expired cannot commit. If two accumulators seal at the same time, only one
of the two seals is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.pipelines.nightly.journal import Heartbeat, Journal
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.service.config import AccumulateSection, ServiceConfig, night_of
from streaming_moments.pipelines.service.ingest_worker.counted import (
    COUNTED,
    counted_up_to,
)
from streaming_moments.pipelines.service.ingest_worker.deleting import Deleting, Rollbacks
from streaming_moments.pipelines.service.ingest_worker.locking import inbox_locked
from streaming_moments.pipelines.service.ingest_worker.quarantine import (
    due_again,
    note_outcomes,
    outcomes,
)
from streaming_moments.pipelines.service.ingest_worker.sealed_shards import count_sealed
from streaming_moments.pipelines.service.ingest_worker.selecting import (
    Compared,
    compare,
    selection_is_asked,
)
from streaming_moments.pipelines.service.ingest_worker.steps import Steps, read_steps
from streaming_moments.pipelines.service.ingest_worker.turns import (
    Done,
    Turn,
    lines_of,
    warnings_of,
)
from streaming_moments.printing.plural import of_number
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.expiry import Expired, Retention, expire
from streaming_moments.storage.inbox.inbox import Backlog, Inbox
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.log.locks import LockHeld
from streaming_moments.storage.store.store import MomentStore

# the accumulator looks for pending documents this many times in each interval `seal_after`
_TURNS = 10
_MOST_SEALS = 100  # a cycle makes at most this many seals
# seconds between two checks whether set-aside shards, which could not be counted, are due to be
# tried again
_ASKING = 10.0
_EXPIRING = 6 * 3600.0  # seconds between two checks for expired data


@dataclass
class Accumulator:
    """Seals and counts pending documents, cycle by cycle. Make an accumulator with `of`.

    tell : called with a line about each action
    clock : seconds since any fixed time
    warn : called with a line about each failure; by default `tell`
    """

    config: ServiceConfig
    run: Run
    seals: SealLog
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    night: NightlyConfig | None = None
    warn: Callable[[str], None] | None = None
    _since: int = field(default=0)
    _fitted: float = field(default=0.0)
    _expired: float | None = field(default=None)
    _asked: float | None = field(default=None)

    def __post_init__(self) -> None:
        inbox = self.seals.inbox
        self.steps = Steps(inbox, self.warn or self.tell, self.clock, self.pause)
        self._rollbacks = Rollbacks(inbox)

    @classmethod
    def of(
        cls,
        config: ServiceConfig,
        run: Run,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        warn: Callable[[str], None] | None = None,
    ) -> Accumulator:
        """Make an accumulator from a configuration.

        Raises what `Inbox.open` and `night_of` raise.
        """
        options = config.storage_options or None
        owner = Owner.at(config.store, options)
        inbox = Inbox.open(config.inbox_url, options, owner)
        night = night_of(config)
        return cls(config, run, SealLog(inbox), tell, clock, night, warn, _fitted=clock())

    @property
    def rules(self) -> AccumulateSection:
        """Rules for when to seal pending documents."""
        return self.config.accumulate

    @property
    def deletions(self) -> Deletions:
        """Requested deletions."""
        return Deletions(self.seals)

    @property
    def pause(self) -> float:
        """Seconds between two checks of pending documents."""
        return max(0.05, self.rules.seal_after.total_seconds() / _TURNS)

    @property
    def lags(self) -> bool:
        """Whether there are documents that are sealed, but not yet counted."""
        return self.seals.latest() > counted_up_to(self.seals.inbox)

    def compare_if_asked(self) -> Compared | None:
        """Compare numbers of topics if a user requested it on a page.

        Raises what `compare` raises.
        """
        inbox = self.seals.inbox
        if not selection_is_asked(inbox):
            return None
        self._look_at_workers()
        return compare(self._opened(), inbox, self.run)

    def look(self) -> Turn | None:
        """Run a cycle if any step is due; None if no step is, or another process has the lock."""
        backlog, steps = self.seals.inbox.backlog(), self.steps
        lags = self.lags or is_due(backlog, self.rules) or self._is_asked_again()
        counts = lags and steps.is_due("count")
        deletes = any(steps.is_due(f"delete {one}") for one in self.deletions.waiting())
        again = steps.is_due("delete again") and self._rollbacks.found(self._opened)
        if not counts and not deletes and not again:
            return None
        try:
            return self.turn()
        except LockHeld:
            return None

    def _is_asked_again(self) -> bool:
        """Whether shards that could not be counted are due to be tried again.

        Looks only every 10 seconds, and returns False in between.
        """
        now = self.clock()
        if self._asked is not None and now - self._asked < _ASKING:
            return False
        self._asked = now
        return bool(due_again(self.seals))

    def turn(self) -> Turn:
        """Run one cycle: seal and count pending documents, and carry out deletions.

        If a step or a deletion fails, the other steps still run, and `Turn.failed` lists the
        failure. Raises LockHeld if another process runs a cycle or a nightly job.
        """
        steps = self.steps
        steps.failed.clear()
        with inbox_locked(self.config) as journal:
            self._look_at_workers()
            # read the requested deletions before sealing: then every document that was sent before
            # a deletion was requested is in a shard
            asked = self.deletions.waiting()
            # First repeat the deletions that a rollback has undone. Do so before counting, because
            # documents can be subtracted only while the content of their shards is unchanged.
            steps.attempt("delete again", partial(self._deleted_again, journal))
            found = steps.attempt("count", partial(self._sealed_and_counted, journal))
            if found is None:
                # deletions do not need the count: it is enough that documents sent before them are
                # sealed
                sealing = steps.attempt("seal", partial(self._sealed, journal)) if asked else None
                sealed, whole = sealing or (0, False)
                found = Turn(sealed), whole
            turn, whole = found
            forgotten = self._forgotten(asked, journal) if whole else 0
        return replace(turn, forgotten=forgotten, failed=tuple(steps.failed))

    def refit_if_due(self) -> str | None:
        """Run the nightly job if it is due, and return its outcome.

        Returns None if the job is not due, or another process holds the lock. Errors are those of
        `nightly`; after an error, the job runs again when it is next due.
        """
        if self.night is None:
            return None
        documents, every = self.rules.refit_documents, self.rules.refit_every
        late = every is not None and self.clock() - self._fitted >= every.total_seconds()
        if not late and (documents is None or self._since < documents):
            return None
        before, self._since, self._fitted = self._since, 0, self.clock()
        self._look_at_workers()
        try:
            report = nightly(self.night, self.run.cluster, lambda step: None, self.run.progress)
        except LockHeld:
            self._since = before
            return None
        return report.outcome

    def _look_at_workers(self) -> None:
        """Plan the work for the workers that exist now, because workers may come and go."""
        if self.config.cluster.scheduler is not None:
            now = self.run.cluster.now(self.config.cluster.memory)
            self.run = replace(self.run, cluster=now)

    def _sealed(self, journal: Journal) -> tuple[int, bool]:
        """Seal pending documents.

        Returns the number of sealed documents, and whether all documents that were pending at the
        start are sealed.
        """
        waits = {batch.name for batch in self.seals.inbox.pending()}
        documents = 0
        for _ in range(_MOST_SEALS):
            found = self.seals.seal_next(self.rules.seal_documents, self.rules.seal_bytes)
            if found is None:
                return documents, True
            documents += found.documents
            journal.beat()
            waits -= {batch.name for batch in found.batches}
            if not waits:
                return documents, True
        return documents, False

    def expire_if_due(self) -> Expired | None:
        """Delete expired data; None if that is not due, or must wait for a lock or a deletion.

        If the storage fails halfway, the next call deletes the rest.
        """
        keep, now = self.config.keep, self.clock()
        retention = Retention(keep.keys, keep.documents)
        early = self._expired is not None and now - self._expired < _EXPIRING
        if early or retention == Retention():
            return None
        inbox = self.seals.inbox
        try:
            with inbox_locked(self.config) as journal:
                failing = {one.step for one in read_steps(inbox)}
                if any(f"delete {one}" not in failing for one in self.deletions.unplanned()):
                    # a requested deletion may still have to find its documents in shards that would
                    # expire
                    return None
                # do not let shards expire from which a deletion is removing documents
                begun = self.deletions.begun()
                ledger = self._opened().ledger()
                found = expire(
                    self.seals,
                    retention,
                    counted_up_to(inbox),
                    lambda path: (
                        path not in begun and ledger.find(inbox.folder.shard(path)) is not None
                    ),
                    (COUNTED,),
                    journal.beat,
                )
        except LockHeld:
            return None
        self._expired = None if found.more else now
        return found

    def _lagging(self, journal: Journal) -> Turn:
        """Count sealed shards that are not counted yet.

        First finishes a seal if the process that made it died.
        """
        self.seals.finish(self.seals.latest())
        return self._counted(journal)

    def _counted(self, journal: Journal) -> Turn:
        inbox = self.seals.inbox
        first, latest = counted_up_to(inbox) + 1, self.seals.latest()
        seals = [self.seals.read_anew(number) for number in range(first, latest + 1)]
        again = due_again(self.seals)
        shards = (*again, *(shard for one in seals for shard in one.shards))
        if not seals and not again:
            return Turn()
        store = journal.fenced(self._opened())
        run = self._beating(journal)
        result = count_sealed(store.writable(), inbox, shards, run)
        self._since += result.documents
        found = outcomes(result.store, inbox, shards, result.bad, self.run)
        note_outcomes(self.seals, seals, again, found, result.store.version)
        found.require_none_failing(inbox)
        # compact only after all notes are written, so that a failure here does not stop counting
        after = compact_when_many(result.store, COMPACT_AFTER, self.run)
        refused, aside = found.named(inbox)
        return Turn(
            counted=result.documents, version=after.version, left_out=refused, set_aside=aside
        )

    def _sealed_and_counted(self, journal: Journal) -> tuple[Turn, bool]:
        """Seal and count pending documents.

        Also returns whether all documents that were pending at the start are sealed.
        """
        # First count shards that are already sealed. If that fails, seal no further documents: then
        # the age of pending documents grows, which shows the failure.
        before = self._lagging(journal) if self.lags else Turn()
        sealed, whole = self._sealed(journal)
        turn = self._counted(journal)
        both = Turn(
            sealed,
            before.counted + turn.counted,
            before.version if turn.version is None else turn.version,
            before.left_out + turn.left_out,
            before.set_aside + turn.set_aside,
        )
        return both, whole

    def _forgotten(self, asked: Mapping[str, Deletion], journal: Journal) -> int:
        """Carry out deletions, and return the number of deleted documents.

        A deletion that fails does not stop the others.
        """
        deleting, steps, documents = self._deleting(journal), self.steps, 0
        for identity, deletion in asked.items():
            act = partial(deleting.delete, identity, deletion)
            documents += steps.attempt(f"delete {identity}", act) or 0
        if asked:
            steps.keep(frozenset(self.deletions.waiting()))
        return documents

    def _deleted_again(self, journal: Journal) -> int | None:
        if not self._rollbacks.found(self._opened):
            return None
        shards = self._deleting(journal).delete_again()
        self._rollbacks.honoured()
        if shards:
            self.tell(
                f"deleted documents were counted again in {of_number(shards, 'shard')}; subtracted "
                "them again"
            )
        return shards

    def _deleting(self, journal: Journal) -> Deleting:
        return Deleting(
            self.deletions, lambda: journal.fenced(self._opened()), self._beating(journal)
        )

    def _opened(self) -> MomentStore:
        options = self.config.storage_options or None
        return MomentStore.open(self.config.store, storage_options=options)

    def _beating(self, journal: Journal) -> Run:
        return replace(self.run, progress=Heartbeat(journal, self.run.progress))


def is_due(backlog: Backlog, rules: AccumulateSection) -> bool:
    """Whether to seal pending documents, because there are enough or they have waited long enough.

    Examples
    --------
    >>> from datetime import timedelta
    >>> rules = AccumulateSection(seal_after="10s", seal_documents=100)
    >>> is_due(Backlog(1, 5, 900, timedelta(seconds=3)), rules)
    False
    >>> is_due(Backlog(1, 5, 900, timedelta(seconds=11)), rules)
    True
    """
    if not backlog.batches:
        return False
    enough = backlog.documents >= rules.seal_documents or backlog.nbytes >= rules.seal_bytes
    return enough or backlog.age >= rules.seal_after


def accumulate(accumulator: Accumulator, over: Callable[[float], bool]) -> None:
    """Run cycles until `over` returns True; report each failed step, and repeat it later.

    `over` waits for as many seconds as it is given, and returns whether to end.
    """
    steps: tuple[tuple[str, Callable[[], Done | None], bool], ...] = (
        ("look", accumulator.look, True),
        ("expire", accumulator.expire_if_due, False),
        # a failed nightly job is tried again when it is next due
        ("night", accumulator.refit_if_due, accumulator.night is None),
        ("compare", accumulator.compare_if_asked, True),
    )
    while not over(accumulator.pause):
        for step, act, idle_is_fine in steps:
            try:
                found: Done | None = accumulator.steps.attempt(step, act, idle_is_fine)
            except LockHeld:
                continue  # another process holds the lock, so check again later
            if found is not None:
                for line in lines_of(found):
                    accumulator.tell(line)
                for line in warnings_of(found):
                    accumulator.steps.warn(line)
