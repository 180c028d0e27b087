"""Locks: allow one run at a time to change a store; dead or expired runs lose the lock."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.lazy_libraries import tenacity
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.processes import is_gone, mark_of_process

LOCKS = "locks"
LONGEST_EXPIRY = timedelta(days=365)
_FILE = re.compile(r"(\d{20})\.json")
# this many of the latest notes of a lock are not deleted; a run with an older note has lost it
_KEPT = 100
_LOOKS = 0.1, 1.0  # bounds, in seconds, of the random wait between two attempts to get a lock
_BEATS = 8  # a thread renews a lock this many times before the lock would expire
# clocks of the storage's machines may differ by up to this time
_SKEW = timedelta(minutes=1)


class LockHeld(StoreError):
    """Another run holds the lock of the store, or took it over."""


@dataclass(frozen=True)
class Lock:
    """The lock of a store, held by this run. Get it with `acquire`.

    Each change of the lock is a note with the next number, created only if it does not exist. If
    two runs find a lock free or expired, only one of them creates the note.

    number : number of the note that gives this run the lock
    holder : 32 hexadecimal digits
    expiry : time from each renewal until the lock expires
    fence : number of the note that acquired the lock; higher than that of all earlier holders

    Examples
    --------
    >>> folder = Folder.at("memory://locks-example")
    >>> lock = Lock.acquire(folder, timedelta(hours=1))
    >>> lock.renewed().release()
    >>> Lock.acquire(folder, timedelta(hours=1)).number
    4
    """

    folder: Folder
    number: int
    holder: str
    expiry: timedelta
    fence: int = 0

    @classmethod
    def acquire(cls, folder: Folder, expiry: timedelta, patience: timedelta = timedelta(0)) -> Lock:
        """Acquire the lock if it is free, or has expired by the storage's clock.

        The lock of a dead process of this machine is free at once. If the clock was set back, a
        lock is free once its run has not renewed it for a whole expiry time. This time begins when
        another run first tries to acquire the lock.

        Raises InvalidInput if the expiry is not above 0, or is above a year. Raises LockHeld if
        another run holds the lock; the error says until when. Raises StoreError if the storage
        cannot be read or written, or the latest note is damaged.

        expiry : time from each renewal until the lock expires
        patience : longest time to wait while another run holds the lock
        """
        if not timedelta(0) < expiry <= LONGEST_EXPIRY:
            raise InvalidInput(
                f"the lock's expiry is {expiry}; it must be above 0 and at most "
                f"{LONGEST_EXPIRY.days} days"
            )
        if not patience:
            # do without tenacity, which takes a tenth of a second to load
            return cls._acquired(folder, expiry)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(LockHeld),
            stop=tenacity.stop_after_delay(patience.total_seconds()),
            wait=tenacity.wait_random(*_LOOKS),
            reraise=True,
        )
        return retrying(cls._acquired, folder, expiry)

    @classmethod
    def _acquired(cls, folder: Folder, expiry: timedelta) -> Lock:
        """Acquire the lock as `acquire` does, but without waiting."""
        number, marks = _latest(folder), list[str]()
        if number:
            note, now = _read(folder, number), folder.clock()
            until = f"until {note.until:%Y-%m-%d %H:%M:%S} UTC"
            held = not note.released and not is_gone(note.process)
            if held and note.until - now > note.expiry + _SKEW:
                marks.append(_mark(number))
                if not _was_silent_since(folder, number, now, note.expiry):
                    raise LockHeld(
                        f"{folder.url}/{_file(number)} holds the lock {until}. By the storage's "
                        f"clock, that is later than its expiry of {note.expiry} allows, so a "
                        "clock was wrong. The lock becomes free if its run does not renew it for "
                        "that long; delete this file if no run is active"
                    )
            elif held and now < note.until:
                raise LockHeld(
                    f"another run holds the lock of {folder.url} {until}; wait for it to end. The "
                    "lock of a dead run is free at once on the machine of that run, and on other "
                    "machines after that time"
                )
        lock = cls(folder, number, uuid.uuid4().hex, expiry)._next()
        old = range(max(1, lock.number - 2 * _KEPT), lock.number - _KEPT)
        folder.delete([*(_file(number) for number in old), *marks])
        return replace(lock, fence=lock.number)

    def above(self, fence: int) -> Lock:
        """Return the lock with a fence above `fence`, the highest in the commits of the store.

        The fence of a new lock can be too low if the notes of locks were deleted.

        Raises LockHeld if another run took over the lock. Raises StoreError if the storage cannot
        be written.
        """
        self._require_latest(self.number)
        lock = replace(self, number=max(self.number, fence))._next()
        return replace(lock, fence=lock.number)

    def renewed(self) -> Lock:
        """Renew the lock: its expiry begins again.

        Raises LockHeld if the lock had expired, and another run took it over. Raises StoreError if
        the storage cannot be written.
        """
        return self._next()

    def release(self) -> None:
        """Release the lock; raises the errors of `renewed`."""
        self._next(released=True)

    def _next(self, released: bool = False) -> Lock:
        mine = replace(self, number=self.number + 1)
        until = self.folder.clock() + self.expiry
        note = _Note(self.holder, until, released, self.expiry, mark_of_process())
        found = create_once(self.folder, _file(mine.number), note.sealed())
        if found is not None:
            if _read(self.folder, mine.number).holder != self.holder:
                raise LockHeld(
                    f"another run took over the lock of {self.folder.url}; run this again "
                    "after it has ended, or give the lock a longer expiry"
                )
            # an earlier attempt of this run created the note, but the reply was lost
            return mine._next(released)
        # If this run was suspended, notes may have been deleted meanwhile. The new note may then
        # have a number that was used before, so check that it is the latest note.
        self._require_latest(mine.number)
        return mine

    def _require_latest(self, number: int) -> None:
        if _latest(self.folder) != number:
            raise LockHeld(f"other runs took over the lock of {self.folder.url}; run this again")


@contextmanager
def held(folder: Folder, expiry: timedelta, patience: timedelta = timedelta(0)) -> Iterator[None]:
    """Hold the lock of a store during a `with` block; a thread renews it.

    Raises LockHeld if another run holds it, or took it over before the block ended.
    """
    latest, over = [Lock.acquire(folder, expiry, patience)], Event()

    def keep() -> None:
        while not over.wait(expiry.total_seconds() / _BEATS):
            # ignore a failed renewal: the loop repeats it, and the end of the block checks the lock
            with suppress(StoreError):
                latest[0] = latest[0].renewed()

    thread = Thread(target=keep, name="keeping the lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        latest[0].release()


def fenced(change: Callable[[Commit], Commit], fence: int) -> Callable[[Commit], Commit]:
    """Wrap a change so that it raises LockHeld if a commit under a later lock exists.

    A run that slept past the expiry of its lock does not notice that another run took the lock
    over. The log shows it, because each commit stores the highest fence so far. Fence 0 stands for
    a writer without a lock, which is never refused.
    """

    def under_lock(head: Commit) -> Commit:
        if fence and fence < head.fence:
            raise LockHeld(
                f"version {head.version} was committed under lock {head.fence}, and this run holds "
                f"the expired lock {fence}, so it may not commit; run it again after the other run "
                "has ended, or give the lock a longer expiry"
            )
        return replace(change(head), fence=fence or head.fence)

    return under_lock


@dataclass(frozen=True)
class _Note:
    """Content of a note of a lock: the holder, its process, and when the lock expires."""

    holder: str
    until: datetime
    released: bool
    expiry: timedelta
    process: str = ""

    def sealed(self) -> bytes:
        content: dict[str, Any] = {"holder": self.holder, "until": self.until.isoformat()}
        content |= {"released": self.released, "expiry": self.expiry.total_seconds()}
        return seal({**content, "process": self.process})

    @classmethod
    def unsealed(cls, data: bytes, where: str) -> _Note:
        content = unseal(data, where)
        holder, released = content["holder"], content["released"]
        until = datetime.fromisoformat(content["until"])
        # earlier versions of the package wrote neither expiry nor process
        expiry = timedelta(seconds=content.get("expiry", LONGEST_EXPIRY.total_seconds()))
        process = content.get("process", "")
        texts = isinstance(holder, str) and isinstance(process, str)
        if not texts or not isinstance(released, bool) or until.tzinfo is None:
            raise ValueError(
                "a note of a lock needs a holder, a time with its zone, and whether it was released"
            )
        return cls(holder, until.astimezone(UTC), released, min(expiry, LONGEST_EXPIRY), process)


def _latest(folder: Folder) -> int:
    """Return the number of the latest note of the lock; 0 without any."""
    listed = [_FILE.fullmatch(name) for name in folder.names(LOCKS)]
    return max((int(found[1]) for found in listed if found), default=0)


def _was_silent_since(folder: Folder, number: int, now: datetime, expiry: timedelta) -> bool:
    """Whether a note with a date in the future was not renewed during its whole expiry time.

    If the clock was set back, the time in the note is useless. So a mark beside the note records
    the time when the note was first seen, by the clock after that change.
    """
    mine = seal({"seen": now.isoformat()})
    first = create_once(folder, _mark(number), mine)
    if first is None:
        return False
    where = f"{folder.url}/{_mark(number)}"
    try:
        seen = datetime.fromisoformat(unseal(first, where)["seen"])
    except (LookupError, TypeError, ValueError) as why:
        raise StoreError(f"{where} is damaged; delete it") from why
    if now < seen:  # the clock was set back again after the mark was written
        folder.write(_mark(number), mine)
    return now - seen > expiry


def _read(folder: Folder, number: int) -> _Note:
    where = f"{folder.url}/{_file(number)}"
    data = folder.read(_file(number))
    try:
        return _Note.unsealed(data, where)
    except (StoreError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as why:
        raise StoreError(
            f"{where} is damaged or is not a lock; delete it if no run is active"
        ) from why


def _file(number: int) -> str:
    return f"{LOCKS}/{number:020d}.json"


def _mark(number: int) -> str:
    return f"{LOCKS}/{number:020d}.seen"
