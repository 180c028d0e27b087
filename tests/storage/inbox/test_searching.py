"""A search for ids finds what parsing each line finds, in one pass, and goes on after a kill."""

import json
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field

import pytest
from mortal_folder import Killed, mortal
from sent_documents import SHAPE, TODAY

from streaming_moments.storage.files.folders import Folder
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
    """An inbox of 12 seals of one document each, whose ids are their numbers."""
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
