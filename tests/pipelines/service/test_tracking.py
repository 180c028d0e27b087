"""What became of receipts: of an inbox as 0.2.0 left it, and of seals as they are noted."""

from dataclasses import asdict, replace
from datetime import date
from types import SimpleNamespace

import pytest
from frozen import expected, place_of, plain, unpack, within
from sent_documents import sent

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service import tracking
from streaming_moments.pipelines.service.ingest_worker.counted import (
    Counted,
    counted_up_to,
    note_counted,
    note_reached,
    read_counted,
)
from streaming_moments.pipelines.service.ingest_worker.quarantine import (
    Outcomes,
    due_again,
    is_there,
    note_outcomes,
    refuse,
)
from streaming_moments.pipelines.service.tracking import Tracker
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.deletions import note_gone
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import seal_file
from streaming_moments.storage.inbox.set_aside import all_set_aside, retry, set_aside
from streaming_moments.storage.log.forgotten import Forgotten, ForgottenShard
from streaming_moments.storage.log.ledger import Ledger, ShardRecord, table_of
from streaming_moments.storage.store.store import MomentStore

DAYS = "2026-11-20", "2026-11-21"


@pytest.fixture
def log(tmp_path):
    return SealLog(Inbox.open(str(tmp_path / "inbox")))


@pytest.fixture
def store(archived):
    """A store at version 4, which counts nothing of the inbox."""
    return MomentStore.open(str(archived("night")))


def sealed(log, *texts, day=None):
    """A receipt of some texts, and the seal that has them."""
    one = sent(*texts, day=day)
    log.inbox.put([one])
    return one.receipt, log.seal_next()


def test_receipts_of_an_inbox_are_told_as_it_was_left():
    unpack("inbox")
    told = expected("inbox")
    store = MomentStore.open(f"{place_of('inbox')}/store")
    tracker = Tracker(SealLog(Inbox.open(f"{place_of('inbox')}/store-inbox")))
    before = told["before"]["receipts"]
    assert len(before) > 4
    for name, wanted in before.items():
        found = tracker.find(told["receipts"][name], store)
        assert list(within(wanted, plain(asdict(found)))) == [], name
    assert tracker.find("k" + "0" * 32, store) is None
    assert tracker.find(new_receipt(0), store) is None


def test_what_is_noted_of_a_seal_says_what_became_of_it(log, store):
    receipt, seal = sealed(log, "a", "b")
    (shard,) = seal.shards
    tracker = Tracker(log)

    def found():
        told = tracker.find(receipt, store)
        return told.state, told.documents, told.version, told.reason

    assert found() == ("accepted", 2, None, "")
    note_counted(log.inbox, 1, Counted(4))
    assert found()[:3] == ("uncounted", 2, None)
    assert "version 4 counted the documents, but not under the name" in found()[3]
    assert f"{shard.path}: the inbox or the store has moved" in found()[3]
    note_counted(log.inbox, 1, Counted(5))
    assert found() == ("counted", 2, 5, "")
    note_counted(log.inbox, 1, Counted(5, {shard.path: "bad"}))
    assert found() == ("refused", 2, None, "bad")
    note_counted(log.inbox, 1, Counted(3, {"of another": "bad"}))
    assert found()[0] == "uncounted"
    set_aside(log.inbox.folder, shard.path, 2, "full")
    assert found() == ("set_aside", 2, None, "full")
    note_counted(log.inbox, 1, Counted(5))
    assert found() == ("set_aside", 2, None, "full")


def sealed_of_two_days(log, *texts):
    """A receipt of two texts, each of a day of its own, and the seal that has them."""
    records = sent(*texts)
    lines = records.content.splitlines(keepends=True)
    pieces = tuple(
        replace(records.pieces[0], day=date.fromisoformat(day), documents=1, nbytes=len(line))
        for day, line in zip(DAYS, lines, strict=True)
    )
    log.inbox.put([replace(records, pieces=pieces)])
    return records.receipt, log.seal_next()


def delete(log, shard):
    """Take all documents out of a shard of one."""
    log.inbox.folder.delete([shard.path])
    note_gone(log.inbox.folder, shard.path, [0], None, "a" * 32)


def test_a_receipt_of_two_days_is_refused_for_one_and_forgotten_for_both(log, store):
    receipt, seal = sealed_of_two_days(log, "a", "b")
    one, other = seal.shards
    note_counted(log.inbox, 1, Counted(4, {other.path: "bad"}))
    tracker = Tracker(log)
    told = tracker.find(receipt, store)
    assert (told.state, told.documents, told.reason) == ("refused", 2, "bad")
    for shard in (one, other):
        delete(log, shard)
        assert is_there(log.inbox, shard) is False
    assert tracker.find(receipt, store).state == "forgotten"


def version_with(log, version, sizes, forgotten=(), latest=None):
    """What a tracker asks of a store whose ledger has some shards of the inbox, by their sizes."""
    url = log.inbox.folder.shard
    records = [ShardRecord(url(path), size, "etag:0", 1, 1) for path, size in sizes.items()]
    told = Forgotten().with_forgotten(ForgottenShard(url(path), "etag:0", 1) for path in forgotten)
    ledger = Ledger({"0a": table_of(records)})
    found = SimpleNamespace(
        version=version, ledger=lambda: ledger, commit=SimpleNamespace(forgotten=told)
    )
    found.latest = lambda: latest or found
    return found


def test_what_is_deleted_and_counted_all_the_same_is_counted(log):
    receipt, seal = sealed_of_two_days(log, "a", "bcd")
    one, other = seal.shards
    for shard in seal.shards:
        delete(log, shard)

    def found(version, sizes, latest=None):
        told = Tracker(log).find(receipt, version_with(log, version, sizes, latest=latest))
        return told.state, told.documents, told.version

    forgotten = "forgotten", 2, None
    for shard in (one, other):
        assert found(5, {shard.path: shard.nbytes}) == ("counted", 2, 5)
        # what deletions left of it holds nothing of this receipt
        assert found(5, {shard.path: shard.nbytes - 1}) == forgotten
    assert found(5, {one.path: other.nbytes}) == forgotten
    assert found(5, {}) == forgotten
    # the view is of a version before the deletion
    assert found(5, {one.path: one.nbytes}, version_with(log, 6, {})) == forgotten
    late = version_with(log, 6, {other.path: other.nbytes})
    assert found(5, {one.path: one.nbytes}, late) == ("counted", 2, 6)
    # of a shard that a purge took out of its seal no size is known
    log.inbox.folder.write(seal_file(1), replace(seal, shards=(other,)).sealed())
    assert found(5, {one.path: one.nbytes - 1}) == ("counted", 2, 5)
    assert found(5, {other.path: other.nbytes - 1}) == forgotten


def test_what_the_store_has_forgotten_is_forgotten_once_it_is_all(log):
    receipt, seal = sealed_of_two_days(log, "a", "b")
    paths = [shard.path for shard in seal.shards]
    note_counted(log.inbox, 1, Counted(3))

    def found(*forgotten):
        told = Tracker(log).find(receipt, version_with(log, 5, {}, forgotten))
        return told.state, told.documents

    assert found() == ("uncounted", 2)
    assert found("sealed/another.jsonl") == ("uncounted", 2)
    assert found(paths[0]) == ("uncounted", 2)
    assert found(*paths) == ("forgotten", 2)


def test_a_claim_that_is_renewed_between_two_looks_says_where_to_look(log, store, monkeypatch):
    one = sent("a", key="k")
    log.inbox.claim(one.receipt, "f" * 64, 0)
    log.inbox.put([one])
    claims_of, looks = Inbox.claims_of, []

    def renewed_behind(inbox, receipts):
        looks.append(claims_of(inbox, receipts))
        inbox.renew(one.receipt, replace(looks[0][one.receipt], digest=one.digest))
        return looks[-1]

    monkeypatch.setattr(Inbox, "claims_of", renewed_behind)
    assert Tracker(log).find(one.receipt, store).state == "accepted"
    assert len(looks) == 2
    assert Tracker(log).find(one.receipt, store).state == "accepted"
    assert len(looks) == 3, "one look finds what waits"


def test_what_waits_is_found_by_the_headers_of_batches_that_are_there(log, store):
    tracker = Tracker(log)
    first, second = sent("a"), sent("b", key="k")
    log.inbox.put([first])
    assert tracker.find(second.receipt, store) is None
    assert tracker.find(first.receipt, store).state == "accepted"
    assert len(tracker._headers) == 1
    log.inbox.claim(second.receipt, "f" * 64, 0)
    assert tracker.find(second.receipt, store) is None
    log.inbox.put([second])
    # of another content than the claim is of
    assert tracker.find(second.receipt, store) is None
    log.inbox.renew(
        second.receipt,
        replace(log.inbox.claims_of([second.receipt])[second.receipt], digest=second.digest),
    )
    assert tracker.find(second.receipt, store).state == "accepted"
    assert len(tracker._headers) == 2
    log.seal_next()
    assert tracker.find(first.receipt, store).documents == 1
    assert tracker.find(new_receipt(0), store) is None
    assert tracker._headers == {}


def test_a_batch_of_a_long_header_is_read_whole_unless_it_is_gone(log, store, monkeypatch):
    several = [sent(text) for text in "abcdefgh"]
    log.inbox.put(several)
    whole, find = [], Folder.find

    def noted(folder, name):
        whole.append(name.startswith("batches/"))
        return find(folder, name)

    monkeypatch.setattr(Folder, "find", noted)
    assert Tracker(log).find(several[-1].receipt, store).state == "accepted"
    assert sum(whole) == 0
    monkeypatch.setattr(tracking, "_HEADER", 64)
    tracker = Tracker(log)
    assert tracker.find(several[-1].receipt, store).state == "accepted"
    assert sum(whole) == 1
    # one that was sealed as it was read, between the two looks
    monkeypatch.setattr(Folder, "find", lambda folder, name: None)
    assert tracker._receipts("batches/gone", b"?" * 64) == {}
    with pytest.raises(StoreError):
        tracker._receipts("batches/damaged", b"?" * 63)


def test_how_far_all_is_counted(log):
    assert (counted_up_to(log.inbox), read_counted(log.inbox, 1)) == (0, Counted())
    note_reached(log.inbox, 7)
    assert counted_up_to(log.inbox) == 7
    note_counted(log.inbox, 7, Counted(3, {"a": "bad"}))
    assert read_counted(log.inbox, 7) == Counted(3, {"a": "bad"})


def test_outcomes_are_noted_up_to_a_shard_that_failed(log):
    seals = [sealed(log, text)[1] for text in "abcd"]
    paths = [one.shards[0].path for one in seals]
    found = Outcomes({paths[0]: "bad"}, {paths[1]: "full"}, {paths[2]: "reset"})
    note_outcomes(log, seals, [], found, 5)
    told = [read_counted(log.inbox, number) for number in (1, 2, 3, 4)]
    assert told == [Counted(5, {paths[0]: "bad"}), Counted(5), Counted(), Counted()]
    assert counted_up_to(log.inbox) == 2
    (note,) = all_set_aside(log.inbox.folder)
    assert (note.path, note.documents, note.reason) == (paths[1], 1, "full")
    note_outcomes(log, seals[2:], [], Outcomes({}, {}, {}), 6)
    assert counted_up_to(log.inbox) == 4
    assert read_counted(log.inbox, 4) == Counted(6)


def test_what_is_counted_again_is_set_aside_no_more_unless_it_fails_again(log):
    seals = [sealed(log, text)[1] for text in "abcd"]
    shards = [one.shards[0] for one in seals]
    paths = [shard.path for shard in shards]
    note_outcomes(log, seals, [], Outcomes({}, dict.fromkeys(paths, "full"), {}), 5)
    for number, path in enumerate(paths, 1):
        note_counted(log.inbox, number, Counted(5, {path: "old", "other": "stays"}))
    assert due_again(log) == ()
    retry(log.inbox.folder, paths)
    assert due_again(log) == tuple(shards)
    found = Outcomes({paths[1]: "bad"}, {paths[2]: "fuller"}, {paths[3]: "reset"})
    note_outcomes(log, [], shards, found, 9)
    assert [read_counted(log.inbox, number) for number in (1, 2, 3, 4)] == [
        Counted(9, {"other": "stays"}),
        Counted(9, {"other": "stays", paths[1]: "bad"}),
        Counted(5, {paths[2]: "old", "other": "stays"}),
        Counted(5, {paths[3]: "old", "other": "stays"}),
    ]
    assert {one.path: one.reason for one in all_set_aside(log.inbox.folder)} == {
        paths[2]: "fuller",
        paths[3]: "full",
    }
    assert [shard.path for shard in due_again(log)] == [paths[3]]
    refuse(log, paths[2])
    assert read_counted(log.inbox, 3).left_out[paths[2]] == "fuller (refused by an admin)"
    assert read_counted(log.inbox, 3).version == 5
    assert [one.path for one in all_set_aside(log.inbox.folder)] == [paths[3]]


def test_notes_of_shards_that_are_gone_go(log):
    first, second = (sealed(log, text)[1].shards[0] for text in "ab")
    for shard in (first, second):
        set_aside(log.inbox.folder, shard.path, 1, "full")
    note_gone(log.inbox.folder, first.path, [0], None, "a" * 32)
    log.inbox.folder.delete([first.path])
    assert due_again(log) == ()
    assert [one.path for one in all_set_aside(log.inbox.folder)] == [second.path]


def test_shards_are_named_by_url_and_a_failing_one_ends_the_turn(log):
    found = Outcomes({"a": "bad"}, {"b": "full"}, {})
    url = log.inbox.folder.url
    assert found.named(log.inbox) == (((f"{url}/a", "bad"),), ((f"{url}/b", "full"),))
    found.require_none_failing(log.inbox)
    with pytest.raises(Exception, match=r"/c was not counted \(reset\), although it is readable"):
        Outcomes({}, {}, {"c": "reset"}).require_none_failing(log.inbox)
