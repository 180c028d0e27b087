"""Steps of a turn: when a failed one is due again, and what is noted and told of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.service.counting_progress import Counting, counting_now
from streaming_moments.pipelines.service.ingest_worker.selecting import Compared
from streaming_moments.pipelines.service.ingest_worker.steps import (
    NAMES,
    FailingStep,
    Steps,
    note_failed_start,
    read_steps,
)
from streaming_moments.pipelines.service.ingest_worker.turns import Turn, lines_of, warnings_of
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.inbox.expiry import Expired
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.log.locks import LockHeld


def failing():
    raise StoreError("away")


def broken():
    return 1 // 0


class Tried:
    """Steps of an inbox, by a clock that stands still."""

    def __init__(self, folder):
        self.now, self.lines = 100.0, []
        self.inbox = Inbox.open(str(folder))
        self.steps = self.another()

    def another(self):
        return Steps(self.inbox, self.lines.append, lambda: self.now, 3.0)

    @property
    def noted(self):
        return [(one.step, one.failures, one.error) for one in read_steps(self.inbox)]


@pytest.fixture
def tried(tmp_path):
    return Tried(tmp_path / "inbox")


def test_a_failed_step_is_due_after_2_4_8_and_at_most_64_pauses(tried):
    waits = []
    for failures in range(1, 9):
        assert tried.steps.is_due("count")
        assert tried.steps.attempt("count", failing) is None
        begun = tried.now
        wait = 3.0 * min(2**failures, 64)
        tried.now = begun + wait - 0.25
        assert not tried.steps.is_due("count")
        assert tried.steps.attempt("count", lambda: "not tried") is None
        tried.now = begun + wait
        waits.append(wait)
    assert tried.noted == [("count", 8, "away")]
    assert tried.lines == [
        f"count failed; next try in {wait:.3g} s or later: away" for wait in waits
    ]
    assert [(step, str(error)) for step, error in tried.steps.failed] == [("count", "away")] * 8
    assert tried.steps.is_due("night"), "each by itself"


def test_a_step_that_goes_well_is_noted_no_more_and_begins_at_the_first_pause(tried):
    for _ in range(2):
        tried.steps.attempt("count", failing)
        tried.now += 1000.0
    first = read_steps(tried.inbox)[0]
    assert datetime.fromisoformat(first.since) <= datetime.fromisoformat(first.last)
    assert datetime.fromisoformat(first.last) <= datetime.now(UTC)
    assert tried.steps.attempt("count", lambda: "done") == "done"
    assert tried.noted == []
    assert tried.steps._next == {}, "each deletion is a step, and nothing of it stays"
    tried.steps.attempt("count", failing)
    assert tried.noted == [("count", 1, "away")]
    tried.now += 6.0
    assert tried.steps.is_due("count")


def test_when_the_first_failure_was_is_kept(tried):
    tried.steps.attempt("count", failing)
    early = replace(tried.steps._failing["count"], since="2026-01-01T00:00:00+00:00")
    tried.steps._failing["count"] = early
    tried.now += 1000.0
    tried.steps.attempt("count", failing)
    (found,) = read_steps(tried.inbox)
    assert (found.failures, found.since) == (2, early.since)
    assert found.last > early.since


def test_nothing_to_do_mends_a_step_unless_it_may_not(tried):
    for how, mends in (({"idle_is_fine": False}, False), ({}, True)):
        tried.steps.attempt("night", failing)
        tried.now += 1000.0
        assert tried.steps.attempt("night", lambda: None, **how) is None
        assert (tried.noted == []) is mends


def test_an_error_of_no_kind_of_ours_is_told_with_its_place(tried):
    tried.steps.attempt("count", broken)
    [(_, _, told)] = tried.noted
    assert told.startswith("ZeroDivisionError: ")
    line = broken.__code__.co_firstlineno + 1
    assert told.endswith(f" ({__file__}:{line})")


def test_a_lock_that_another_holds_is_no_failure(tried):
    def held():
        raise LockHeld("another")

    with pytest.raises(LockHeld):
        tried.steps.attempt("count", held)
    assert (tried.noted, tried.lines, tried.steps.failed) == ([], [], [])


def test_steps_of_several_processes_are_noted_beside_each_other(tried):
    tried.steps.attempt("night", failing)
    other = tried.another()
    other.attempt("count", failing)
    assert [one[0] for one in tried.noted] == ["count", "night"]
    other.attempt("count", failing)  # not due
    tried.now += 1000.0
    other.attempt("count", lambda: 1)
    assert [one[0] for one in tried.noted] == ["night"]


def test_of_deletions_those_that_wait_stay_noted(tried):
    for step in ("delete a", "delete b", "delete again", "delete", "count"):
        tried.steps.attempt(step, failing)
    assert [one.name for one in read_steps(tried.inbox)] == [
        "count",
        "delete",
        "delete",
        "delete again",
        "delete",
    ]
    tried.steps.keep(frozenset({"b"}))
    assert [one[0] for one in tried.noted] == ["count", "delete", "delete again", "delete b"]
    assert tried.steps.is_due("delete a")
    assert not tried.steps.is_due("delete b")
    # also those that another process has noted
    tried.another().keep(frozenset())
    assert [one[0] for one in tried.noted] == ["count", "delete", "delete again"]


def test_a_note_that_cannot_be_read_is_told_and_keeps_nothing_from_going_on(tried):
    tried.inbox.folder.write("steps.json", b"?")
    tried.steps.attempt("count", failing)
    assert len(tried.lines) == 2
    assert tried.lines[1].startswith("failures cannot be recorded in the inbox: ")
    with pytest.raises(StoreError):
        read_steps(tried.inbox)


def test_the_same_note_is_not_written_again(tried, monkeypatch):
    tried.steps.attempt("delete a", failing)
    tried.steps._failing.clear()
    written, write = [], Folder.write
    monkeypatch.setattr(Folder, "write", lambda *told: written.append(told[1]) or write(*told))
    tried.another().keep(frozenset({"a"}))
    tried.another()._note(None, frozenset({"a"}))
    assert written == []
    tried.another().keep(frozenset())
    assert written == ["steps.json"]


def test_the_name_of_a_step():
    def name(step):
        return FailingStep(step, 1, "", "", "").name

    assert [name(one) for one in NAMES] == list(NAMES)
    assert name("delete 0a") == "delete"


@pytest.mark.parametrize(
    ("done", "lines"),
    [
        (Turn(), ["sealed 0, counted 0"]),
        (Turn(failed=(("count", KeyError()),)), []),
        (
            Turn(2, 3, 7, forgotten=1, failed=(("count", KeyError()),)),
            ["sealed 2, counted 3, forgotten 1, version 7"],
        ),
        (
            Turn(1, 0, 0, (("a", "bad"),), (("b", "full"),)),
            ["sealed 1, counted 0, version 0"],
        ),
        (Expired(), []),
        (Expired(1, 2, 3), ["expired: 1 shard, 2 seals, 3 keys"]),
        (Compared(5), ["compared numbers of topics of version 5"]),
        ("published", ["night: published"]),
    ],
)
def test_what_was_done_is_told_in_lines(done, lines):
    assert list(lines_of(done)) == lines
    bad = isinstance(done, Turn) and done.left_out
    assert list(warnings_of(done)) == (["left out a: bad", "set aside b: full"] if bad else [])


def test_a_process_that_cannot_start_is_noted_until_one_starts(tried):
    for failures in (1, 2):
        note_failed_start(tried.inbox, StoreError("no scheduler"))
        assert tried.noted == [("start", failures, "no scheduler")]
    tried.steps.attempt("night", failing)
    since = {one.since for one in read_steps(tried.inbox) if one.step == "start"}
    note_failed_start(tried.inbox, StoreError("no scheduler"))
    assert {one.since for one in read_steps(tried.inbox) if one.step == "start"} == since
    assert counting_now(tried.inbox, 0, read_steps(tried.inbox), Counting()).failing == (
        "no scheduler"
    )
    tried.another().begun()
    assert [one[0] for one in tried.noted] == ["night"]
    assert tried.lines == ["night failed; next try in 6 s or later: away"]
