"""Purging with concurrent processes: a process that slept at any operation restores nothing."""

import contextlib
import hashlib
import uuid
from dataclasses import replace
from datetime import date, timedelta

import pytest
from mortal_folder import Killed, mortal, sleeping
from sent_documents import sent

from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.storage.inbox import sealing
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.expiry import Retention, expire
from streaming_moments.storage.inbox.group_commit import GroupCommit
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.owners import Owner
from streaming_moments.storage.inbox.purging import (
    inboxes_of_others,
    left_in_inboxes,
    purge_inboxes,
    require_no_deletion,
    sealed_in_inboxes,
)
from streaming_moments.storage.inbox.rejected import LeftOut, note_left_out
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import seal_file, shard_file

FIRST = sent("a secret", "another", key="k")
SHARD = shard_file(1, FIRST.pieces[0].day)
OF_DAYS = (("a secret", 0), ("another", 1), ("a third", 1))
HASHES = (FIRST.digest, hashlib.sha256(FIRST.content).hexdigest())


def sealed_all(inbox):
    log = SealLog(inbox)
    while log.seal_next() is not None:
        pass
    return log


def deleted_all(log):
    """Does what the accumulator does, with shards that no store counts."""
    deletions = Deletions(log)
    for identity, deletion in deletions.waiting().items():
        if deletions.done(identity) is None:
            plan = deletions.plan(identity, deletion)
            for one in plan.shards:
                deletions.set_aside(one)
            deletions.finish(identity, plan, 1)
        else:
            deletions.withdraw(identity)


def found_in(folder, told):
    names = [file.path for file in folder.files("")]
    contents = zip(names, folder.read_all(names), strict=True)
    return [name for name, content in contents if any(one.encode() in content for one in told)]


def seals(inbox):
    inbox.put([FIRST])
    return lambda slow: SealLog(slow).seal_next()


def ends_a_seal(inbox):
    inbox.put([FIRST])
    with contextlib.suppress(Killed):
        SealLog(mortal(inbox.folder, 3)).seal_next()
    assert inbox.folder.exists(seal_file(1))
    assert not inbox.folder.exists(SHARD)
    return lambda slow: SealLog(slow).seal_next()


def seals_what_comes_again(inbox):
    """So late that the claim of its key is written again."""
    for one in (FIRST, *map(sent, "bcd")):
        inbox.put([one])
        sealed_all(inbox)
    claim = inbox.claims_of([FIRST.receipt])[FIRST.receipt]
    inbox.renew(FIRST.receipt, replace(claim, after=0))
    inbox.put([FIRST])
    return lambda slow: SealLog(slow).seal_next()


def seals_what_was_claimed_long_ago(inbox):
    """A claim of a server that died before it wrote a batch."""
    inbox.claim(FIRST.receipt, FIRST.digest, 0)
    inbox.put([sent("a")])
    sealed_all(inbox)
    inbox.put([FIRST])
    return lambda slow: SealLog(slow).seal_next()


def deletes_all(inbox):
    inbox.put([FIRST])
    Deletions(sealed_all(inbox)).ask(Deletion("receipt", (FIRST.receipt,)))
    return lambda slow: deleted_all(SealLog(slow))


def deletes_some(inbox):
    inbox.put([FIRST, sent("b")])
    Deletions(sealed_all(inbox)).ask(Deletion("receipt", (FIRST.receipt,)))
    return lambda slow: deleted_all(SealLog(slow))


def takes_again(inbox):
    inbox.put([FIRST])
    sealed_all(inbox)

    def taking(slow):
        commits = GroupCommit(slow, window=0.0)
        try:
            commits.submit(FIRST, 0).result(30)
        finally:
            commits.close()

    return taking


@pytest.fixture
def met(monkeypatch):
    """Lets one process sleep at each of its operations, while others act."""
    monkeypatch.setattr(sealing, "_NEAR", 0)

    def meeting(slow, others):
        for sleeps_at in range(100):
            inbox, woken = Inbox.open(f"memory://{uuid.uuid4().hex}"), []
            act = slow(inbox)

            def meanwhile(inbox=inbox, woken=woken):
                others(inbox)
                woken.append(inbox)

            with contextlib.suppress(StreamingMomentsError):
                act(sleeping(inbox.folder, sleeps_at, meanwhile))
            if not woken:
                assert sleeps_at > 1
                return
            # a turn later
            deleted_all(sealed_all(inbox))
            yield inbox

    return meeting


@pytest.mark.parametrize(
    "slow",
    [
        seals,
        ends_a_seal,
        seals_what_comes_again,
        seals_what_was_claimed_long_ago,
        deletes_all,
        deletes_some,
        takes_again,
    ],
)
def test_nothing_of_what_was_purged_meanwhile_comes_back(met, slow):
    def purged(inbox):
        log = sealed_all(inbox)
        deleted_all(log)
        number = log.find(FIRST.receipt, 0, log.latest()).number
        shard = shard_file(number, FIRST.pieces[0].day)
        purge_inboxes([f"{inbox.folder.url}/{shard}"])

    for inbox in met(slow, purged):
        shards = [shard_file(number, FIRST.pieces[0].day) for number in (1, 2)]
        assert found_in(inbox.folder, ("a secret", *HASHES)) == []
        gone = [one for one in shards if not inbox.folder.exists(one)]
        assert list(left_in_inboxes(f"{inbox.folder.url}/{one}" for one in gone)) == []
        assert gone


@pytest.mark.parametrize("slow", [seals, ends_a_seal])
def test_nothing_of_what_was_deleted_or_expired_meanwhile_comes_back(met, slow):
    def deleted(inbox):
        log = sealed_all(inbox)
        Deletions(log).ask(Deletion("receipt", (FIRST.receipt,)))
        deleted_all(log)

    def expired(inbox):
        sealed_all(inbox)
        inbox.put([sent("b")])
        sealed_all(inbox)
        expire(SealLog(inbox), Retention(timedelta(0), timedelta(0)), 2, lambda path: True)

    for others in (deleted, expired):
        for inbox in met(slow, others):
            assert found_in(inbox.folder, ["a secret"]) == []


def test_what_was_purged_stays_away_and_what_is_left_of_another_shard_of_its_seal_stays(met):
    secret, first, second = (sent(text, day=f"2026-11-2{day}") for text, day in OF_DAYS)

    def ends(inbox):
        inbox.put([secret, first, second])
        with contextlib.suppress(Killed):
            SealLog(mortal(inbox.folder, 3)).seal_next()
        return lambda slow: SealLog(slow).seal_next()

    def others(inbox):
        log = sealed_all(inbox)
        purge_inboxes([f"{inbox.folder.url}/{log.read(1).shards[0].path}"])
        Deletions(log).ask(Deletion("receipt", (first.receipt,)))
        deleted_all(log)

    for inbox in met(ends, others):
        assert found_in(inbox.folder, ["a secret", "another"]) == []
        assert len(found_in(inbox.folder, ["a third"])) == 1


def test_of_a_seal_all_shards_can_be_purged_together(inbox):
    days = ("2026-11-20", "2026-11-21")
    inbox.put([sent(day, day=day) for day in days])
    log = sealed_all(inbox)
    paths = [shard.path for shard in log.read(1).shards]
    names = [f"{inbox.folder.url}/{path}" for path in paths]
    purge_inboxes(names, inbox.folder.storage_options)
    assert list(left_in_inboxes(names, inbox.folder.storage_options)) == []
    assert SealLog(inbox).read(1).shards == ()
    # whoever has it in memory can look at it anew
    assert (len(log.read(1).shards), log.read_anew(1).shards, log.read(1).shards) == (2, (), ())


ONE, OTHER = Owner("s3://b/one", "1" * 32), Owner("s3://b/other", "2" * 32)


def test_each_inbox_answers_for_its_own_shards_alone():
    keyed, plain = sent("a", "b", key="k"), sent("c", day="2026-11-20")
    first = Inbox.open(f"memory://{uuid.uuid4().hex}", owner=ONE)
    second = Inbox.open(f"memory://{uuid.uuid4().hex}", owner=OTHER)
    for inbox in (first, second):
        inbox.put([keyed, plain])
        sealed_all(inbox)
    own = [f"{first.folder.url}/{shard_file(1, piece.day)}" for piece in keyed.pieces]
    theirs = f"{second.folder.url}/{shard_file(1, keyed.pieces[0].day)}"
    never = f"{first.folder.url}/{shard_file(1, date(2026, 11, 21))}"
    later = f"{first.folder.url}/{shard_file(7, keyed.pieces[0].day)}"
    nowhere = f"memory://{uuid.uuid4().hex}/{shard_file(1, keyed.pieces[0].day)}"
    names = [*own, theirs, never, later, nowhere, "s3://b/a.txt"]
    assert sealed_in_inboxes(names) == (*own, theirs)
    assert inboxes_of_others(names, ONE) == ((second.folder.url, OTHER.url),)
    assert inboxes_of_others(own, ONE) == ()

    note_left_out(first.folder, keyed.receipt, [LeftOut(2, "text", "no")])
    note_left_out(first.folder, plain.receipt, [LeftOut(1, "text", "no")])
    left = dict(left_in_inboxes(own))
    assert left == {
        own[0]: "holds or names documents",
        f"{first.folder.url}/{seal_file(1)}": "holds the hash of documents",
        f"{first.folder.url}/claims/{keyed.receipt}.json": "holds the hash of documents",
        f"{first.folder.url}/left_out/{keyed.receipt}.json": "names documents that were rejected "
        "with them",
    }

    # what waits is sealed by the store whose inbox it is
    for inbox in (first, second):
        inbox.put([sent("d")])
    require_no_deletion(names)
    Deletions(SealLog(second)).ask(Deletion("receipt", (keyed.receipt,)))
    require_no_deletion(names, owner=ONE)
    with pytest.raises(InvalidInput, match=f"documents of {second.folder.url} are being deleted"):
        require_no_deletion(names)
    assert purge_inboxes(names, owner=ONE) == (own[0],)
    assert [len(inbox.pending()) for inbox in (first, second)] == [0, 1]
    assert list(left_in_inboxes(own)) == []
    assert first.claims_of([keyed.receipt])[keyed.receipt].is_forgotten
    assert first.folder.names("left_out") == [f"{plain.receipt}.json"]
    assert [shard.day for shard in SealLog(first).read(1).shards] == [date(2026, 11, 20)]
    assert second.folder.exists(shard_file(1, keyed.pieces[0].day))
    assert sealed_in_inboxes(names) == (theirs,)
    assert [purge_inboxes([theirs]) for _ in range(2)] == [(theirs,), ()]
