"""Searching: equal to parsing each line, in one pass, and continued after a kill."""

import json
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field

import pytest
from mortal_folder import Killed, mortal
from sent_documents import SHAPE, TODAY

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox import searching
from streaming_moments.storage.inbox.deletions import Deletion, Deletions
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import seal_of_shard

ODD = ('a"b', "a\\b", "a\\", '\\"', "a\x7fb", "a\x1fb", "é", "\u2028", '"id":"x"', "7")


def of(records):
    return SHAPE.submission(records, new_receipt(0), False, TODAY)[0]


@dataclass(frozen=True)
class Counting(Folder):
    """A folder that counts how often each file is read."""

    reads: Counter = field(default_factory=Counter, compare=False)

    def find_all(self, names, limits=None):
        self.reads.update(names)
        return super().find_all(names, limits)

    def find(self, name):
        self.reads[name] += 1
        return super().find(name)


@pytest.fixture
def several():
    """An inbox with 12 seals of one document each, whose ids are their numbers."""
    inbox = Inbox.open(f"memory://{uuid.uuid4().hex}")
    for number in range(1, 13):
        inbox.put([of([{"text": "sea", "id": str(number)}])])
        SealLog(inbox).seal_next()
    return inbox


@pytest.mark.parametrize("number", [1, 8, 9, 1000])
def test_lines_are_those_whose_document_has_an_id(number):
    rng = random.Random(number)
    known = [*ODD, *(str(rng.random()) for _ in range(2000))]
    for _ in range(5):
        records = [
            {"text": rng.choice(('"id":"7"', 'x","id":"a"b', "sea \\")), "id": rng.choice(known)}
            for _ in range(500)
        ]
        records[rng.randrange(500)] = {"text": '{"id":"7"}'}
        content = of(records).content
        wanted = rng.sample(known, number)
        expected = [
            place
            for place, line in enumerate(content.splitlines())
            if json.loads(line).get("id") in wanted
        ]
        assert searching.lines_with_ids(content, wanted) == expected


def test_an_id_within_another_field_is_not_that_of_the_document():
    content = b'{"of":{"id":"7"},"id":"8"}\n{"of":{"id":"8"},"id":"7"}\n'
    assert searching.lines_with_ids(content, ["7"]) == [1]
    assert searching.lines_with_ids(content, ["7", "8"]) == [0, 1]


def test_several_deletions_are_searched_for_in_one_pass(several):
    folder = Counting(several.folder.url)
    deletions = Deletions(SealLog(Inbox(folder)))
    wanted = {deletions.ask(Deletion("id", tuple(names))): names for names in NAMES}
    beats = []
    plans = {
        identity: deletions.plan(identity, deletion, lambda *told: beats.append(told))
        for identity, deletion in deletions.waiting().items()
    }
    for identity, names in wanted.items():
        found = sorted(one.path for one in plans[identity].shards)
        assert [seal_of_shard(path) for path in found] == [
            n for n in range(1, 13) if str(n) in names
        ]
    sealed = [times for name, times in folder.reads.items() if name.startswith("sealed/")]
    # once in the pass, and those that are found once more for each deletion
    assert len(sealed) == 12
    assert sum(sealed) == 12 + sum(len(plan.shards) for plan in plans.values())
    assert beats[:12] == [(number, 12) for number in range(1, 13)]


NAMES = (["3", *map(str, range(100, 1099))], ["12", "4"], ["none"])


@pytest.mark.parametrize("after", [False, True])
def test_a_search_that_was_killed_goes_on_where_it_was(several, monkeypatch, after):
    monkeypatch.setattr(searching, "_NOTED", 1)
    monkeypatch.setattr(searching, "_SEALS_AT_ONCE", 3)
    names = tuple(map(str, [2, 11, *range(100, 1098)]))
    identity = Deletions(SealLog(several)).ask(Deletion("id", names))
    deletion, again = Deletion("id", names), 0
    for dies_at in range(200):
        folder = several.folder
        # reads of the inbox are no operations that it dies at, so that writes of notes are
        dying = mortal(folder, dies_at, after)
        try:
            searching.search(SealLog(dying), {identity: deletion.names}, lambda *told: None)
        except Killed:
            reached = searching.read_searches(folder).get(identity, searching.Search()).seal
            counting = Counting(folder.url)
            found = searching.search(
                SealLog(Inbox(counting)), {identity: deletion.names}, lambda *told: None
            )
            assert [seal_of_shard(path) for path in found[identity]] == [2, 11]
            read = [name for name in counting.reads if name.startswith("sealed/")]
            assert len(read) == 12 - reached
            again += reached > 0
            searching.drop_search(folder, identity)
        else:
            break
    assert again > 3


def test_the_note_of_a_search_goes_with_its_deletion(several):
    deletions = Deletions(SealLog(several))
    for names in (("3",), ("5",)):
        deletions.ask(Deletion("id", names))
    for identity, deletion in deletions.waiting().items():
        plan = deletions.plan(identity, deletion)
        assert identity in searching.read_searches(several.folder)
        for one in plan.shards:
            deletions.set_aside(one)
        deletions.finish(identity, plan, 1)
        assert identity not in searching.read_searches(several.folder)
    assert not several.folder.exists(searching.SEARCHES)


@dataclass(frozen=True)
class Grouped(Folder):
    """A folder that records the shards that are read together."""

    groups: list = field(default_factory=list, compare=False)

    def find_all(self, names, limits=None):
        own = [seal_of_shard(name) for name in names if name.startswith("sealed/")]
        self.groups.extend([own] if own else [])
        return super().find_all(names, limits)


@pytest.mark.parametrize(("name", "bound"), [("_SEALS_AT_ONCE", 5), ("_AT_ONCE", 4 * 24)])
def test_few_shards_are_in_memory_at_a_time(several, monkeypatch, name, bound):
    assert {shard.nbytes for shard in SealLog(several).read(1).shards} == {24}
    monkeypatch.setattr(searching, name, bound)
    folder, beats = Grouped(several.folder.url), []
    found = searching.search(
        SealLog(Inbox(folder)), {"1" * 32: ["9"]}, lambda *told: beats.append(told)
    )
    # ids of two digits are a byte longer
    sizes = [5, 5, 2] if name == "_SEALS_AT_ONCE" else [4, 4, 3, 1]
    assert [len(group) for group in folder.groups] == sizes
    assert [seal_of_shard(path) for path in found["1" * 32]] == [9]
    assert beats == [(number, 12) for number in range(1, 13)]


def test_a_search_goes_on_behind_what_it_has_searched_and_what_has_expired(several):
    log, first, second = SealLog(several), "1" * 32, "2" * 32
    searching.search(log, {first: ["12"]}, lambda *told: None)
    noted = several.folder.read("deletion-searches.json")
    folder = Grouped(several.folder.url)
    again = SealLog(Inbox(folder))
    assert searching.search(again, {first: ["12"]}, lambda *told: None)[first]
    assert folder.groups == []
    assert several.folder.read("deletion-searches.json") == noted
    # where another begins before, the shards of the first are found once
    several.folder.write("expired.json", seal({"seal": 9}))
    found = searching.search(again, {first: ["12"], second: ["11"]}, lambda *told: None)
    assert folder.groups == [[10, 11, 12]]
    paths = {identity: [*map(seal_of_shard, own)] for identity, own in found.items()}
    assert paths == {first: [12], second: [11]}
    assert {one.seal for one in searching.read_searches(several.folder).values()} == {12}


def test_a_search_is_noted_after_so_many_bytes(several, monkeypatch):
    monkeypatch.setattr(searching, "_NOTED", 3 * 24)
    seen = []

    def beat(number, last):
        noted = searching.read_searches(several.folder).get("1" * 32, searching.Search())
        seen.append(noted.seal)

    searching.search(SealLog(several), {"1" * 32: ["x"]}, beat)
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6, 6, 9, 9, 9]


def test_the_last_line_may_lack_its_end():
    assert searching.lines_with_ids(b'{"id":"7"}\n{"id":"8"}', ["8", "7"]) == [0, 1]
    assert searching.lines_with_ids(b"", ["7"]) == []


def test_a_damaged_note_of_searches_is_an_error(several):
    several.folder.write("deletion-searches.json", seal({"found": {}}))
    with pytest.raises(StoreError, match="deletion-searches.json is invalid"):
        searching.read_searches(several.folder)
    several.folder.delete(["deletion-searches.json"])
    searching.drop_search(several.folder, "1" * 32)
    assert not several.folder.exists("deletion-searches.json")


def test_a_small_inbox_is_read_at_once_and_noted_at_the_end(several):
    folder, noted = Grouped(several.folder.url), []
    searching.search(
        SealLog(Inbox(folder)),
        {"1" * 32: ["9"]},
        lambda *told: noted.append(folder.exists("deletion-searches.json")),
    )
    assert folder.groups == [[*range(1, 13)]]
    assert noted == [False] * 12
    assert folder.exists("deletion-searches.json")
