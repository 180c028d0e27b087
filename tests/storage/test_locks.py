"""Locks: one holder at a time, taken over after its time, and never by two."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from forgery import resealed

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.locks import LOCKS, Lock, LockHeld

HOUR, MOMENT = timedelta(hours=1), timedelta(milliseconds=60)


def taken_over(folder):
    """The lock of a run that died, taken as soon as its time is over."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return Lock.acquire(folder, HOUR)
        except LockHeld:
            continue
    raise AssertionError("the lock was never free")


def test_a_lock_keeps_others_out_until_it_is_released(place):
    folder = Folder.at(place)
    lock = Lock.acquire(folder, HOUR)
    with pytest.raises(LockHeld, match=r"until 20\d\d-\d\d-\d\d .* UTC; wait for it to end"):
        Lock.acquire(folder, HOUR)
    lock = lock.renewed()
    with pytest.raises(LockHeld):
        Lock.acquire(folder, HOUR)
    lock.release()
    assert Lock.acquire(folder, HOUR).number == lock.number + 2


def test_a_run_that_died_is_taken_over_and_notices_if_it_has_not(place):
    folder = Folder.at(place)
    dead = Lock.acquire(folder, MOMENT)
    mine = taken_over(folder)
    with pytest.raises(LockHeld, match="another run has taken the lock"):
        dead.renewed()
    with pytest.raises(LockHeld):
        dead.release()
    mine.renewed().release()


def test_a_lock_that_expired_goes_on_if_nobody_took_it(place):
    folder = Folder.at(place)
    lock = Lock.acquire(folder, MOMENT)
    before = folder.clock()
    while folder.clock() < before + 2 * MOMENT:
        pass
    lock.renewed().release()


def test_of_many_that_find_it_expired_one_takes_it(place):
    folder = Folder.at(place)
    for _ in range(5):
        Lock.acquire(folder, timedelta(microseconds=1))
        start = threading.Barrier(6)

        def attempt(start=start):
            start.wait()
            try:
                return Lock.acquire(folder, HOUR)
            except LockHeld:
                return None

        with ThreadPoolExecutor(6) as pool:
            found = [held for held in pool.map(lambda _: attempt(), range(6)) if held]
        assert len(found) == 1
        found[0].release()


def test_a_reply_that_is_lost_is_known_as_ours(place, monkeypatch):
    folder = Folder.at(place)
    create = Folder.create

    def lost(self, name, content):
        create(self, name, content)
        raise TimeoutError("no reply")

    monkeypatch.setattr(Folder, "create", lost)
    lock = Lock.acquire(folder, HOUR).renewed()
    monkeypatch.undo()
    with pytest.raises(LockHeld):
        Lock.acquire(folder, HOUR)
    lock.release()


def test_a_lock_that_cannot_be_written_says_so(place, monkeypatch):
    folder = Folder.at(place)

    def refused(self, name, content):
        raise PermissionError("read only")

    monkeypatch.setattr(Folder, "create", refused)
    with pytest.raises(StoreError, match=r"cannot be written \(PermissionError: read only\)"):
        Lock.acquire(folder, HOUR)


def test_old_notes_are_deleted_and_recent_ones_stay(place):
    folder = Folder.at(place)
    for _ in range(60):
        Lock.acquire(folder, HOUR).release()
    names = folder.names(LOCKS)
    assert len(names) <= 102
    assert names[-1] == f"{120:020d}.json"


def test_a_damaged_note_is_no_free_lock(tmp_path):
    folder = Folder.at(str(tmp_path))
    Lock.acquire(folder, HOUR)
    [note] = (tmp_path / LOCKS).iterdir()
    resealed(note, lambda content: {"holder": content["holder"]})
    with pytest.raises(StoreError, match="is no lock; delete it if no run is going on"):
        Lock.acquire(folder, HOUR)
    note.write_bytes(b"x")
    with pytest.raises(StoreError, match="damaged"):
        Lock.acquire(folder, HOUR)
    with pytest.raises(InvalidInput, match="must be above 0"):
        Lock.acquire(folder, timedelta(0))
