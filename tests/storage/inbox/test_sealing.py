"""Sealing: each acknowledged document is in exactly one shard, even if sealers die."""

import contextlib
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import date

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mortal_folder import Killed, mortal
from sent_documents import TODAY, sealed_texts, sent
from synced_folder import Synced

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox import sealing
from streaming_moments.storage.inbox.batches import Piece, Submission
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealedByAnother, SealLog
from streaming_moments.storage.inbox.seals import seal_file, shard_file


def sealed_all(inbox):
    log = SealLog(inbox)
    return list(iter(log.seal_next, None))


def test_what_came_is_in_a_shard_of_its_day(inbox):
    inbox.put([sent("a", "b"), sent("c", day="2026-11-20")])
    inbox.put([sent("d", key="k")])
    (sealed,) = sealed_all(inbox)
    assert (sealed.number, sealed.documents) == (1, 4)
    assert [(shard.day.isoformat(), shard.documents) for shard in sealed.shards] == [
        ("2026-11-20", 1),
        ("2026-11-23", 3),
    ]
    assert sealed_texts(inbox) == ["a", "b", "c", "d"]
    assert inbox.pending() == []
    (shard,) = sealed.shards_of(sent("d", key="k").receipt)
    assert shard.day.isoformat() == "2026-11-23"
    again = SealLog(Inbox.open(inbox.folder.url, inbox.folder.storage_options))
    assert (again.latest(), again.read(1)) == (1, sealed)
    assert (again, repr(again)) == (SealLog(again.inbox), repr(SealLog(again.inbox)))
    assert again.find(sent("d", key="k").receipt, 0, 1) == sealed
    assert again.find("b" + "0" * 32 + "-0", 0, 1) is None


def test_what_comes_again_adds_nothing_however_late(inbox):
    inbox.put([sent("a", key="k"), sent("a", key="k")])
    inbox.put([sent("a", key="k"), sent("b")])
    assert len(sealed_all(inbox)) == 1
    for _ in range(3):
        inbox.put([sent("c")])
        inbox.put([sent("a", key="k")])
        sealed_all(Inbox.open(inbox.folder.url, inbox.folder.storage_options))
    assert sealed_texts(inbox) == ["a", "b", "c", "c", "c"]


def test_of_two_contents_under_a_key_the_claimed_one_is_kept(inbox):
    second = sent("b", key="k")
    inbox.claim(second.receipt, second.digest, 0)
    inbox.put([sent("a", key="k"), second])
    (sealed,) = sealed_all(inbox)
    assert sealed_texts(inbox) == ["b"]
    assert sealed.batches[0].refused == (second.receipt,)


def test_a_batch_that_is_written_again_after_it_was_sealed_adds_nothing(inbox):
    """The reply of its creation was lost, and it was sealed before the writer checked."""
    one, identity = sent("a"), uuid.uuid4().hex
    inbox.put([one], identity)
    sealed_all(inbox)
    inbox.put([one], identity)
    assert all(not sealed.shards for sealed in sealed_all(inbox))
    assert inbox.pending() == []
    assert sealed_texts(inbox) == ["a"]
    inbox.put([sent("b")])
    sealed_all(inbox)
    inbox.put([one], identity)
    inbox.put([sent("c")])
    sealed_all(inbox)
    assert sealed_texts(inbox) == ["a", "b", "c"]
    assert inbox.pending() == []


def test_what_was_taken_out_is_not_put_back_by_a_batch_that_is_written_again(inbox):
    one, identity = sent("a"), uuid.uuid4().hex
    inbox.put([one], identity)
    (sealed,) = sealed_all(inbox)
    inbox.folder.delete([shard.path for shard in sealed.shards])
    inbox.put([one], identity)
    assert sealed_all(inbox) == []
    assert inbox.pending() == []
    assert inbox.folder.sizes("sealed") == {}


def test_what_comes_again_long_after_is_looked_for_once(tmp_path, monkeypatch):
    monkeypatch.setattr(sealing, "_NEAR", 2)
    monkeypatch.setattr(sealing, "_AT_ONCE", 2)
    inbox = Inbox.open(str(tmp_path))
    old, never = sent("a", key="a"), sent("b", key="b")
    for one in (old, never):
        inbox.claim(one.receipt, one.digest, 0)
    for number in range(9):
        inbox.put([sent(f"c{number}")] + [old] * (number == 3))
        sealed_all(inbox)
    # its claim is of long ago, as that of who died before its batch
    inbox.renew(old.receipt, replace(inbox.claim(old.receipt, old.digest, 0), after=0))
    inbox.put([old, never])
    log = SealLog(Inbox.open(str(tmp_path)))
    assert log.seal_next().receipts == {never.receipt}
    claims = inbox.claims_of([old.receipt, never.receipt])
    assert [claim.after for claim in claims.values()] == [3, 9]
    assert log.find(old.receipt, 0, 10).number == 4
    assert log.find(never.receipt, 9, 10).number == 10
    assert log.find(sent("d").receipt, 0, 10) is None
    inbox.put([old, never])
    assert not log.seal_next().shards


@pytest.mark.parametrize("seals", range(1, 9))
@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_a_key_that_comes_again_counts_once_wherever_it_was_sealed(seals, at_once, monkeypatch):
    """For any seal of the key, and any number of later seals, as old seals are read separately."""
    monkeypatch.setattr(sealing, "_NEAR", 2)
    monkeypatch.setattr(sealing, "_AT_ONCE", at_once)
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    keyed = [sent(f"text {number}", key=str(number)) for number in range(seals)]
    for one in keyed:
        inbox.put([one])
        sealed_all(inbox)
    for number, one in enumerate(keyed, 1):
        assert SealLog(inbox).find(one.receipt, 0, seals).number == number
        assert SealLog(inbox).find(one.receipt, number - 1, number).number == number
        assert SealLog(inbox).find(one.receipt, number, seals) is None
    for one in keyed:
        inbox.renew(one.receipt, replace(inbox.claims_of([one.receipt])[one.receipt], after=0))
    inbox.put(keyed)
    assert SealLog(inbox).seal_next().shards == ()


@pytest.mark.parametrize("noted", range(6))
def test_the_latest_seal_is_found_behind_a_note_that_lags(noted):
    """The process that made the later seals died before each note."""
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    for number in range(5):
        inbox.put([sent(f"text {number}")])
    log = SealLog(inbox)
    while log.seal_next(most_documents=1):
        pass
    if noted:
        inbox.folder.write("reached.json", seal({"seal": noted}))
    else:
        inbox.folder.delete(["reached.json"])
    assert SealLog(inbox).latest() == 5
    inbox.put([sent("more")])
    assert SealLog(inbox).seal_next().number == 6


def test_few_submissions_are_held_in_memory(inbox, monkeypatch):
    monkeypatch.setattr(sealing, "_HELD_SUBMISSIONS", 5)
    log = SealLog(inbox)
    for number in range(4):
        inbox.put([sent(f"{number} {one}") for one in range(2)])
        log.seal_next()
    assert [one.number for one in log._held.values()] == [3, 4]
    assert [log.read(number).number for number in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_seals_take_no_more_than_they_are_told_to(inbox):
    for text in "abc":
        inbox.put([sent(text, text)])
    log = SealLog(inbox)
    assert log.seal_next(most_documents=4).documents == 4
    assert log.seal_next(most_documents=1).documents == 2
    assert log.seal_next() is None
    for text in "de":
        inbox.put([sent(text)])
    assert log.seal_next(most_bytes=1).documents == 1


def test_a_sealer_that_slept_is_told_that_it_was_overtaken(inbox):
    inbox.put([sent("a")])
    quick = SealLog(Inbox.open(inbox.folder.url, inbox.folder.storage_options))
    slept = []

    class Sleeping(Inbox):
        def read_all(self, names):
            found = super().read_all(names)
            if not slept:
                slept.append(quick.seal_next())
            return found

    with pytest.raises(SealedByAnother):
        SealLog(Sleeping(inbox.folder)).seal_next()
    assert sealed_texts(inbox) == ["a"]
    assert sealed_all(inbox) == []


def test_a_damaged_batch_is_named_and_nothing_of_it_is_sealed(inbox):
    name = inbox.put([sent("a")])
    content = inbox.folder.read(f"batches/{name}")
    inbox.folder.write(f"batches/{name}", content[:-2] + b"x\n")
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        SealLog(inbox).seal_next()
    assert SealLog(inbox).latest() == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_sealer_may_die_at_each_of_its_operations(after):
    """The next process finishes it, with equal bytes."""
    files = fsspec.filesystem("memory")
    for dies_at in range(100):
        url = f"memory://{uuid.uuid4().hex}"
        inbox = Inbox.open(url)
        inbox.put([sent("a", "b", key="k"), sent("c", day="2026-11-20")])
        inbox.put([sent("d"), sent("a", "b", key="k")])
        try:
            SealLog(mortal(inbox.folder, dies_at, after)).seal_next()
        except Killed:
            inbox.put([sent("e"), sent("a", "b", key="k")])
            sealed_all(inbox)
            assert sealed_texts(inbox) == ["a", "b", "c", "d", "e"], dies_at
            assert inbox.pending() == []
            files.rm(inbox.folder._path, recursive=True)
            continue
        assert dies_at >= 8
        return
    raise AssertionError("it never came to an end")


actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.integers(0, 5), min_size=1, max_size=3)),
        st.tuples(st.just("seal"), st.integers(0, 14), st.booleans()),
        st.tuples(st.just("again"), st.integers(0, 9)),
    ),
    max_size=12,
)


@given(actions)
@settings(max_examples=100)
def test_after_any_history_each_document_that_was_acknowledged_is_there_once(history):
    """Keys 0 to 3 repeat, 4 and 5 mean no key; sealers die at any place."""
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    wanted, batches = Counter(), []
    for action, *told in history:
        if action == "put":
            latest = SealLog(inbox).latest()
            submissions = []
            for number in told[0]:
                text = f"key {number}" if number < 4 else f"text {len(batches)}-{len(submissions)}"
                key = str(number) if number < 4 else None
                submissions.append(sent(text, key=key, after=latest))
                wanted[text] = 1
            identity = uuid.uuid4().hex
            inbox.put(submissions, identity)
            batches.append((submissions, identity))
        elif action == "again" and batches:
            inbox.put(*batches[told[0] % len(batches)])
        elif action == "seal":
            with contextlib.suppress(Killed):
                SealLog(mortal(inbox.folder, *told)).seal_next(most_documents=4)
    sealed_all(inbox)
    assert Counter(sealed_texts(inbox)) == wanted
    assert inbox.pending() == []
    fsspec.filesystem("memory").rm(inbox.folder._path, recursive=True)


def of(documents, nbytes=15):
    """A submission of many documents with lines of one byte."""
    piece = Piece(date(2026, 11, 23), documents, nbytes)
    return Submission(new_receipt(0), "a" * 64, False, (piece,), b"x" * nbytes)


def memory_inbox():
    return Inbox.open(f"memory://{uuid.uuid4().hex}")


def test_a_seal_takes_batches_up_to_the_bounds_and_the_oldest_always():
    inbox = memory_inbox()
    for documents in (9_999, 1, 1, 10_001):
        inbox.put([of(documents)])
    assert [one.documents for one in sealed_all(inbox)] == [10_000, 1, 10_001]
    for _ in range(3):
        inbox.put([of(1, 500)])
    two = sum(batch.nbytes for batch in inbox.pending()[:2])
    assert SealLog(inbox).seal_next(most_bytes=two).documents == 2
    assert SealLog(inbox).seal_next(most_bytes=two).documents == 1


def test_a_seal_outlasts_a_power_cut_with_its_shards_and_is_noted():
    folder = Synced(memory_inbox().folder.url)
    Inbox(folder).put([sent("a"), sent("b", day="2026-11-20")])
    log = SealLog(Inbox(folder))
    log.seal_next()
    assert folder.synced == ["sealed/2026-11-20", "sealed/2026-11-23"]
    assert unseal(folder.read("reached.json"), "reached.json") == {"seal": 1}
    assert log.holds(shard_file(1, TODAY))
    assert not log.holds(shard_file(1, date(2026, 11, 21)))
    log.finish(1)
    assert len(folder.synced) == 2


def test_a_shard_that_is_there_with_another_content_is_an_error():
    inbox = memory_inbox()
    inbox.put([sent("a"), sent("b", day="2026-11-20")])
    inbox.folder.write(shard_file(1, TODAY), b"other")
    for _ in range(2):
        with pytest.raises(StoreError, match="2026-11-23/.* differs from seal 1"):
            SealLog(inbox).seal_next()
    assert len(inbox.pending()) == 1
    assert inbox.folder.read(shard_file(1, TODAY)) == b"other"


def test_a_process_knows_the_seals_that_it_made_whatever_a_note_says():
    log = SealLog(memory_inbox())
    folder = log.inbox.folder
    for number in range(4):
        log.inbox.put([sent(f"{number}")])
        log.seal_next()
    # another one slept while seals expired, and wrote its own
    folder.write("reached.json", seal({"seal": 1}))
    folder.delete([seal_file(2)])
    assert (log.latest(), SealLog(log.inbox).latest()) == (4, 1)
    folder.write("reached.json", seal({"seal": "4"}))
    with pytest.raises(StoreError, match="reached.json has no valid number of a seal"):
        log.latest()


@dataclass(frozen=True)
class Counted(Folder):
    """A folder that records how many files are read together."""

    groups: list = field(default_factory=list, compare=False)

    def read_all(self, names, limits=None):
        self.groups.append(len(names))
        return super().read_all(names, limits)


def test_seals_of_long_ago_are_read_and_not_held(monkeypatch):
    monkeypatch.setattr(sealing, "_NEAR", 2)
    monkeypatch.setattr(sealing, "_AT_ONCE", 2)
    log = SealLog(memory_inbox())
    receipts = [sent(f"{number}", key=f"{number}") for number in range(6)]
    for one in receipts:
        log.inbox.put([one])
        log.seal_next()
    folder = Counted(log.inbox.folder.url)
    again = SealLog(Inbox(folder))
    found = again.find_all({one.receipt: 0 for one in receipts}, 6)
    assert folder.groups == [2, 2, 1, 1]
    assert [found[one.receipt].number for one in receipts] == [1, 2, 3, 4, 5, 6]
    assert [*again._held] == [5, 6]
    # what is in the seal itself behind which it is looked for came under a key that has expired
    behind = {receipts[0].receipt: 0, receipts[1].receipt: 2, receipts[4].receipt: 5}
    assert again.find_all(behind, 6).keys() == {receipts[0].receipt}
    assert [one.number for one in again.each(range(1, 7))] == [1, 2, 3, 4, 5, 6]
    assert [*again._held] == [5, 6]


@pytest.mark.parametrize(("name", "bound"), [("_HELD", 2), ("_HELD_SUBMISSIONS", 4)])
def test_seals_are_held_up_to_the_bound(monkeypatch, name, bound):
    monkeypatch.setattr(sealing, name, bound)
    log = SealLog(memory_inbox())
    for number in range(5):
        log.inbox.put([sent(f"{number} {one}") for one in range(2)])
        log.seal_next()
        assert [*log._held] == [*range(max(number, 1), number + 2)]


def test_a_large_seal_takes_the_place_of_several(monkeypatch):
    monkeypatch.setattr(sealing, "_HELD_SUBMISSIONS", 4)
    log = SealLog(memory_inbox())
    held = []
    for submissions in (1, 1, 1, 3, 5):
        log.inbox.put([sent(f"{submissions} {number}") for number in range(submissions)])
        log.seal_next()
        held.append([*log._held])
    assert held == [[1], [1, 2], [1, 2, 3], [3, 4], [5]]


def test_a_seal_that_has_expired_is_not_read():
    log = SealLog(memory_inbox())
    receipts = [sent(f"{number}", key=f"{number}") for number in range(4)]
    for one in receipts:
        log.inbox.put([one])
        log.seal_next()
    log.inbox.folder.write("expired.json", seal({"seal": 2}))
    log.inbox.folder.delete([seal_file(1), seal_file(2)])
    again = SealLog(log.inbox)
    found = again.find_all({one.receipt: 0 for one in receipts}, 4)
    assert {receipt: one.number for receipt, one in found.items()} == {
        receipts[2].receipt: 3,
        receipts[3].receipt: 4,
    }
    # a search that ends before what is kept begins
    assert again.find(receipts[1].receipt, 1, 2) is None
    assert [*again._held] == [3, 4]


def test_claims_are_renewed_only_once_they_are_of_long_ago(monkeypatch):
    monkeypatch.setattr(sealing, "_NEAR", 2)
    inbox, one, after = memory_inbox(), sent("a", key="a"), []
    inbox.claim(one.receipt, one.digest, 0)
    inbox.put([sent("first")])
    sealed_all(inbox)
    for number in range(3):
        inbox.put([one, sent(f"{number}")])
        assert len(sealed_all(inbox)) == 1
        after.append(inbox.claims_of([one.receipt])[one.receipt].after)
    # it is in the second seal, and renewed once three were made since the claim
    assert after == [0, 0, 1]
    inbox.put([sent("b", key="b")])
    sealed_all(inbox)
    other = inbox.claims_of([sent("b", key="b").receipt])
    assert [claim.after for claim in other.values()] == [4]


def test_what_comes_without_a_key_is_looked_for_behind_its_seal_alone():
    inbox = memory_inbox()
    for number in range(4):
        inbox.put([sent(f"{number}")])
        sealed_all(inbox)
    inbox.put([sent("late", after=4)])
    log = SealLog(inbox)
    assert log.seal_next().number == 5
    assert [*log._held] == [4, 5]


def test_one_that_ends_a_seal_is_not_disturbed_by_another_that_does():
    inbox = memory_inbox()
    inbox.put([sent("a"), sent("b")])
    with contextlib.suppress(Killed):
        SealLog(mortal(inbox.folder, 2)).seal_next()
    assert inbox.folder.exists(seal_file(1))

    class Overtaken(Inbox):
        def read_all(self, names):
            SealLog(inbox).finish(1)
            return super().read_all(names)

    SealLog(Overtaken(inbox.folder)).finish(1)
    assert (sealed_texts(inbox), inbox.pending()) == (["a", "b"], [])


def test_a_batch_that_is_damaged_before_its_seal_is_ended_is_an_error():
    inbox = memory_inbox()
    name = inbox.put([sent("a")])
    with contextlib.suppress(Killed):
        SealLog(mortal(inbox.folder, 2)).seal_next()
    content = inbox.folder.read(f"batches/{name}")
    inbox.folder.write(f"batches/{name}", content[:-2] + b"x\n")
    with pytest.raises(StoreError, match=f"{name} is damaged"):
        SealLog(inbox).finish(1)
    assert [batch.name for batch in inbox.pending()] == [name]
