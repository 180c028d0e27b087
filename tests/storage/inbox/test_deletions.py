"""Deletions: what was asked for goes and nothing else, whoever dies, in whatever order."""

import hashlib
import json
import uuid

import fsspec
import pytest
from mortal_folder import Killed, mortal
from sent_documents import SHAPE, TODAY, sealed_texts, sent

from streaming_moments.errors import StoreError
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.gone import documents_left, is_as_noted, read_gone
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog


def applied(deletions):
    """Do what is asked for, in the order in which it is told; statistics are another's."""
    for identity, deletion in deletions.waiting().items():
        plan = deletions.plan(identity, deletion)
        for one in plan.shards:
            deletions.set_aside(one)
        deletions.finish(identity, plan, 1)


def sealed(*submissions):
    """Deletions of an inbox in which each of these was sealed with the others of its day."""
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    inbox.put(submissions)
    log = SealLog(inbox)
    log.seal_next()
    return Deletions(log)


def test_one_that_was_begun_is_ended_before_another_is_planned():
    first, second, third = sent("a", "b"), sent("c"), sent("d", "e")
    deletions = sealed(first, second, third)
    several = {
        deletions.ask(Deletion("receipt", (one.receipt,))): one.receipt for one in (first, second)
    }
    # the last of them in the order of their names is begun, and dies
    begun = max(several)
    plan = deletions.plan(begun, deletions.waiting()[begun])
    deletions.set_aside(*plan.shards)
    applied(deletions)
    assert sealed_texts(deletions.seals.inbox) == ["d", "e"]
    assert deletions.waiting() == {}


def test_who_deletes_may_die_at_each_operation():
    for after in (False, True):
        for dies_at in range(200):
            one, two = sent("a", day="2026-11-20"), sent("b", "c", key="k")
            deletions = sealed(one, two, sent("d", "e"))
            folder = deletions.seals.inbox.folder
            records = [{"text": "f", "id": "7"}]
            deletions.seals.inbox.put(
                [SHAPE.submission(records, new_receipt(0), False, TODAY)[0], sent("g")]
            )
            deletions.seals.seal_next()
            asked = [
                deletions.ask(Deletion("receipt", (one.receipt,))),
                deletions.ask(Deletion("id", ("7",))),
            ]
            dying = Deletions(SealLog(mortal(folder, dies_at, after)))
            try:
                applied(dying)
            except Killed:
                applied(deletions)
            else:
                dies_at = None
            wanted = ["b", "c", "d", "e", "g"]
            assert sealed_texts(deletions.seals.inbox) == wanted, (dies_at, after)
            assert [deletions.done(identity).documents for identity in asked] == [1, 1]
            assert deletions.waiting() == {}
            assert folder.sizes("aside") == {}
            seal = deletions.seals.read(1)
            assert deletions.left_of(one.receipt, seal) == {}
            assert sum(deletions.left_of(two.receipt, seal).values()) == 2
            fsspec.filesystem("memory").rm(folder._path, recursive=True)
            if dies_at is None:
                break
        else:
            raise AssertionError("it never came to an end")


def test_a_shard_that_another_has_changed_is_not_cut():
    deletions = sealed(sent("a", "b"))
    folder = deletions.seals.inbox.folder
    (kept,) = deletions.seals.read(1).batches[0].kept
    identity = deletions.ask(Deletion("receipt", (kept.receipt,)))
    (one,) = deletions.plan(identity, deletions.waiting()[identity]).shards
    for content in (b"", b'{"text":"c"}\n', folder.read(one.path)[:-1]):
        folder.write(one.path, content)
        with pytest.raises(StoreError, match="is not what the deletion was planned on"):
            deletions.set_aside(one)
        assert folder.read(one.path) == content
    assert folder.sizes("aside") == {}


def test_old_content_that_was_begun_to_be_put_aside_goes_too():
    """A process that is killed as it puts the old content aside leaves it under another name."""
    deletions = sealed(sent("a", "b"))
    folder = deletions.seals.inbox.folder
    (kept,) = deletions.seals.read(1).batches[0].kept
    identity = deletions.ask(Deletion("receipt", (kept.receipt,)))
    plan = deletions.plan(identity, deletions.waiting()[identity])
    (one,) = plan.shards
    folder.write(f"aside/{one.before}/.begun.partial", folder.read(one.path))
    deletions.set_aside(one)
    deletions.finish(identity, plan, 1)
    assert folder.files("aside") == []


def test_lines_that_went_are_noted_once_whoever_dies():
    """Noted twice, the line behind the one that went would be taken for gone as well."""
    for dies_at in range(200):
        two = [{"text": text, "id": text} for text in "abc"]
        deletions = sealed(SHAPE.submission(two, new_receipt(0), False, TODAY)[0], sent("d"))
        folder = deletions.seals.inbox.folder
        deletions.ask(Deletion("id", ("a",)))
        try:
            applied(Deletions(SealLog(mortal(folder, dies_at, True))))
        except Killed:
            applied(deletions)
        else:
            dies_at = None
        (shard,) = deletions.seals.read(1).shards
        assert read_gone(folder, shard.path).lines == (0,), dies_at
        assert documents_left(folder, shard) == 3
        left = hashlib.sha256(folder.read(shard.path)).hexdigest()
        assert left != shard.sha256
        assert is_as_noted(folder, shard, left)
        assert is_as_noted(folder, shard, shard.sha256)
        assert not is_as_noted(folder, shard, "0" * 64)
        deletions.ask(Deletion("id", ("b",)))
        applied(deletions)
        assert read_gone(folder, shard.path).lines == (0, 1)
        assert sealed_texts(deletions.seals.inbox) == ["c", "d"]
        fsspec.filesystem("memory").rm(folder._path, recursive=True)
        if dies_at is None:
            break
    else:
        raise AssertionError("it never came to an end")


def test_one_waits_for_another_that_has_begun_with_its_shard():
    deletions = sealed(sent("a"), sent("b"))
    receipts = [kept.receipt for batch in deletions.seals.read(1).batches for kept in batch.kept]
    first, second = (deletions.ask(Deletion("receipt", (one,))) for one in receipts)
    plan = deletions.plan(first, deletions.waiting()[first])
    with pytest.raises(StoreError, match=f"deletion {first} has begun"):
        deletions.plan(second, deletions.waiting()[second])
    deletions.set_aside(*plan.shards)
    deletions.finish(first, plan, 1)
    applied(deletions)
    assert sealed_texts(deletions.seals.inbox) == []


def test_an_id_is_found_whatever_it_is_written_with():
    for name in ('a"b', "a\\b", "a\x7fb", "a\x1fb", "a/b", "é", "\u2028", "<&>"):
        records = [{"text": "sea", "id": name}, {"text": "law", "id": "other"}]
        deletions = sealed(SHAPE.submission(records, new_receipt(0), False, TODAY)[0])
        deletions.ask(Deletion("id", (name,)))
        applied(deletions)
        inbox = deletions.seals.inbox
        (path,) = inbox.folder.sizes("sealed")
        assert json.loads(inbox.folder.read(f"sealed/{path}"))["id"] == "other", name
