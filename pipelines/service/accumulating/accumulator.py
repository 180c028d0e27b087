"""The accumulator: seals what waits and counts it, as updates do, under the lock of the store.

Of several one accumulates at a time, each turn under the lock: who finds it held waits for its
next turn. One that slept past its time commits no more, and of two that seal one wins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import COMPACT_AFTER, compact_when_many
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.pipelines.nightly.journal import Heartbeat, Journal
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.service.accumulating.counted import (
    COUNTED,
    counted_up_to,
    note_failing,
)
from streaming_moments.pipelines.service.accumulating.locking import locked
from streaming_moments.pipelines.service.accumulating.refusing import (
    due_again,
    note_outcomes,
    outcomes,
)
from streaming_moments.pipelines.service.accumulating.sealed_shards import count_sealed
from streaming_moments.pipelines.service.accumulating.selecting import (
    Compared,
    compare,
    selection_is_asked,
)
from streaming_moments.pipelines.service.config import AccumulateSection, ServiceConfig, night_of
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.expiry import Expired, Retention, expire
from streaming_moments.storage.inbox.inbox import Backlog, Inbox
from streaming_moments.storage.inbox.left_out import forget_left_out
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.log.locks import LockHeld
from streaming_moments.storage.store.store import MomentStore

_TURNS = 10  # in the time after which what waits is sealed
_MOST_SEALS = 100  # of a turn
_ASKING = 10.0  # seconds between two looks at what is set aside
_EXPIRING = 6 * 3600.0  # seconds between two looks for what is old


@dataclass(frozen=True)
class Turn:
    """What a turn did.

    Parameters
    ----------
    sealed, counted : int
        Documents sealed, and counted.
    version : int or None
        Of the store after it; None where nothing was to be counted.
    left_out : tuple of (str, str)
        Shards that nobody can read and that are refused, with the reason.
    set_aside : tuple of (str, str)
        Shards that cannot be counted as the store is, with the reason.
    forgotten : int
        Documents that are counted no more.
    """

    sealed: int = 0
    counted: int = 0
    version: int | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    set_aside: tuple[tuple[str, str], ...] = ()
    forgotten: int = 0


@dataclass
class Accumulator:
    """Seals and counts, turn by turn. Make one with `of`.

    Parameters
    ----------
    config : ServiceConfig
        What to do when.
    run : Run
        Where to run, and what its steps are told.
    seals : SealLog
        Of the inbox.
    tell : callable
        Told of what was done, in a line.
    clock : callable
        Seconds, of whatever beginning.
    """

    config: ServiceConfig
    run: Run
    seals: SealLog
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    night: NightlyConfig | None = None
    _since: int = field(default=0)
    _fitted: float = field(default=0.0)
    _expired: float | None = field(default=None)
    _asked: float | None = field(default=None)

    @classmethod
    def of(
        cls,
        config: ServiceConfig,
        run: Run,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> Accumulator:
        """One of the configuration's inbox; errors as `Inbox.open` and `night_of`."""
        inbox = Inbox.open(config.inbox_url, config.storage_options or None)
        night = night_of(config)
        return cls(config, run, SealLog(inbox), tell, clock, night, _fitted=clock())

    @property
    def rules(self) -> AccumulateSection:
        """When what waits is sealed."""
        return self.config.accumulate

    @property
    def deletions(self) -> Deletions:
        """What is asked to be forgotten."""
        return Deletions(self.seals)

    @property
    def pause(self) -> float:
        """Seconds between two looks at what waits."""
        return max(0.05, self.rules.seal_after.total_seconds() / _TURNS)

    @property
    def lags(self) -> bool:
        """Whether anything is sealed that is not counted."""
        return self.seals.latest() > counted_up_to(self.seals.inbox)

    def compare_if_asked(self) -> Compared | None:
        """Compare numbers of topics, if a page asked for it; errors as `compare`."""
        inbox, options = self.seals.inbox, self.config.storage_options or None
        if not selection_is_asked(inbox):
            return None
        self._look_at_workers()
        store = MomentStore.open(self.config.store, storage_options=options)
        return compare(store, inbox, self.run)

    def look(self) -> Turn | None:
        """A turn, if it is due; None where nothing is to be done, or another does it.

        Raises
        ------
        StreamingMomentsError
            As `turn`.
        """
        backlog = self.seals.inbox.backlog()
        waits = self.lags or is_due(backlog, self.rules) or self.deletions.waiting()
        if not waits and not self._is_asked_again():
            return None
        try:
            return self.turn()
        except LockHeld:
            return None

    def _is_asked_again(self) -> bool:
        """Whether shards that are set aside are to be counted again; looked at now and then."""
        now = self.clock()
        if self._asked is not None and now - self._asked < _ASKING:
            return False
        self._asked = now
        return bool(due_again(self.seals))

    def turn(self) -> Turn:
        """Seal what waits, and count what is sealed.

        Raises
        ------
        LockHeld
            Another does, or a night runs.
        StreamingMomentsError
            As `SealLog.seal_next` and `update`; what was begun is ended by the next turn.
        """
        with locked(self.config) as journal:
            self._look_at_workers()
            # before anything is sealed: what came before it was asked for is in a shard then
            asked = self.deletions.waiting()
            # while that fails nothing more is sealed, so that what waits grows old and is seen to
            before = self._lagging(journal) if self.lags else Turn()
            sealed, whole = self._sealed(journal)
            turn = self._counted(journal)
            turn = Turn(
                sealed,
                before.counted + turn.counted,
                before.version if turn.version is None else turn.version,
                before.left_out + turn.left_out,
                before.set_aside + turn.set_aside,
            )
            for identity, deletion in asked.items() if whole else ():
                turn = replace(
                    turn, forgotten=turn.forgotten + self._forgotten(identity, deletion, journal)
                )
        return turn

    def refit_if_due(self) -> str | None:
        """Run the night, if it is due; its outcome, and None where it is not, or another runs.

        Raises
        ------
        StreamingMomentsError
            As `nightly`: it is tried again when it is due again.
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
        """Plan with the workers that a scheduler has now: they come and go between turns."""
        if self.config.cluster.scheduler is not None:
            now = self.run.cluster.now(self.config.cluster.memory)
            self.run = replace(self.run, cluster=now)

    def _sealed(self, journal: Journal) -> tuple[int, bool]:
        """Seal what waits; how many documents, and whether it was all that waited at first."""
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
        """Let go what is old; what went, and None where it is not due, or another is at work.

        Raises
        ------
        StreamingMomentsError
            The storage fails; the next time goes on.
        """
        keep, now = self.config.keep, self.clock()
        retention = Retention(keep.keys, keep.documents)
        early = self._expired is not None and now - self._expired < _EXPIRING
        if early or retention == Retention():
            return None
        inbox, options = self.seals.inbox, self.config.storage_options or None
        try:
            with locked(self.config) as journal:
                if self.deletions.waiting():
                    return None  # of shards that may be planned on
                ledger = MomentStore.open(self.config.store, storage_options=options).ledger()
                found = expire(
                    self.seals,
                    retention,
                    counted_up_to(inbox),
                    lambda path: ledger.find(inbox.folder.shard(path)) is not None,
                    (COUNTED,),
                    journal.beat,
                )
        except LockHeld:
            return None
        self._expired = None if found.more else now
        return found

    def _lagging(self, journal: Journal) -> Turn:
        """Count what others sealed, of whom the last may have died before its shards were there."""
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
        options = self.config.storage_options or None
        store = journal.fenced(MomentStore.open(self.config.store, storage_options=options))
        run = self._beating(journal)
        result = count_sealed(store.writable(), inbox, shards, run)
        self._since += result.documents
        found = outcomes(result.store, inbox, shards, result.bad, self.run)
        note_outcomes(self.seals, seals, again, found, result.store.version)
        found.require_none_failing(inbox)
        # once all is noted: what fails here keeps nobody from counting
        after = compact_when_many(result.store, COMPACT_AFTER, self.run)
        refused, aside = found.named(inbox)
        return Turn(0, result.documents, after.version, refused, aside)

    def _forgotten(self, identity: str, deletion: Deletion, journal: Journal) -> int:
        """Take documents out of their shards and out of the statistics; how many those are."""
        inbox, options = self.seals.inbox, self.config.storage_options or None
        if self.deletions.done(identity) is not None:
            self.deletions.withdraw(identity)
            return 0
        plan, version = self.deletions.plan(identity, deletion), None
        for one in plan.shards:
            store = journal.fenced(MomentStore.open(self.config.store, storage_options=options))
            name, kind, run = inbox.folder.shard(one.path), store.form.kind, self._beating(journal)
            counted = store.ledger().find(name) is not None
            old, new = self.deletions.set_aside(one)
            if new is not None and counted:
                before = list_shards([inbox.folder.shard(old)], options, kind)
                store = update(store, list_shards([name], options, kind), run, old=before).store
            elif counted:
                text = f"forget: {plan.documents} documents by request"
                store = forget(store, list_shards([name], options, kind), run, text)
            version = store.version
        if deletion.by == "receipt":
            forget_left_out(inbox.folder, deletion.names)
        self.deletions.finish(identity, plan, version)
        return plan.documents

    def _beating(self, journal: Journal) -> Run:
        return replace(self.run, progress=Heartbeat(journal, self.run.progress))


def is_due(backlog: Backlog, rules: AccumulateSection) -> bool:
    """Whether what waits is to be sealed: it is old enough, or enough.

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
    """Take turns until it is over; what fails is told, and tried again.

    Parameters
    ----------
    accumulator : Accumulator
        That takes them.
    over : callable
        Waits for so many seconds, and says whether to end.
    """
    failures = 0
    while not over(accumulator.pause * min(2**failures, 64)):
        try:
            turn = accumulator.look()
            if turn is not None:
                version = "" if turn.version is None else f", version {turn.version}"
                gone = f", forgotten {turn.forgotten}" if turn.forgotten else ""
                accumulator.tell(f"sealed {turn.sealed}, counted {turn.counted}{gone}{version}")
                for url, reason in turn.left_out:
                    accumulator.tell(f"left out {url}: {reason}")
                for url, reason in turn.set_aside:
                    accumulator.tell(f"set aside {url}: {reason}")
            expired = accumulator.expire_if_due()
            if expired:
                accumulator.tell(
                    f"no longer kept: {expired.shards} shards, {expired.seals} seals, "
                    f"{expired.claims} keys"
                )
            outcome = accumulator.refit_if_due()
            if outcome is not None:
                accumulator.tell(f"night: {outcome}")
            compared = accumulator.compare_if_asked()
            if compared is not None:
                accumulator.tell(f"compared numbers of topics of version {compared.version}")
            failures = 0
            note_failing(accumulator.seals.inbox, None)
        except StreamingMomentsError as error:
            failures += 1
            accumulator.tell(f"failed, to be tried again: {error}")
            with suppress(StreamingMomentsError):  # the storage may be what fails
                note_failing(accumulator.seals.inbox, str(error))
