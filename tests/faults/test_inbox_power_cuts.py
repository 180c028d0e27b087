"""Power cuts of an inbox: what was deleted or has expired does not come back."""

import random
from datetime import timedelta
from itertools import count

import pytest
from faulty_disk import WRITING, interposed
from power_cuts import CutDisk
from sent_documents import SHAPE, TODAY, sealed_texts, sent

from streaming_moments.storage.inbox.deletions import Deletion, Deletions, read_gone
from streaming_moments.storage.inbox.expiry import Retention, expire
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import new_receipt
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import seal_file


class Recorded:
    """What was done to an inbox, and how many operations of the disk came before each report."""

    def __init__(self, root):
        self.root, self.operations, self.reports = root, [], {}
        self.inbox = f"{root}/inbox"

    def __call__(self, operation, apply):
        found = apply(operation)
        if operation.kind in WRITING:
            self.operations.append(operation)
        return found

    def report(self, name):
        """Note that something was reported as done."""
        self.reports[name] = len(self.operations)

    def cut(self, at, folder, rng, loss):
        """The inbox that a cut before an operation leaves."""
        disk = CutDisk(str(self.root))
        for operation in self.operations[:at]:
            disk.apply(operation)
        disk.materialise(folder, rng, loss)
        return Inbox.open(str(folder / "inbox"))


def deleted(deletions, report=lambda name: None):
    """Carry out what is asked for; statistics are another's."""
    for identity, deletion in deletions.waiting().items():
        if deletions.done(identity) is None:
            plan = deletions.plan(identity, deletion)
            for one in plan.shards:
                deletions.set_aside(one)
                report(f"cut {one.path}")
            deletions.finish(identity, plan, 1)
        deletions.withdraw(identity)


@pytest.fixture
def of_deletions(tmp_path):
    """A deletion of the first of three documents of a shard, and of all of another shard."""
    record = Recorded(tmp_path / "record")
    record.root.mkdir()
    with interposed(record):
        inbox = Inbox.open(record.inbox)
        records = [{"text": text, "id": text} for text in ("first", "second", "third")]
        inbox.put([SHAPE.submission(records, new_receipt(0), False, TODAY)[0]])
        whole = [{"text": "whole", "id": "whole", "date": "2026-11-20"}]
        inbox.put([SHAPE.submission(whole, new_receipt(0), False, TODAY)[0]])
        SealLog(inbox).seal_next()
        deletions = Deletions(SealLog(inbox))
        identity = deletions.ask(Deletion("id", ("first", "whole")))
        record.report("asked")
        deleted(deletions, record.report)
        record.report("deleted")
    return record, identity


def require_deleted(inbox):
    assert sealed_texts(inbox) == ["second", "third"]
    files = [
        file.path for file in inbox.folder.files("") if file.path.startswith(("sealed", "aside"))
    ]
    everything = b"".join(inbox.folder.read(path) for path in files)
    assert b'"text":"first"' not in everything
    assert b'"text":"whole"' not in everything
    (shard,) = [one for one in SealLog(inbox).read(1).shards if one.documents == 3]
    assert read_gone(inbox.folder, shard.path).lines == (0,)


def test_what_was_deleted_does_not_come_back(of_deletions, tmp_path, campaigns):
    record, identity = of_deletions
    rng, folders = random.Random(campaigns.seed), (tmp_path / str(number) for number in count())
    asked, reported = record.reports["asked"], record.reports["deleted"]
    places = [*range(asked, reported + 1)] * campaigns.size(1, 12)
    for at in places:
        inbox = record.cut(at, next(folders), rng, rng.choice([0.5, 1.0]))
        deletions = Deletions(SealLog(inbox))
        if deletions.done(identity) is None:
            assert deletions.is_waiting(identity), at
        else:
            require_deleted(inbox)
        deleted(deletions)
        require_deleted(inbox)
        assert deletions.done(identity).documents == 2
    # what it has reported as cut is as the store counts it from then on
    for name, at in record.reports.items():
        inbox = record.cut(at, next(folders), rng, 1.0)
        path = name.removeprefix("cut ")
        if path != name and "2026-11-20" not in path:
            assert b"first" not in inbox.folder.read(path)
    assert require_deleted(record.cut(reported, next(folders), rng, 1.0)) is None
    campaigns.record("inbox: power cuts of a deletion", len(places), len(places))


def test_seals_that_expired_do_not_leave_a_gap(tmp_path, campaigns):
    record = Recorded(tmp_path / "record")
    record.root.mkdir()
    at_once = Retention(timedelta(0), timedelta(0))
    with interposed(record):
        log = SealLog(Inbox.open(record.inbox))
        for text in "abcd":
            log.inbox.put([sent(text)])
            log.seal_next()
        record.report("sealed")
        expire(log, at_once, 4, lambda path: True)
    rng, folders = random.Random(campaigns.seed), (tmp_path / str(number) for number in count())
    places = [*range(record.reports["sealed"], len(record.operations) + 1)]
    places *= campaigns.size(2, 20)
    for at in places:
        inbox = record.cut(at, next(folders), rng, rng.choice([0.3, 0.7]))
        log = SealLog(inbox)
        assert log.latest() == 4
        there = [number for number in range(1, 5) if inbox.folder.exists(seal_file(number))]
        assert {*there, *range(1, log.expired() + 1)} == {1, 2, 3, 4}, at
        expire(log, at_once, 4, lambda path: True)
        assert (log.expired(), sealed_texts(inbox)) == (3, [])
    campaigns.record("inbox: power cuts of an expiry", len(places), len(places))
