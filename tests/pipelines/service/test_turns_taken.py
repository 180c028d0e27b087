"""What a turn seals, counts, notes and takes out again, without a cluster that counts."""

from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
from mortal_folder import Killed, mortal
from sent_documents import SHAPE, TODAY, sent

from streaming_moments.errors import NoRoom, ShardError, StoreError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.service.ingest_worker import accumulator as module
from streaming_moments.pipelines.service.ingest_worker import deleting, quarantine
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator
from streaming_moments.pipelines.service.ingest_worker.counted import (
    Counted,
    counted_up_to,
    note_reached,
    read_counted,
)
from streaming_moments.pipelines.service.ingest_worker.deleting import Deleting, note_honoured
from streaming_moments.pipelines.service.ingest_worker.steps import Steps, read_steps
from streaming_moments.pipelines.service.ingest_worker.turns import Turn
from streaming_moments.storage.inbox.deletions import Deletion
from streaming_moments.storage.inbox.expiry import Expired
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.set_aside import retry
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.operations.history import rollback
from streaming_moments.storage.store.store import MomentStore


def away(*told):
    raise StoreError("away")


@pytest.fixture
def counts(ours, monkeypatch):
    """What is counted, by paths, each shard as two documents; `bad` are errors of the next call.

    `there` says whether all of them were there.
    """
    told = SimpleNamespace(paths=[], there=[], bad=[], steps=[])

    def count_sealed(store, inbox, shards, run):
        assert store.folder.url == ours.config.store
        told.paths.append([shard.path for shard in shards])
        told.there.append(all(inbox.folder.exists(shard.path) for shard in shards))
        run.progress.advance("reading shards", 1, 1)
        bad, told.bad = tuple(told.bad), []
        return SimpleNamespace(documents=2 * (len(shards) - len(bad)), bad=bad, store=store)

    monkeypatch.setattr(module, "count_sealed", count_sealed)
    monkeypatch.setattr(
        module, "compact_when_many", lambda store, after, run: SimpleNamespace(version=77)
    )
    # what any of them holds can be read
    monkeypatch.setattr(quarantine, "fails_alone", lambda *shard: None)
    progress = SimpleNamespace(advance=lambda *step: told.steps.append(step))
    ours.run = Run("a cluster", progress=progress)
    return told


def sealed(ours, text, number):
    """A shard of one document, in the seal of a number."""
    ours.seals.inbox.put([sent(text)])
    seal = ours.seals.seal_next()
    assert seal.number == number
    return seal.shards[0]


def test_each_seal_is_counted_once_and_noted(ours, counts):
    first, second = sealed(ours, "a", 1), sealed(ours, "b", 2)
    assert ours.turn() == Turn(0, 4, 77)
    assert counts.paths == [[first.path, second.path]]
    assert counts.steps == [("reading shards", 1, 1)]
    assert (counted_up_to(ours.seals.inbox), ours._since) == (2, 4)
    assert read_counted(ours.seals.inbox, 2) == Counted(4)
    assert ours.turn() == Turn()
    ours.seals.inbox.put([sent("c")])
    assert ours.turn() == Turn(1, 2, 77)
    assert [len(one) for one in counts.paths] == [2, 1]
    assert (counted_up_to(ours.seals.inbox), ours._since) == (3, 6)


def test_what_is_set_aside_is_counted_again_where_nothing_is_sealed(ours, counts):
    inbox, shard = ours.seals.inbox, sealed(ours, "a", 1)
    counts.bad = [NoRoom(inbox.folder.shard(shard.path), "full")]
    named = ((inbox.folder.shard(shard.path), "full"),)
    assert ours.turn() == Turn(0, 0, 77, (), named)
    assert ours.turn() == Turn()
    retry(inbox.folder, [shard.path])
    assert ours.turn() == Turn(0, 2, 77)
    assert counts.paths == [[shard.path]] * 2


def test_what_failed_around_a_shard_fails_the_turn_that_counts(ours, counts):
    inbox, shard = ours.seals.inbox, sealed(ours, "a", 1)
    counts.bad = [ShardError(inbox.folder.shard(shard.path), "reset")]
    [(step, error)] = ours.turn().failed
    assert (step, "(reset), although it is readable" in str(error)) == ("count", True)
    assert counted_up_to(inbox) == 0


def test_a_seal_that_was_cut_off_gets_its_shards_before_it_is_counted(ours, counts):
    inbox = ours.seals.inbox
    inbox.put([sent("a", day="2026-11-20")])
    with pytest.raises(Killed):
        SealLog(mortal(inbox.folder, 2)).seal_next()
    (shard,) = ours.seals.read(1).shards
    assert (shard.day, inbox.folder.exists(shard.path)) == (date(2026, 11, 20), False)
    assert (ours.turn().counted, counts.there) == (2, [True])


def test_what_comes_while_a_turn_seals_waits_for_the_next(ours):
    inbox = ours.seals.inbox
    journal = SimpleNamespace(beat=lambda: inbox.put([sent("late")]))
    inbox.put([sent("a")])
    assert ours._sealed(journal) == (1, True)
    assert inbox.backlog().documents == 1


def test_a_deletion_that_fails_has_deleted_nothing(ours, monkeypatch):
    monkeypatch.setattr(Accumulator, "_sealed_and_counted", lambda self, journal: (Turn(), True))
    monkeypatch.setattr(Deleting, "delete", away)
    one = ours.deletions.ask(Deletion("id", ("a",)))
    turn = ours.turn()
    assert (turn.forgotten, [step for step, _ in turn.failed]) == (0, [f"delete {one}"])


def test_what_a_rollback_brought_back_is_taken_out_once(ours, monkeypatch):
    again, found = [], [2, 0]

    def delete_again(self):
        store = self.store()
        again.append(store.version)
        note_honoured(ours.seals.inbox, store.version)
        return found.pop(0)

    monkeypatch.setattr(Accumulator, "_sealed_and_counted", lambda self, journal: (Turn(), True))
    monkeypatch.setattr(Deleting, "delete_again", delete_again)
    # as another process has noted
    other = Steps(ours.seals.inbox, ours.lines.append, lambda: 0.0, 1.0)
    other.attempt("delete again", away)
    ours.lines.clear()
    for _ in range(2):
        assert (ours.turn().failed, again) == ((), [])
    assert [one.step for one in read_steps(ours.seals.inbox)] == ["delete again"]
    store = rollback(MomentStore.open(ours.config.store), 2)
    for _ in range(2):
        assert ours.turn().failed == ()
    assert (again, read_steps(ours.seals.inbox)) == ([5], ())
    told = ["deleted documents were counted again in 2 shards; subtracted them again"]
    assert ours.lines == told
    rollback(store, 2)
    assert ours.turn().failed == ()
    assert (again, ours.lines) == ([5, 6], told), "there was nothing to take out"


@pytest.fixture
def taken_out(ours, monkeypatch):
    """What is taken out of the store, with what is read of the content from before."""
    told = []

    def contents(shards):
        return [Path(one.url).read_bytes().count(b"\n") for one in shards]

    def update(store, new, run, old, others_again):
        told.append(([one.url for one in new], contents(old), others_again))
        return SimpleNamespace(store=store)

    def forget_counted(store, names, run, text, copies=()):
        told.append((names, text, contents(copies)))
        return store

    monkeypatch.setattr(deleting, "update", update)
    monkeypatch.setattr(deleting, "forget_counted", forget_counted)
    ours.run = Run("a cluster", progress=SimpleNamespace(advance=lambda *step: None))
    return told


def counted(ours, shards, monkeypatch):
    """Make the store's ledger have these shards."""
    records = [
        ShardRecord(ours.seals.inbox.folder.shard(shard.path), shard.nbytes, "etag:0", 1, 1)
        for shard in shards
    ]
    monkeypatch.setattr(MomentStore, "ledger", lambda self: Ledger({"0a": table_of(records)}))


def test_documents_are_taken_out_by_the_content_from_before(ours, taken_out, monkeypatch):
    records = [{"text": text, "id": text} for text in "ab"]
    receipt = new_receipt(0)
    ours.seals.inbox.put([SHAPE.submission(records, receipt, False, TODAY)[0]])
    (shard,) = ours.seals.seal_next().shards
    counted(ours, [shard], monkeypatch)
    store = MomentStore.open(ours.config.store)
    act = Deleting(ours.deletions, lambda: store, ours.run)
    url = ours.seals.inbox.folder.shard(shard.path)
    for number, asked in enumerate((Deletion("id", ("a",)), Deletion("receipt", (receipt,)))):
        one = ours.deletions.ask(asked)
        assert act.delete(one, asked) == 1
        assert ours.deletions.done(one).version == store.version
        if number == 0:
            assert act._delete_again(shard.path, url) == 1
    assert act._delete_again(shard.path, url) == 1
    assert taken_out == [
        ([url], [2], True),
        ([url], [], True),
        ([url], "forget: 1 document by request", [1]),
        ([url], "forget: documents by request, after a rollback", []),
    ]


def test_shards_go_by_the_ledger_but_those_that_are_being_deleted_from(ours, monkeypatch):
    inbox, asked = ours.seals.inbox, []
    shards = [sealed(ours, text, number) for number, text in enumerate("abc", 1)]
    note_reached(inbox, 3)
    counted(ours, shards[:2], monkeypatch)
    monkeypatch.setattr(module, "expire", lambda *told: asked.append(told[3]) or Expired())
    (receipt,) = [kept.receipt for batch in ours.seals.read(1).batches for kept in batch.kept]
    one = ours.deletions.ask(Deletion("receipt", (receipt,)))
    ours.deletions.plan(one, ours.deletions.waiting()[one])
    ours.expire_if_due()
    assert [asked[0](shard.path) for shard in shards] == [False, True, False]
