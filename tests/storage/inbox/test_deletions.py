"""Deletions: they remove exactly the requested documents, in any order, even if processes die."""

import contextlib
import hashlib
import json
import random
import uuid

import fsspec
import pytest
from mortal_folder import Killed, mortal, sleeping
from sent_documents import SHAPE, TODAY, sealed_texts, sent
from synced_folder import Synced

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.deletions import (
    Deleted,
    Deletion,
    Deletions,
    Gone,
    Plan,
    documents_left,
    is_as_noted,
    read_gone,
)
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.purging import purge_inboxes
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import gone_file
from streaming_moments.storage.inbox.searching import read_searches
from streaming_moments.storage.inbox.set_aside import set_aside_file


def applied(deletions):
    """Carry out pending deletions in order, without changing statistics."""
    for identity, deletion in deletions.waiting().items():
        plan = deletions.plan(identity, deletion)
        for one in plan.shards:
            deletions.set_aside(one)
        deletions.finish(identity, plan, 1)


def sealed(*submissions):
    """Deletions of an inbox with these records, sealed by day."""
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
        with pytest.raises(StoreError, match="changed after the deletion was planned"):
            deletions.set_aside(one)
        assert folder.read(one.path) == content
    assert folder.sizes("aside") == {}


def test_old_content_that_was_begun_to_be_put_aside_goes_too():
    """A process that is killed while it copies the old content leaves a partial file."""
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
    """A second note would also count the line after the deleted one as deleted."""
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
    with pytest.raises(StoreError, match=f"deletion {first} is changing"):
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


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ((), "the deletion has 0 ids; give 1 to 1,000 of them"),
        (("a", ""), "one of the ids is empty; leave it out"),
        (("a",) * 1001, "the deletion has 1,001 ids; give 1 to 1,000 of them"),
    ],
)
def test_a_deletion_is_of_1_to_1000_names(names, told):
    with pytest.raises(InvalidInput, match=told):
        Deletion("id", names)
    assert len(Deletion("id", ("a",) * 1000).names) == 1000


OF_TWO_DAYS = [
    {"text": "a", "id": "x", "date": "2026-11-20"},
    {"text": "b", "date": "2026-11-20"},
    {"text": "c", "id": "x"},
]


def test_each_step_of_a_deletion_is_written_and_synced_before_the_next():
    url = sealed(SHAPE.submission(OF_TWO_DAYS, new_receipt(0), False, TODAY)[0]).seals.inbox
    folder = Synced(url.folder.url)
    deletions = Deletions(SealLog(Inbox(folder)))
    identity = deletions.ask(Deletion("id", ("x",)))
    folder.write("deletions/begun.partial", b"")
    assert folder.synced == ["deletions"]
    assert (deletions.is_waiting(identity), deletions.done(identity)) == (True, None)
    assert (deletions.unplanned(), deletions.begun()) == ([identity], {})

    beats = []
    asked = deletions.waiting()[identity]
    plan = deletions.plan(identity, asked, lambda *told: beats.append(told))
    first, second = plan.shards
    assert beats == [(1, 1), (1, 1), (1, 2), (2, 2)]
    assert (plan.documents, first.lines, second.lines, second.after) == (2, (0,), (0,), None)
    assert folder.synced[1:] == ["deletion-plans"]
    assert deletions.begun() == dict.fromkeys((first.path, second.path), identity)
    assert deletions.unplanned() == []

    contents = {one.path: folder.read(one.path) for one in plan.shards}
    old = [f"aside/{one.before}/{one.path.rpartition('/')[2]}" for one in plan.shards]
    for _ in range(2):
        assert deletions.set_aside(first) == (old[0], first.path)
        assert deletions.set_aside(second) == (old[1], None)
        assert folder.read(first.path) == b'{"text":"b"}\n'
        assert [folder.read(name) for name in old] == [*contents.values()]
    aside = [f"aside/{one.before}" for one in plan.shards]
    assert folder.synced[2:5] == [aside[0], "sealed/2026-11-20", aside[1]]

    del beats[:], folder.synced[:]
    deletions.finish(identity, plan, 7, lambda *told: beats.append(told))
    assert beats == [(1, 2), (2, 2)]
    days = ["sealed/2026-11-20", "sealed/2026-11-23"]
    assert folder.synced == ["aside", "gone", *days, "deleted"]
    assert read_gone(folder, first.path) == Gone((0,), first.after, identity)
    assert read_gone(folder, second.path) == Gone((0,), None, identity)
    assert (deletions.is_waiting(identity), deletions.done(identity)) == (False, Deleted(2, 7))
    assert folder.names("deletions") == ["begun.partial"]
    assert [folder.exists(name) for name in (*old, second.path)] == [False] * 3
    # the last line of a shard is gone once more
    assert deletions.set_aside(second) == (old[1], None)
    folder.delete([first.path])
    with pytest.raises(StoreError, match="is missing"):
        deletions.set_aside(first)


def test_a_deletion_that_finds_nothing_touches_no_shard():
    folder = Synced(sealed(sent("a")).seals.inbox.folder.url)
    deletions = Deletions(SealLog(Inbox(folder)))
    identity = deletions.ask(Deletion("id", ("x",)))
    plan = deletions.plan(identity, deletions.waiting()[identity])
    del folder.synced[:]
    deletions.finish(identity, plan, None)
    assert (plan, folder.synced) == (Plan(()), ["deleted"])
    assert deletions.done(identity) == Deleted(0, None)
    with pytest.raises(StoreError, match="not 32 hexadecimal digits"):
        deletions.done("x")


def test_what_is_no_deletion_is_an_error():
    deletions = sealed(sent("a"))
    folder, identity = deletions.seals.inbox.folder, "1" * 32
    for part in ("deletions", "deletion-plans", "deleted"):
        folder.write(f"{part}/{identity}.json", seal({"by": "name"}))
    with pytest.raises(StoreError, match=f"deletions/{identity}.json is not a valid deletion"):
        deletions.waiting()
    with pytest.raises(StoreError, match=f"deleted/{identity}.json is invalid"):
        deletions.done(identity)


def test_of_two_that_plan_a_deletion_the_second_takes_the_plan_of_the_first():
    """The first deletion has changed the shard, so the second finds none of its lines."""
    deletions = sealed(SHAPE.submission(OF_TWO_DAYS[:2], new_receipt(0), False, TODAY)[0])
    identity = deletions.ask(Deletion("id", ("x",)))
    asked, plans = deletions.waiting()[identity], []

    def meanwhile(*told):
        if not plans:
            plans.append(deletions.plan(identity, asked))
            for one in plans[0].shards:
                deletions.set_aside(one)

    other = Deletions(SealLog(deletions.seals.inbox))
    assert other.plan(identity, asked, meanwhile) == plans[0]
    assert plans[0].documents == 1


def test_only_ids_of_deletions_that_are_not_begun_are_searched_for():
    record = {"text": "a", "id": "7"}
    one = sent("b")
    deletions = sealed(SHAPE.submission([record], new_receipt(0), False, TODAY)[0], one)
    begun, twin, other = (deletions.ask(Deletion("id", (name,))) for name in ("7", "7", "8"))
    deletions.ask(Deletion("receipt", (one.receipt,)))
    folder = deletions.seals.inbox.folder
    plan = deletions.plan(begun, Deletion("id", ("7",)))
    assert read_searches(folder).keys() == {begun, twin, other}
    folder.delete(["deletion-searches.json"])
    with pytest.raises(
        StoreError, match=f"deletion {begun} is changing .* continues after the other"
    ):
        deletions.plan(twin, Deletion("id", ("7",)))
    assert read_searches(folder).keys() == {twin, other}
    for shard in plan.shards:
        deletions.set_aside(shard)
    deletions.finish(begun, plan, 1)
    # the shard is known from the search, and the document gone
    assert deletions.plan(twin, Deletion("id", ("7",))).shards == ()


def test_a_shard_of_which_all_went_is_in_no_plan_of_a_later_deletion():
    one, two = sent("a", key="a"), sent("a", "b", key="b", day="2026-11-20")
    deletions = sealed(one, two)
    deletions.ask(Deletion("receipt", (one.receipt,)))
    applied(deletions)
    assert deletions.plan("1" * 32, Deletion("receipt", (one.receipt,))).shards == ()
    both = Deletion("receipt", (one.receipt, two.receipt, sent("none", key="c").receipt))
    assert deletions.plan("2" * 32, both).documents == 2


def test_a_shard_that_was_purged_is_in_no_plan_that_was_brought_back():
    deletions = sealed(SHAPE.submission(OF_TWO_DAYS, new_receipt(0), False, TODAY)[0])
    folder, identity = deletions.seals.inbox.folder, deletions.ask(Deletion("id", ("x",)))
    first, second = deletions.plan(identity, deletions.waiting()[identity]).shards
    back = {name: folder.read(name) for name in (first.path, f"deletion-plans/{identity}.json")}
    purge_inboxes([f"{folder.url}/{first.path}"])
    assert [folder.exists(name) for name in back] == [False, False]
    for name, content in back.items():
        folder.write(name, content)
    again = deletions.plan(identity, deletions.waiting()[identity])
    assert [one.path for one in again.shards] == [second.path]
    assert [folder.exists(name) for name in back] == [False, False]


def begun_in(deletions, *names):
    """Shards in the plan of a deletion of documents with some ids."""
    identity = deletions.ask(Deletion("id", names))
    return deletions.plan(identity, deletions.waiting()[identity]).shards


def test_a_shard_that_is_purged_while_it_is_put_aside_is_gone_before_it_is_counted():
    for sleeps_at in range(100):
        deletions = sealed(SHAPE.submission(OF_TWO_DAYS[:2], new_receipt(0), False, TODAY)[0])
        folder, woken = deletions.seals.inbox.folder, []
        (one,) = begun_in(deletions, "x")

        def purged(name=f"{folder.url}/{one.path}", woken=woken):
            woken.append(purge_inboxes([name]))

        with contextlib.suppress(StoreError):
            Deletions(SealLog(sleeping(folder, sleeps_at, purged))).set_aside(one)
        if not woken:
            assert sleeps_at == 5
            return
        assert not any(map(folder.exists, deletions.files_of(one.path)))
        assert folder.files("aside") == []
    raise AssertionError("it never came to an end")


def test_files_of_a_shard_are_its_own_and_what_names_it():
    deletions = sealed(SHAPE.submission(OF_TWO_DAYS[:2], new_receipt(0), False, TODAY)[0])
    inbox = deletions.seals.inbox
    inbox.put([SHAPE.submission(OF_TWO_DAYS[:2], new_receipt(0), False, TODAY)[0]])
    deletions.seals.seal_next()
    shards = begun_in(deletions, "x")
    aside = [deletions.set_aside(one)[0] for one in shards]
    (plan,) = inbox.folder.names("deletion-plans")
    naming = [f"deletion-plans/{plan}", "deletion-searches.json"]
    assert len(shards) == 2
    for one, old in zip(shards, aside, strict=True):
        own = [one.path, gone_file(one.path), set_aside_file(one.path), old]
        assert deletions.files_of(one.path) == [*own, *naming]


@pytest.mark.parametrize("seed", range(4))
def test_of_receipts_in_any_batches_and_days_the_others_stay(seed):
    rng = random.Random(seed)
    days = ("2026-11-20", "2026-11-21", "2026-11-23")
    submissions, texts = [], {}
    for _ in range(6):
        names = [uuid.uuid4().hex for _ in range(rng.randint(1, 4))]
        records = [{"text": name, "date": rng.choice(days)} for name in names]
        submissions.append(SHAPE.submission(records, new_receipt(0), False, TODAY)[0])
        texts[submissions[-1].receipt] = names
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    for start in (0, 2, 4):
        inbox.put(submissions[start : start + 2])
    deletions = Deletions(SealLog(inbox))
    sealed_by = deletions.seals.seal_next()
    for receipt in rng.sample([*texts], 4):
        deletions.ask(Deletion("receipt", (receipt,)))
        applied(deletions)
        del texts[receipt]
        assert deletions.left_of(receipt, sealed_by) == {}
        for other, names in texts.items():
            assert sum(deletions.left_of(other, sealed_by).values()) == len(names)
        assert sealed_texts(inbox) == sorted(name for names in texts.values() for name in names)
