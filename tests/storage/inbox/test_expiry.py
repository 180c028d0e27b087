"""Expiry and purge of an inbox: only old, counted data is deleted, even if processes die."""

import os
import uuid
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest
from mortal_folder import Killed, mortal
from sent_documents import TODAY, sealed_texts, sent
from synced_folder import Synced

from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox import purging
from streaming_moments.storage.inbox.deletions import Deletion, Deletions, note_gone
from streaming_moments.storage.inbox.expiry import Expired, Retention, expire
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.purging import left_in_inboxes, purge_inboxes
from streaming_moments.storage.inbox.rejected import LeftOut, note_left_out
from streaming_moments.storage.inbox.sealing import SealedByAnother, SealLog
from streaming_moments.storage.inbox.seals import seal_file, shard_file

AT_ONCE = Retention(timedelta(0), timedelta(0))
DAY = timedelta(days=1)


def sealed_four(url, options=None):
    """Seals of one document each, with a key each; the third is not counted."""
    inbox = Inbox.open(url, options)
    log = SealLog(inbox)
    for text in "abcd":
        inbox.put([sent(text, key=text)])
        log.seal_next()
        inbox.folder.write(f"counted/{log.latest():020d}.json", b"noted")
    note_left_out(inbox.folder, sent("a", key="a").receipt, [LeftOut(1, "text", "it is missing")])
    return inbox


def is_counted(path):
    return "003.sealed" not in path


def expired(inbox, retention=AT_ONCE, counted=4, **more):
    return expire(SealLog(inbox), retention, counted, is_counted, ("counted",), **more)


def files_of(inbox):
    """All files except the clock, and files that keep folders from being empty."""
    return {file.path for file in inbox.folder.files("")} - {"clock"}


def test_what_is_counted_goes_with_its_seals_up_to_the_first_that_holds_something(folder):
    inbox = sealed_four(folder.url, folder.storage_options)
    deletions = Deletions(SealLog(inbox))
    identity = deletions.ask(Deletion("id", ("none",)))
    plan = deletions.plan(identity, Deletion("id", ("none",)))
    deletions.finish(identity, plan, None)
    before = files_of(inbox)
    assert expired(inbox) == Expired(3, 2, 4)
    assert sealed_texts(inbox) == ["c"]
    gone = before - files_of(inbox)
    assert not any(path.startswith("batches") for path in gone)
    assert deletions.done(identity) is None
    log = SealLog(Inbox.open(folder.url, folder.storage_options))
    assert (log.latest(), log.expired()) == (4, 2)
    assert {path for path in files_of(inbox) if path.startswith(("seals", "counted"))} == {
        seal_file(number) for number in (3, 4)
    } | {f"counted/{number:020d}.json" for number in (3, 4)}
    receipts = [sent(text, key=text).receipt for text in "abcd"]
    found = [log.find(receipt, 0, 4) for receipt in receipts]
    assert [one and one.number for one in found] == [None, None, 3, 4]
    assert expired(inbox) == Expired()
    # it goes on behind what is gone
    inbox.put([sent("e")])
    assert log.seal_next().number == 5


def test_a_note_of_a_seal_that_has_expired_is_as_good_as_none(local):
    """A process that slept during an expiry has written it."""
    inbox = sealed_four(local.url)
    assert expired(inbox) == Expired(3, 2, 4)
    inbox.folder.write("reached.json", seal({"seal": 1}))
    inbox.put([sent("e")])
    assert SealLog(inbox).seal_next().number == 5


@pytest.fixture
def local(tmp_path):
    return Inbox.open(str(tmp_path / "inbox")).folder


def older(inbox, part, age, *names):
    for path in Path(inbox.folder.url, part).rglob("*"):
        if path.is_file() and (not names or any(name in path.name for name in names)):
            then = path.stat().st_mtime - age.total_seconds()
            os.utime(path, (then, then))


def test_what_is_young_or_not_counted_stays(local):
    inbox = sealed_four(local.url)
    assert not expired(inbox, Retention(DAY, DAY))
    older(inbox, "sealed", 2 * DAY)
    assert not expired(inbox, Retention(DAY, DAY), counted=0)
    assert expired(inbox, Retention(DAY, DAY)) == Expired(shards=3)
    older(inbox, "seals", 2 * DAY, "001")
    older(inbox, "claims", 2 * DAY, sent("b", key="b").receipt)
    assert expired(inbox, Retention(DAY, DAY)) == Expired(seals=1, claims=1)
    # a key that is kept stands for what it stood for; another counts again
    inbox.put([sent("a", key="a")])
    inbox.put([sent("b", key="b")])
    SealLog(inbox).seal_next()
    assert sealed_texts(inbox) == ["a", "b", "c"]


def test_the_plan_of_a_deletion_that_is_not_done_stays_however_old(local):
    inbox = sealed_four(local.url)
    deletions = Deletions(SealLog(inbox))
    receipt = sent("c", key="c").receipt
    begun = deletions.ask(Deletion("receipt", (receipt,)))
    plan = deletions.plan(begun, deletions.waiting()[begun])
    deletions.set_aside(*plan.shards)
    for part in ("deletion-plans", "deletions", "aside"):
        older(inbox, part, 2 * DAY)
    expired(inbox, Retention(DAY, None))
    assert local.names("deletion-plans") == [f"{begun}.json"]
    assert deletions.plan(begun, deletions.waiting()[begun]) == plan
    deletions.finish(begun, plan, 1)
    older(inbox, "deletion-plans", 2 * DAY)
    expired(inbox, Retention(DAY, None))
    assert local.names("deletion-plans") == []


def test_documents_stay_for_ever_where_that_is_asked_and_their_seals_with_them(local):
    inbox = sealed_four(local.url)
    assert expired(inbox, Retention(keys=timedelta(0))) == Expired(claims=4)
    assert sealed_texts(inbox) == list("abcd")
    assert expired(inbox, Retention()) == Expired()
    # by a receipt whose key has expired they are deleted as before
    deletions, asked = Deletions(SealLog(inbox)), Deletion("receipt", (sent("a", key="a").receipt,))
    assert deletions.plan(deletions.ask(asked), asked).documents == 1


def test_what_is_looked_for_behind_a_seal_in_memory_may_have_expired(local):
    inbox = sealed_four(local.url)
    log = SealLog(inbox)
    log.read(1)
    assert expired(inbox).seals == 2
    assert log.find(sent("d", key="d").receipt, 0, 4).number == 4


def test_many_go_in_several_turns(local):
    inbox = sealed_four(local.url)
    turns = list(iter(lambda: expired(inbox, most=2), Expired()))
    assert [turn.more for turn in turns] == [True] * (len(turns) - 1) + [False]
    assert sum(turn.shards for turn in turns) == 3
    assert sum(turn.seals for turn in turns) == 2


def test_who_seals_anew_what_has_expired_is_told(local):
    """The process slept while others sealed and expired."""
    inbox = sealed_four(local.url)
    inbox.put([sent("e")])

    class Sleeping(SealLog):
        def latest(self):
            return 1

    SealLog(inbox).seal_next()
    inbox.put([sent("e")])
    expired(inbox)
    asleep = Sleeping(inbox)
    asleep._held[1] = SealLog(inbox).read(4)
    with pytest.raises(SealedByAnother, match="expired"):
        asleep.seal_next()
    assert not inbox.folder.exists(seal_file(2))
    SealLog(inbox).seal_next()
    assert sealed_texts(inbox) == ["c", "e", "e"]


def test_a_batch_that_comes_back_brings_no_shard_back(local):
    """The seal was finished, and its shard expired, but the writer of the batch got no reply."""
    inbox = Inbox.open(local.url)
    identity = uuid.uuid4().hex
    inbox.put([sent("a", key="a")], identity)
    SealLog(inbox).seal_next()
    expire(SealLog(inbox), Retention(documents=timedelta(0)), 1, is_counted)
    inbox.put([sent("a", key="a")], identity)
    SealLog(inbox).seal_next()
    assert (sealed_texts(inbox), inbox.pending()) == ([], [])


@pytest.mark.parametrize("after", [False, True])
def test_an_expiry_may_die_at_each_of_its_operations(after):
    files, wanted = fsspec.filesystem("memory"), None
    for dies_at in range(100):
        inbox = sealed_four(f"memory://{uuid.uuid4().hex}")
        if wanted is None:
            whole = sealed_four(f"memory://{uuid.uuid4().hex}")
            expired(whole)
            wanted = files_of(whole)
        try:
            expired(mortal(inbox.folder, dies_at, after))
        except Killed:
            log = SealLog(Inbox.open(inbox.folder.url))
            assert log.latest() == 4
            assert "c" in sealed_texts(inbox)
            for text, number in (("c", 3), ("d", 4)):
                assert log.find(sent(text, key=text).receipt, 0, 4).number == number
            # what comes now is sealed once, whatever has expired
            inbox.put([sent("e", after=4)])
            log.seal_next()
            assert sealed_texts(inbox).count("e") == 1
            expired(inbox, counted=4)
            left = {path for path in files_of(inbox) if "5." not in path}
            assert left == wanted, dies_at
            files.rm(inbox.folder._path, recursive=True)
            continue
        assert dies_at >= 12
        return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("after", [False, True])
def test_a_purge_may_die_at_each_of_its_operations(after, monkeypatch):
    files = fsspec.filesystem("memory")
    for dies_at in range(60):
        inbox = sealed_four(f"memory://{uuid.uuid4().hex}")
        inbox.put([sent("b", key="b")])
        [shard] = SealLog(inbox).read(2).shards
        name, digest = f"{inbox.folder.url}/{shard.path}", sent("b", key="b").digest

        def folder_of(url, options=None, dies_at=dies_at):
            return mortal(Folder.at(url, options), dies_at, after).folder

        monkeypatch.setattr(purging, "Folder", SimpleNamespace(at=folder_of))
        try:
            purge_inboxes([name])
            died = False
        except Killed:
            died = True
        monkeypatch.undo()
        if died:
            purge_inboxes([name])
        everything = b"".join(inbox.folder.read(path) for path in files_of(inbox))
        assert not [one for one in (shard.sha256, digest, '"b"') if one.encode() in everything]
        assert list(left_in_inboxes([name])) == []
        assert sealed_texts(inbox) == ["a", "c", "d"]
        files.rm(inbox.folder._path, recursive=True)
        if not died:
            assert dies_at >= 8
            return
    raise AssertionError("it never came to an end")


def everything_counted(inbox, **more):
    return expire(SealLog(inbox), AT_ONCE, more.pop("counted", 4), lambda path: True, **more)


def test_what_went_is_true_and_nothing_is_not():
    assert Expired() == Expired(0, 0, 0, False)
    assert [bool(one) for one in (Expired(), Expired(more=True))] == [False, False]
    assert all((Expired(shards=1), Expired(seals=1), Expired(claims=1)))


def test_only_files_of_seals_go_and_the_latest_seal_stays(local):
    inbox = sealed_four(local.url)
    others = ["sealed/notes.txt", "seals/notes.json", "counted/notes.json", "claims/notes.json"]
    for name in (*others, "counted/00000000000000000000.json"):
        local.write(name, b"by hand")
    note_gone(local, shard_file(1, TODAY), [0], None, "1" * 32)
    synced, beats = Synced(local.url), []
    found = everything_counted(Inbox(synced), notes=("counted",), beat=lambda: beats.append(1))
    assert found == Expired(4, 3, 4)
    # besides those, notes of three seals, of a deletion, and of what was left out
    assert len(beats) == 4 + 3 + 4 + 3 + 1 + 1
    assert SealLog(inbox).expired() == 3
    assert synced.synced == [""]
    assert all(map(local.exists, (*others, "counted/00000000000000000000.json", "claims/kept")))
    log = SealLog(inbox)
    assert [log.holds(shard_file(number, TODAY)) for number in (2, 3, 4)] == [False, False, True]
    assert log.find(sent("c", key="c").receipt, 2, 3) is None


def test_seals_that_are_not_counted_yet_stay(local):
    inbox = sealed_four(local.url)
    assert everything_counted(inbox, counted=2) == Expired(2, 2, 4)
    assert SealLog(inbox).expired() == 2
    assert sealed_texts(inbox) == ["c", "d"]


def test_nothing_is_noted_while_no_seal_goes(local):
    inbox = sealed_four(local.url)
    before = files_of(inbox)
    assert not expired(inbox, Retention(DAY, DAY))
    assert files_of(inbox) == before


def test_a_turn_deletes_no_more_files_than_it_may(local):
    inbox, turns = sealed_four(local.url), 0
    while True:
        before = files_of(inbox)
        more = expired(inbox, most=2).more
        assert len(before - files_of(inbox)) <= 2
        if not more:
            break
        turns += 1
    # 3 shards, 2 seals with their notes, 4 claims, and a note of what was left out
    assert turns == 12 / 2 - 1


def test_a_file_is_old_from_the_very_time_that_was_given(local, monkeypatch):
    inbox = sealed_four(local.url)
    hour = timedelta(hours=1)
    written = {file.path: file.modified for file in local.files("claims")}
    now = written[f"{sent('b', key='b').receipt}.json"] + hour
    monkeypatch.setattr(Folder, "clock", lambda folder: now)
    claims = [path for path in written if path != "kept" and now - written[path] >= hour]
    assert 2 <= len(claims) < 4
    assert expired(inbox, Retention(hour, None)).claims == len(claims)
    assert local.names("claims") == sorted(set(written) - set(claims))
