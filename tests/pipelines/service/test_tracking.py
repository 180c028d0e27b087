"""What became of receipts: of an inbox as 0.2.0 left it, and of seals as they are noted."""

from dataclasses import asdict, replace
from datetime import date

import pytest
from frozen import expected, place_of, plain, unpack, within
from sent_documents import sent

from streaming_moments.pipelines.service.accumulating.counted import (
    Counted,
    counted_up_to,
    note_counted,
    note_reached,
    read_counted,
)
from streaming_moments.pipelines.service.accumulating.refusing import (
    Outcomes,
    due_again,
    is_there,
    note_outcomes,
    refuse,
)
from streaming_moments.pipelines.service.tracking import Tracker
from streaming_moments.storage.inbox.gone import note_gone
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.set_aside import all_set_aside, retry, set_aside
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
    assert "version 4 counted them, and version 4 does not" in found()[3]
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


def test_a_receipt_of_two_days_is_refused_for_one_and_forgotten_for_both(log, store):
    records = sent("a", "b")
    pieces = [replace(records.pieces[0], day=date.fromisoformat(day), documents=1) for day in DAYS]
    lines = records.content.splitlines(keepends=True)
    both = replace(
        records,
        pieces=tuple(
            replace(piece, nbytes=len(line)) for piece, line in zip(pieces, lines, strict=True)
        ),
    )
    log.inbox.put([both])
    seal = log.seal_next()
    one, other = seal.shards
    note_counted(log.inbox, 1, Counted(4, {other.path: "bad"}))
    tracker = Tracker(log)
    told = tracker.find(both.receipt, store)
    assert (told.state, told.documents, told.reason) == ("refused", 2, "bad")
    for shard in (one, other):
        log.inbox.folder.delete([shard.path])
        note_gone(log.inbox.folder, shard.path, [0], None, "a" * 32)
        assert is_there(log.inbox, shard) is False
    assert tracker.find(both.receipt, store).state == "forgotten"


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
    with pytest.raises(Exception, match=r"/c was not counted \(reset\), though it can be read"):
        Outcomes({}, {}, {"c": "reset"}).require_none_failing(log.inbox)
