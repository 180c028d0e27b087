"""Locks: one holder at a time, free after their expiry, and never held by two."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from forgery import resealed

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.created import CreationUnknown
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.log import processes
from streaming_moments.storage.log.commits import Commit, Lineage
from streaming_moments.storage.log.locks import LOCKS, Lock, LockHeld, fenced, held
from streaming_moments.storage.log.processes import is_gone, mark_of_process

HOUR, MOMENT = timedelta(hours=1), timedelta(milliseconds=60)


def taken_over(folder):
    """The lock of a dead run, acquired as soon as it expires."""
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
    with pytest.raises(LockHeld, match="another run took over the lock"):
        dead.renewed()
    with pytest.raises(LockHeld):
        dead.release()
    mine.renewed().release()


HOLD = """
import sys, time
from datetime import timedelta
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.log.locks import Lock
Lock.acquire(Folder.at(sys.argv[1]), timedelta(hours=1)).renewed()
print("held", flush=True)
time.sleep(600)
"""


def test_a_run_that_was_killed_here_is_taken_over_at_once(tmp_path):
    folder = Folder.at(str(tmp_path))
    holder = subprocess.Popen([sys.executable, "-c", HOLD, folder.url], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGSTOP)  # asleep is not dead
        with pytest.raises(LockHeld):
            Lock.acquire(folder, HOUR)
    finally:
        holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # until it is a zombie, and stays one
    mine = Lock.acquire(folder, HOUR)
    assert (mine.number, mine.fence) == (3, 3)
    holder.communicate()
    with pytest.raises(
        LockHeld, match="wait for it to end. The lock of a dead run is free at once"
    ):
        Lock.acquire(folder, HOUR)
    mine.release()


def test_a_process_is_gone_only_where_it_is_known_to_have_run():
    machine, pid, began = mark_of_process().split()
    assert not is_gone(mark_of_process())
    assert is_gone(f"{machine} {pid} {int(began) - 1}")  # its number is another's by now
    assert is_gone(f"{machine} 999999999 {began}")
    assert not is_gone(f"{'0' * 32} {pid} {int(began) - 1}")
    for mark in ("", "x", f"{machine} 0 {began}", f"{machine} -1 {began}", f"{machine} {pid}"):
        assert not is_gone(mark)


def test_numbers_of_another_container_tell_nothing(monkeypatch):
    mark = mark_of_process()
    # as where /proc is of an outer pid namespace
    monkeypatch.setattr(processes.os, "getpid", lambda: 1 << 22)
    assert mark_of_process() == ""
    assert not is_gone(mark)


def test_where_processes_cannot_be_told_a_lock_is_held_for_its_time(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_machine", lambda: "")
    folder = Folder.at(str(tmp_path))
    Lock.acquire(folder, HOUR)
    [note] = (tmp_path / LOCKS).iterdir()
    assert json.loads(note.read_bytes())["process"] == ""
    with pytest.raises(LockHeld, match="on other machines after that time"):
        Lock.acquire(folder, HOUR)


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
    told = r"locks/.* could not be written \(PermissionError: read only\)"
    with pytest.raises(StoreError, match=told):
        Lock.acquire(folder, HOUR)


def test_a_storage_that_fails_for_a_moment_loses_no_lock(place, monkeypatch):
    folder, create = Folder.at(place), Folder.create
    lock, failures = Lock.acquire(folder, HOUR), [503]

    def flaky(self, name, content):
        if failures:
            raise OSError(failures.pop())
        create(self, name, content)

    monkeypatch.setattr(Folder, "create", flaky)
    lock = lock.renewed()
    assert not failures

    def lost(self, name, content):
        create(self, name, content)
        raise TimeoutError("no reply")

    def unread(self, name):
        raise StoreError("no answer")

    with monkeypatch.context() as broken:
        broken.setattr(Folder, "create", lost)
        broken.setattr(Folder, "find", unread)
        with pytest.raises(CreationUnknown):
            lock.renewed()
    # the note is ours, though of another time, and says nothing of a release
    lock.release()
    Lock.acquire(folder, HOUR).renewed().release()


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
    with pytest.raises(StoreError, match="is not a lock; delete it if no run is active"):
        Lock.acquire(folder, HOUR)
    note.write_bytes(b"x")
    with pytest.raises(StoreError, match="damaged"):
        Lock.acquire(folder, HOUR)
    with pytest.raises(InvalidInput, match="must be above 0"):
        Lock.acquire(folder, timedelta(0))


def test_the_time_of_a_lock_is_the_storages_own(place, monkeypatch):
    folder, clock = Folder.at(place), Folder.clock

    def storage_is_ahead_by(time):
        monkeypatch.setattr(Folder, "clock", lambda folder: clock(folder) + time)

    # for our own clock it is over, for the storage it has just begun
    storage_is_ahead_by(-48 * HOUR)
    Lock.acquire(folder, HOUR)
    with pytest.raises(LockHeld, match="wait for it to end"):
        Lock.acquire(folder, HOUR)
    # for our own clock it has not begun, for the storage it is over
    storage_is_ahead_by(48 * HOUR)
    Lock.acquire(folder, HOUR)
    storage_is_ahead_by(50 * HOUR)
    assert Lock.acquire(folder, HOUR).number == 3


def test_who_slept_while_notes_were_deleted_holds_nothing(place):
    folder = Folder.at(place)
    asleep = Lock.acquire(folder, timedelta(microseconds=1))
    for _ in range(60):
        taken_over(folder).release()
    assert f"{asleep.number + 1:020d}.json" not in folder.names(LOCKS), "the test lost its point"
    with pytest.raises(LockHeld, match="other runs took over the lock"):
        asleep.renewed()
    with pytest.raises(LockHeld, match="other runs took over the lock"):
        asleep.above(7)


def test_fences_rise_from_holder_to_holder_and_above_what_was_used(place):
    folder = Folder.at(place)
    first = Lock.acquire(folder, HOUR).renewed().renewed()
    assert (first.number, first.fence) == (3, 1)
    first.release()
    second = Lock.acquire(folder, HOUR)
    assert second.fence == 5
    higher = second.above(90)
    assert (higher.fence, higher.renewed().fence) == (91, 91)
    folder.delete([f"{LOCKS}/{name}" for name in folder.names(LOCKS)])
    again = Lock.acquire(folder, HOUR)
    assert (again.fence, again.above(1).fence, again.number) == (1, 2, 1)


@pytest.mark.parametrize(
    "forged",
    [
        {"until": None},
        {"until": 7},
        {"until": "soon"},
        {"until": "2026-11-21T03:00:00"},
        {"until": "0001-01-01T00:00:00+14:00"},
        {"holder": 3},
        {"released": "no"},
        {"expiry": "an hour"},
        {"expiry": None},
        {"expiry": 1e300},
        {"expiry": [1]},
        {"process": 7},
    ],
)
def test_a_note_of_other_types_names_the_file_to_delete(tmp_path, forged):
    folder = Folder.at(str(tmp_path))
    lock = Lock.acquire(folder, HOUR)
    [note] = (tmp_path / LOCKS).iterdir()
    resealed(note, lambda content: {**content, **forged})
    for take in (lambda: Lock.acquire(folder, HOUR), replace(lock, number=0).renewed):
        with pytest.raises(StoreError, match=f"{note.name} is .* not a lock; delete it if no run"):
            take()


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[1]", b"null", b"\xff\xfe", b"9" * 5000, b"[" * 100_000]
)
def test_a_note_that_is_no_json_object_names_the_file_to_delete(tmp_path, body):
    folder = Folder.at(str(tmp_path))
    Lock.acquire(folder, HOUR)
    [note] = (tmp_path / LOCKS).iterdir()
    sealed_anew = b'{"sha256": "' + hashlib.sha256(body).hexdigest().encode() + b'",\n' + body
    for content in (body, sealed_anew):
        note.write_bytes(content)
        with pytest.raises(StoreError, match=f"{note.name} is .* not a lock; delete it if no run"):
            Lock.acquire(folder, HOUR)


@pytest.mark.parametrize("with_expiry", [True, False])
def test_a_note_of_a_clock_that_was_ahead_names_the_file_to_delete(
    tmp_path, monkeypatch, with_expiry
):
    folder, clock = Folder.at(str(tmp_path)), Folder.clock
    monkeypatch.setattr(Folder, "clock", lambda folder: clock(folder) + timedelta(days=800))
    Lock.acquire(folder, HOUR)
    monkeypatch.undo()
    [note] = (tmp_path / LOCKS).iterdir()
    if not with_expiry:  # as earlier versions wrote it
        resealed(note, lambda content: {k: content[k] for k in ("holder", "until", "released")})
    with pytest.raises(LockHeld, match=f"{note.name} holds the lock until .* delete this file"):
        Lock.acquire(folder, HOUR)
    note.unlink()
    assert Lock.acquire(folder, HOUR).number == 1


@pytest.mark.parametrize(("behind", "says"), [(0, "wait for it to end"), (1, "a clock was wrong")])
def test_clocks_may_differ_by_a_minute_and_no_more(tmp_path, monkeypatch, behind, says):
    folder, began = Folder.at(str(tmp_path)), Folder.at(str(tmp_path)).clock()
    monkeypatch.setattr(Folder, "clock", lambda folder: began)
    Lock.acquire(folder, HOUR)
    a_minute_before = began - timedelta(minutes=1, seconds=behind)
    monkeypatch.setattr(Folder, "clock", lambda folder: a_minute_before)
    with pytest.raises(LockHeld, match=says):
        Lock.acquire(folder, HOUR)


def test_a_lock_that_is_held_for_a_block_is_renewed_until_its_end(place):
    folder = Folder.at(place)
    with held(folder, timedelta(seconds=2)):
        deadline = time.monotonic() + 30
        while len(folder.names(LOCKS)) < 3:
            assert time.monotonic() < deadline, "it is not renewed"
        with pytest.raises(LockHeld, match="wait for it to end"):
            Lock.acquire(folder, HOUR)
    lock = Lock.acquire(folder, HOUR)
    assert not [one for one in threading.enumerate() if one.name == "keeping the lock"]
    lock.release()


def test_a_block_whose_lock_was_taken_over_ends_with_an_error(tmp_path, set_clock):
    folder = Folder.at(str(tmp_path))

    def taken_over_within():
        with held(folder, HOUR):
            set_clock(2 * HOUR)
            Lock.acquire(folder, HOUR)

    with pytest.raises(LockHeld, match="another run took over the lock"):
        taken_over_within()


@pytest.fixture
def set_clock(monkeypatch):
    """Shift the clock of all folders by a time from now on."""
    real = Folder.clock

    def call(by):
        monkeypatch.setattr(Folder, "clock", lambda folder: real(folder) + by)

    return call


def test_a_lock_of_before_the_clock_was_set_back_is_free_after_its_time(tmp_path, set_clock):
    folder = Folder.at(str(tmp_path))
    set_clock(5 * HOUR)
    dead = Lock.acquire(folder, HOUR)
    minute = timedelta(minutes=1)
    # the first who looks begins to wait; a clock that is set back once more begins it anew
    for by in (timedelta(0), 59 * minute, -2 * HOUR, -2 * HOUR + 59 * minute):
        set_clock(by)
        with pytest.raises(LockHeld, match="a clock was wrong.*does not renew it for that long"):
            Lock.acquire(folder, HOUR)
    set_clock(-2 * HOUR + 61 * minute)
    lock = Lock.acquire(folder, HOUR)
    assert lock.fence > dead.fence
    assert [path.suffix for path in (tmp_path / LOCKS).iterdir()] == [".json"] * 2
    with pytest.raises(LockHeld, match="another run"):
        dead.renewed()
    with pytest.raises(LockHeld, match="wait for it to end"):
        Lock.acquire(folder, HOUR)
    lock.renewed().release()


def test_a_lock_that_is_renewed_after_the_clock_was_set_back_is_held(tmp_path, set_clock):
    folder = Folder.at(str(tmp_path))
    set_clock(5 * HOUR)
    lock = Lock.acquire(folder, HOUR)
    set_clock(timedelta(0))
    with pytest.raises(LockHeld, match="a clock was wrong"):
        Lock.acquire(folder, HOUR)
    set_clock(0.5 * HOUR)
    lock = lock.renewed()
    set_clock(1.1 * HOUR)
    with pytest.raises(LockHeld, match="wait for it to end"):
        Lock.acquire(folder, HOUR)
    lock.release()
    Lock.acquire(folder, HOUR)


def test_a_mark_that_is_damaged_is_named(tmp_path, set_clock):
    folder = Folder.at(str(tmp_path))
    set_clock(5 * HOUR)
    Lock.acquire(folder, HOUR)
    set_clock(timedelta(0))
    with pytest.raises(LockHeld, match="a clock was wrong"):
        Lock.acquire(folder, HOUR)
    [mark] = (tmp_path / LOCKS).glob("*.seen")
    for content in (b"", seal({"seen": 3}), seal({"later": 1}), seal({"seen": "never"})):
        mark.write_bytes(content)
        with pytest.raises(StoreError, match=f"{mark.name} is damaged"):
            Lock.acquire(folder, HOUR)


def test_a_commit_without_a_lock_leaves_the_highest_fence():
    lineage = Lineage("0" * 32, "1" * 64, {}, {"formula_version": 7}, {"digest": "2" * 64}, {})
    head = replace(Commit.first(lineage, ""), fence=5)

    def change(commit):
        return commit.successor("compact", "")

    assert [fenced(change, fence)(head).fence for fence in (0, 5, 8)] == [5, 5, 8]
    with pytest.raises(
        LockHeld,
        match="version 0 was committed under lock 5, and this run holds the expired lock 4",
    ):
        fenced(change, 4)(head)


def test_a_note_of_an_earlier_version_is_a_lock(tmp_path):
    folder = Folder.at(str(tmp_path))
    Lock.acquire(folder, HOUR)
    [note] = (tmp_path / LOCKS).iterdir()
    resealed(note, lambda content: {k: content[k] for k in ("holder", "until", "released")})
    with pytest.raises(LockHeld, match="wait for it to end"):
        Lock.acquire(folder, HOUR)


@pytest.mark.parametrize("expiry", [timedelta(0), -HOUR, timedelta(days=366), timedelta.max])
def test_an_expiry_out_of_bounds_is_refused(tmp_path, expiry):
    with pytest.raises(InvalidInput, match="must be above 0 and at most 365 days"):
        Lock.acquire(Folder.at(str(tmp_path)), expiry)
