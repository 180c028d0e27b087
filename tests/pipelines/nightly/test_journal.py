"""The journal: a run that works keeps its lock, however long a step takes."""

import threading
import time
from datetime import timedelta

import pytest

from streaming_moments.pipelines.cluster.progress import Silent
from streaming_moments.pipelines.nightly.journal import Heartbeat, Journal
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import Lock, LockHeld


def test_every_shard_is_a_sign_of_life(tmp_path):
    folder, expiry = Folder.at(str(tmp_path)), timedelta(milliseconds=200)
    told = []
    journal = Journal(Lock.acquire(folder, expiry), told.append)
    progress = Heartbeat(journal, Silent())
    with journal.step("update") as found:
        begun = first = journal.lock.number
        end = folder.clock() + 3 * expiry
        while folder.clock() < end:
            progress.advance("reading shards", 1, 2)
            found["renewed"] = journal.lock.number - first
    assert journal.lock.number - begun >= 3
    assert [step.values["renewed"] for step in told] == [journal.lock.number - begun]


def test_a_short_lock_is_kept_beside_work_that_has_no_steps(tmp_path):
    journal = Journal(
        Lock.acquire(Folder.at(str(tmp_path)), timedelta(milliseconds=200)), lambda step: None
    )
    first, end = journal.lock, time.monotonic() + 30
    with journal.kept():
        while journal.lock.number < first.number + 3:
            assert time.monotonic() < end
    assert journal.lock.fence == first.fence
    assert "keeping the lock" not in {thread.name for thread in threading.enumerate()}
    journal.lock.release()


def test_one_that_was_taken_for_dead_is_told_as_it_lets_go(tmp_path):
    folder = Folder.at(str(tmp_path))
    journal = Journal(Lock.acquire(folder, timedelta(milliseconds=1)), lambda step: None)
    first = taken_over(folder)
    with journal.kept():
        end = folder.clock() + timedelta(milliseconds=50)
        while folder.clock() < end:
            assert journal.lock.number < first.number
    with pytest.raises(LockHeld):
        journal.lock.release()
    first.renewed().release()


def taken_over(folder):
    while True:
        try:
            return Lock.acquire(folder, timedelta(hours=1))
        except LockHeld:
            continue


def test_a_run_that_was_taken_for_dead_stops_at_the_next_shard(tmp_path):
    folder = Folder.at(str(tmp_path))
    journal = Journal(Lock.acquire(folder, timedelta(microseconds=1)), lambda step: None)
    progress = Heartbeat(journal, Silent())
    Lock.acquire(folder, timedelta(hours=1))
    with pytest.raises(LockHeld), journal.step("update"):
        pass
    with pytest.raises(LockHeld):
        progress.advance("reading shards", 1, 2)
    assert journal.steps == []
