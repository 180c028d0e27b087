"""Sealing: each document that was acknowledged is in one shard, whoever seals and dies."""

import contextlib
import uuid
from collections import Counter
from dataclasses import replace

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mortal_folder import Killed, mortal
from sent_documents import sealed_texts, sent

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox import sealing
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.sealing import SealedByAnother, SealLog


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
    """The reply of its creation was lost, and it was sealed before the writer asked."""
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
    """Whichever seal has it, and however many were made since: those of long ago are read apart."""
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
    """Whoever made the seals since died before each note."""
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
    """What was begun is ended by the next, to the bit."""
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
    """Keys 0 to 3 come again and again, 4 and 5 stand for no key; sealers die where they like."""
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
