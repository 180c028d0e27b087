"""When a turn, a night and an expiry are due, by a clock that is told; rollbacks that are found."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest
from sent_documents import sent

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.config import (
    AccumulateSection,
    KeepSection,
    service_of,
)
from streaming_moments.pipelines.service.ingest_worker import accumulator as module
from streaming_moments.pipelines.service.ingest_worker.accumulator import (
    Accumulator,
    accumulate,
    is_due,
)
from streaming_moments.pipelines.service.ingest_worker.counted import note_reached
from streaming_moments.pipelines.service.ingest_worker.deleting import (
    Deleting,
    Rollbacks,
    _shard_of,
    note_honoured,
    read_honoured,
)
from streaming_moments.pipelines.service.ingest_worker.locking import inbox_locked, locked
from streaming_moments.pipelines.service.ingest_worker.selecting import Compared, ask_selection
from streaming_moments.pipelines.service.ingest_worker.steps import read_steps
from streaming_moments.pipelines.service.ingest_worker.turns import Turn
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.deletions import Deletion, note_gone
from streaming_moments.storage.inbox.expiry import Expired, Retention
from streaming_moments.storage.inbox.inbox import Backlog
from streaming_moments.storage.inbox.owners import InboxOfAnother, Owner, assign
from streaming_moments.storage.inbox.set_aside import retry, set_aside
from streaming_moments.storage.log.locks import Lock, LockHeld
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore


@pytest.mark.parametrize(
    ("backlog", "due"),
    [
        (Backlog(), False),
        (Backlog(0, 100, 1000, timedelta(hours=1)), False),
        (Backlog(1, 99, 999, timedelta(seconds=9.9)), False),
        (Backlog(1, 100, 0), True),
        (Backlog(1, 0, 1000), True),
        (Backlog(1, 1, 1, timedelta(seconds=10)), True),
    ],
)
def test_what_waits_is_sealed_once_it_is_enough_or_old_enough(backlog, due):
    rules = AccumulateSection(seal_after="10s", seal_documents=100, seal_bytes=1000)
    assert is_due(backlog, rules) is due


@pytest.fixture
def turns(monkeypatch):
    """Turns that are taken, none of which does anything."""
    taken = []

    def turn(self):
        taken.append(1)
        return Turn(version=len(taken))

    monkeypatch.setattr(Accumulator, "turn", turn)
    return taken


def changed(ours, **how):
    found = replace(ours, **how)
    found.now, found.lines = ours.now, ours.lines
    return found


def away():
    raise StoreError("away")


def test_how_often_it_is_looked_whether_something_is_due(ours):
    assert ours.pause == 1.0
    for seal_after, pause in (("100ms", 0.05), ("600ms", 0.06), ("400ms", 0.05)):
        config = service_of({"store": "s", "accumulate": {"seal_after": seal_after}}, "t")
        assert changed(ours, config=config).pause == pytest.approx(pause)
    assert (ours._fitted, ours._since, ours.night) == (1000.0, 0, None)


def test_a_turn_is_due_while_seals_are_not_counted_unless_counting_failed(ours, turns):
    assert ours.look() is None
    ours.seals.inbox.put([sent("a")])
    assert ours.look() is None, "not old enough"
    ours.seals.seal_next()
    assert ours.lags is True
    assert ours.look() == Turn(version=1)
    ours.steps.attempt("count", away)
    assert ours.look() is None
    ours.now[0] += 2.0
    assert ours.look() == Turn(version=2)
    note_reached(ours.seals.inbox, 1)
    assert (ours.lags, ours.look()) == (False, None)


def test_a_turn_is_due_for_each_deletion_that_has_not_failed_a_moment_ago(ours, turns):
    one = ours.deletions.ask(Deletion("id", ("a",)))
    assert ours.look() is not None
    ours.steps.attempt(f"delete {one}", away)
    assert ours.look() is None
    ours.deletions.ask(Deletion("id", ("b",)))
    assert ours.look() is not None
    assert len(turns) == 2


def test_a_turn_is_due_after_a_rollback(ours, turns):
    store = MomentStore.open(ours.config.store)
    assert ours.look() is None
    rollback(store, 2)
    assert ours.look() is not None
    ours.steps.attempt("delete again", away)
    assert ours.look() is None
    assert len(turns) == 1


def test_while_another_takes_a_turn_none_is_taken(ours, monkeypatch):
    def held(self):
        raise LockHeld("another")

    ours.deletions.ask(Deletion("id", ("a",)))
    monkeypatch.setattr(Accumulator, "turn", held)
    assert ours.look() is None


def test_shards_that_are_set_aside_are_looked_at_every_ten_seconds(ours, turns):
    ours.seals.inbox.put([sent("a")])
    (shard,) = ours.seals.seal_next().shards
    note_reached(ours.seals.inbox, 1)
    set_aside(ours.seals.inbox.folder, shard.path, 1, "full")
    assert ours.look() is None
    retry(ours.seals.inbox.folder, [shard.path])
    ours.now[0] += 9.5
    assert ours.look() is None
    ours.now[0] += 0.5
    assert ours.look() is not None
    ours.now[0] += 9.5
    assert ours.look() is None


def test_of_seals_a_hundred_are_made_in_a_turn(ours, monkeypatch):
    beats = []
    journal = SimpleNamespace(beat=lambda: beats.append(1))
    rules = replace(ours.rules, seal_documents=1)
    ours = changed(ours, config=replace(ours.config, accumulate=rules))
    assert ours._sealed(journal) == (0, True)
    for text in "abcd":
        ours.seals.inbox.put([sent(text)])
    assert ours._sealed(journal) == (4, True)
    assert (ours.seals.latest(), len(beats)) == (4, 4)
    assert module._MOST_SEALS == 100
    monkeypatch.setattr(module, "_MOST_SEALS", 2)
    for text in "efg":
        ours.seals.inbox.put([sent(text)])
    assert ours._sealed(journal) == (2, False)
    assert ours._sealed(journal) == (1, True)


@pytest.fixture
def nights(monkeypatch):
    """Nights that ran, with what they were told."""
    ran = []

    def nightly(*told):
        ran.append(told)
        return SimpleNamespace(outcome=f"night {len(ran)}")

    monkeypatch.setattr(module, "nightly", nightly)
    return ran


def with_rules(ours, **rules):
    accumulate = replace(ours.config.accumulate, night="night.toml", **rules)
    return changed(ours, config=replace(ours.config, accumulate=accumulate), night="the night")


def test_a_night_is_due_after_so_many_documents(ours, nights):
    assert ours.refit_if_due() is None
    mine = with_rules(ours, refit_documents=10)
    mine._since = 9
    assert mine.refit_if_due() is None
    mine._since = 10
    mine.now[0] = 2000.0
    assert mine.refit_if_due() == "night 1"
    assert (mine._since, mine._fitted) == (0, 2000.0)
    assert mine.refit_if_due() is None
    [(night, cluster, tell, progress)] = nights
    assert (night, cluster, tell("a step"), progress) == (
        "the night",
        "a cluster",
        None,
        "progress",
    )


def test_a_night_is_due_after_so_long(ours, nights):
    mine = with_rules(ours, refit_every=timedelta(hours=1))
    mine._since = 10**6
    mine.now[0] = 1000.0 + 3599
    assert mine.refit_if_due() is None
    mine.now[0] = 1000.0 + 3600
    assert mine.refit_if_due() == "night 1"
    assert mine.refit_if_due() is None
    both = with_rules(ours, refit_every=timedelta(hours=1), refit_documents=5)
    both._fitted, both._since = both.now[0], 5
    assert both.refit_if_due() == "night 2"


def test_a_night_beside_another_is_due_again_as_it_was(ours, monkeypatch):
    def held(*told):
        raise LockHeld("another")

    monkeypatch.setattr(module, "nightly", held)
    mine = with_rules(ours, refit_documents=10)
    mine._since = 12
    assert mine.refit_if_due() is None
    assert mine._since == 12


def test_workers_of_a_scheduler_are_looked_at_and_of_no_other(ours):
    ours._look_at_workers()
    assert ours.run.cluster == "a cluster"
    cluster = replace(ours.config.cluster, scheduler="tcp://127.0.0.1:1", memory=7)
    mine = changed(ours, config=replace(ours.config, cluster=cluster))
    mine.run = Run(SimpleNamespace(now=lambda memory: f"with {memory}"))
    mine._look_at_workers()
    assert mine.run.cluster == "with 7"


def test_what_is_old_goes_every_six_hours(ours, monkeypatch):
    asked, more = [], [True]

    def expire(*told):
        asked.append(told)
        return Expired(1, more=more[0])

    monkeypatch.setattr(module, "expire", expire)
    forever = changed(ours, config=replace(ours.config, keep=KeepSection(None, None)))
    assert (forever.expire_if_due(), asked) == (None, [])
    keep = KeepSection(timedelta(days=30), timedelta(days=40))
    mine = changed(ours, config=replace(ours.config, keep=keep))
    note_reached(mine.seals.inbox, 3)
    assert mine.expire_if_due() == Expired(1, more=True)
    assert mine.expire_if_due() is not None, "there is more"
    more[0] = False
    assert mine.expire_if_due() is not None
    assert mine.expire_if_due() is None
    mine.now[0] += 6 * 3600.0 - 1
    assert mine.expire_if_due() is None
    mine.now[0] += 1
    assert mine.expire_if_due() is not None
    seals, retention, counted, is_counted, notes, beat = asked[-1]
    assert (seals, retention, counted, notes) == (
        mine.seals,
        Retention(timedelta(days=30), timedelta(days=40)),
        3,
        ("counted",),
    )
    assert (beat(), is_counted("sealed/none.jsonl")) == (None, False)
    for part in (KeepSection(timedelta(days=30), None), KeepSection(None, timedelta(days=30))):
        one = changed(ours, config=replace(ours.config, keep=part))
        assert one.expire_if_due() is not None


def test_nothing_goes_while_a_deletion_may_still_find_its_documents(ours, monkeypatch):
    monkeypatch.setattr(module, "expire", lambda *told: Expired(1))
    one = ours.deletions.ask(Deletion("id", ("a",)))
    assert ours.expire_if_due() is None
    ours.steps.attempt(f"delete {one}", away)
    assert ours.expire_if_due() == Expired(1), "it fails, and would keep all for ever"
    lock = Lock.acquire(Folder.at(ours.config.store), timedelta(minutes=5))
    ours._expired = None
    assert ours.expire_if_due() is None
    assert ours._expired is None
    lock.release()


def test_a_turn_seals_for_deletions_where_it_cannot_count(ours, monkeypatch):
    deleted = []

    def failing(self, journal):
        raise StoreError("away")

    monkeypatch.setattr(Accumulator, "_sealed_and_counted", failing)
    monkeypatch.setattr(
        Deleting, "delete", lambda self, identity, deletion: deleted.append(identity) or 3
    )
    ours.seals.inbox.put([sent("a")])
    turn = ours.turn()
    assert (turn.sealed, turn.forgotten, [step for step, _ in turn.failed]) == (0, 0, ["count"])
    one = ours.deletions.ask(Deletion("id", ("a",)))
    turn = ours.turn()
    assert (turn.sealed, turn.forgotten, turn.failed, deleted) == (1, 3, (), [one])
    monkeypatch.setattr(Accumulator, "_sealed", failing)
    turn = ours.turn()
    assert (turn.sealed, [step for step, _ in turn.failed]) == (0, ["seal"])
    assert len(deleted) == 1, "not all that came before it is sealed"
    ours.now[0] += 1000.0
    monkeypatch.setattr(Accumulator, "_sealed", lambda self, journal: (4, False))
    turn = ours.turn()
    assert (turn.sealed, turn.forgotten, len(deleted)) == (4, 0, 1)
    monkeypatch.setattr(
        Accumulator, "_sealed_and_counted", lambda self, journal: (Turn(5, 6, 7), True)
    )
    ours.now[0] += 1000.0
    assert ours.turn() == Turn(5, 6, 7, forgotten=3)


def test_what_was_counted_before_and_behind_the_seals_of_a_turn_is_told_together(ours, monkeypatch):
    ours.seals.inbox.put([sent("a")])
    turns = iter(
        [Turn(0, 1, 5, (("a", "bad"),), (("b", "full"),)), Turn(0, 2, None, (("c", "bad"),))]
    )
    monkeypatch.setattr(Accumulator, "_counted", lambda self, journal: next(turns))
    ours.seals.seal_next()
    ours.seals.inbox.put([sent("b", "c")])
    journal = SimpleNamespace(beat=lambda: None)
    assert ours._sealed_and_counted(journal) == (
        Turn(2, 3, 5, (("a", "bad"), ("c", "bad")), (("b", "full"),)),
        True,
    )
    turns = iter([Turn(0, 1, 5), Turn(0, 2, 6)])
    assert ours._sealed_and_counted(journal) == (Turn(0, 3, 6), True)
    note_reached(ours.seals.inbox, 2)
    turns = iter([Turn(0, 2, 6)])
    assert ours._sealed_and_counted(journal) == (Turn(0, 2, 6), True)


def test_without_seals_nothing_is_counted(ours):
    assert ours._counted(None) == Turn()


def test_each_step_is_tried_in_turn_and_told(ours, monkeypatch):
    tried = []

    def step(name, found):
        def act(self):
            tried.append(name)
            if isinstance(found, Exception):
                raise found
            return found

        return act

    for name, found in (
        ("look", Turn(1, 2, 3)),
        ("expire_if_due", LockHeld("another")),
        ("refit_if_due", None),
        ("compare_if_asked", Compared(4)),
    ):
        monkeypatch.setattr(Accumulator, name, step(name, found))
    waits, ends = [], iter([False, True])
    accumulate(ours, lambda seconds: waits.append(seconds) or next(ends))
    assert tried == ["look", "expire_if_due", "refit_if_due", "compare_if_asked"]
    assert waits == [1.0, 1.0]
    assert ours.lines == [
        "sealed 1, counted 2, version 3",
        "compared numbers of topics of version 4",
    ]


@pytest.mark.parametrize(
    ("step", "act", "night", "stays"),
    [
        ("night", "refit_if_due", None, False),
        ("night", "refit_if_due", "the night", True),
        ("expire", "expire_if_due", None, True),
        ("look", "look", None, False),
        ("compare", "compare_if_asked", None, False),
    ],
)
def test_what_is_not_due_mends_a_night_or_an_expiry_that_failed_no_more(
    ours, monkeypatch, step, act, night, stays
):
    """Without a night there is none to mend."""
    found = iter([StoreError("away"), None])

    def failing(self):
        result = next(found)
        if result is not None:
            raise result

    for name in ("look", "expire_if_due", "refit_if_due", "compare_if_asked"):
        monkeypatch.setattr(Accumulator, name, lambda self: None)
    monkeypatch.setattr(Accumulator, act, failing)
    mine = changed(ours, night=night)

    def over(seconds):
        mine.now[0] += 100.0
        return mine.now[0] > 1250.0

    accumulate(mine, over)
    assert [one.step for one in read_steps(mine.seals.inbox)] == [step] * stays


def test_whatever_takes_long_begins_with_a_look_at_the_workers(ours, nights, monkeypatch):
    looks = []
    monkeypatch.setattr(Accumulator, "_look_at_workers", lambda self: looks.append(1))
    monkeypatch.setattr(module, "compare", lambda *told: Compared(9))
    ours.turn()
    assert len(looks) == 1
    mine = with_rules(ours, refit_documents=1)
    assert (mine.refit_if_due(), len(looks)) == (None, 1)
    mine._since = 1
    assert (mine.refit_if_due(), len(looks)) == ("night 1", 2)
    assert (ours.compare_if_asked(), len(looks)) == (None, 2)
    ask_selection(ours.seals.inbox, 4)
    assert (ours.compare_if_asked(), len(looks)) == (Compared(9), 3)


def test_a_turn_drops_what_is_noted_of_deletions_that_others_have_done(ours, monkeypatch):
    monkeypatch.setattr(Accumulator, "_sealed_and_counted", lambda self, journal: (Turn(), True))
    monkeypatch.setattr(Deleting, "delete", lambda self, identity, deletion: 0)
    ours.steps.attempt("delete gone", away)
    ours.turn()
    assert [one.step for one in read_steps(ours.seals.inbox)] == ["delete gone"]
    ours.deletions.ask(Deletion("id", ("a",)))
    ours.turn()
    assert read_steps(ours.seals.inbox) == ()


def test_numbers_are_compared_only_where_it_is_asked_for(ours, monkeypatch):
    compared = []
    monkeypatch.setattr(
        module, "compare", lambda store, inbox, run: compared.append(store.version) or Compared(9)
    )
    assert (ours.compare_if_asked(), compared) == (None, [])
    ask_selection(ours.seals.inbox, 4)
    assert (ours.compare_if_asked(), compared) == (Compared(9), [4])


def test_an_inbox_of_another_store_is_not_locked(ours, archived):
    with inbox_locked(ours.config) as journal:
        assert journal.lock.expiry == timedelta(minutes=5)
        with pytest.raises(LockHeld), locked(ours.config):
            pass
    assign(ours.seals.inbox.folder, Owner.at(str(archived("counts_2"))))
    with pytest.raises(InboxOfAnother), inbox_locked(ours.config):
        pass
    with locked(ours.config):
        pass


@pytest.fixture
def rollbacks(ours):
    return Rollbacks(ours.seals.inbox)


def opened(ours):
    return lambda: MomentStore.open(ours.config.store)


def test_of_an_inbox_without_a_note_it_is_asked_whether_anything_was_deleted(ours, rollbacks):
    assert read_honoured(ours.seals.inbox) is None
    assert rollbacks.found(opened(ours)) is False
    assert read_honoured(ours.seals.inbox) == 4
    ours.seals.inbox.folder.delete(["deletions-honoured.json"])
    ours.seals.inbox.put([sent("a", "b")])
    (shard,) = ours.seals.seal_next().shards
    note_gone(ours.seals.inbox.folder, shard.path, [0], None, "a" * 32)
    other = Rollbacks(ours.seals.inbox)
    assert other.found(opened(ours)) is True
    assert read_honoured(ours.seals.inbox) is None


def test_a_rollback_is_found_until_it_is_honoured(ours, rollbacks, monkeypatch):
    store = opened(ours)()
    note_honoured(ours.seals.inbox, 4)
    assert rollbacks.found(opened(ours)) is False
    with monkeypatch.context() as patch:
        patch.setattr(MomentStore, "latest", lambda self: pytest.fail("read again"))
        assert rollbacks.found(lambda: pytest.fail("opened again")) is False
    store = store.save_model("a", store.load_any_model("night-v1"), tag=None)
    assert rollbacks.found(lambda: pytest.fail("opened again")) is False
    store = rollback(store, 2)
    for _ in range(2):
        assert rollbacks.found(lambda: pytest.fail("opened again")) is True
    note_honoured(ours.seals.inbox, store.version)
    rollbacks.honoured()
    assert rollbacks.found(opened(ours)) is False
    # another that begins anew looks from the note
    assert Rollbacks(ours.seals.inbox).found(opened(ours)) is False
    note_honoured(ours.seals.inbox, 5)
    assert Rollbacks(ours.seals.inbox).found(opened(ours)) is True
    note_honoured(ours.seals.inbox, 99)
    assert Rollbacks(ours.seals.inbox).found(opened(ours)) is True, "another store"


@pytest.mark.parametrize(("versions", "noted"), [(49, 4), (50, 54)])
def test_how_far_it_was_looked_is_noted_every_fifty_versions(ours, rollbacks, versions, noted):
    note_honoured(ours.seals.inbox, 4)
    store = opened(ours)()
    log = [SimpleNamespace(operation="append")] * versions
    seen = SimpleNamespace(version=4 + versions, log=lambda first: log, folder=store.folder)
    assert rollbacks.found(lambda: seen) is False
    assert read_honoured(ours.seals.inbox) == noted
    assert rollbacks._noted == noted
    short = SimpleNamespace(version=4 + versions, log=lambda first: log[1:], folder=store.folder)
    if versions == 49:
        assert Rollbacks(ours.seals.inbox).found(lambda: short) is True, "versions have expired"


def test_a_shard_is_found_until_it_is_purged_or_expired(ours, monkeypatch):
    ours.seals.inbox.put([sent("a")])
    (shard,) = ours.seals.seal_next().shards
    assert _shard_of(ours.deletions, shard.path) == shard
    assert _shard_of(ours.deletions, shard.path.replace("2026-11-23", "2026-11-22")) is None
    monkeypatch.setattr(type(ours.seals), "expired", lambda self: 1)
    assert _shard_of(ours.deletions, shard.path) is None


def test_a_deletion_that_is_done_is_withdrawn(ours):
    identity = ours.deletions.ask(Deletion("id", ("a",)))
    asked = ours.deletions.waiting()[identity]
    run = SimpleNamespace(progress=SimpleNamespace(advance=lambda *told: None))
    deleting = Deleting(ours.deletions, lambda: pytest.fail("opened"), run)
    assert deleting.delete(identity, asked) == 0
    assert ours.deletions.done(identity).documents == 0
    assert ours.deletions.waiting() == {}
    again = ours.seals.inbox.folder
    again.write(f"deletions/{identity}.json", b"?")
    assert deleting.delete(identity, asked) == 0
    assert not again.exists(f"deletions/{identity}.json")
