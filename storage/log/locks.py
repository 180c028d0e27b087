"""Locks: one run at a time in a store's folder, taken over when it is dead or its time is over."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.processes import is_gone, mark_of_process

if TYPE_CHECKING:
    import tenacity
else:
    tenacity = LazyModule("tenacity")

LOCKS = "locks"
LONGEST_EXPIRY = timedelta(days=365)
_FILE = re.compile(r"(\d{20})\.json")
_KEPT = 100  # notes that stay: whoever is further behind than these has slept too long
_LOOKS = 0.1, 1.0  # seconds between two looks at a lock that is waited for
_BEATS = 8  # renewals in the time of a lock that a thread keeps
_SKEW = timedelta(minutes=1)  # by which machines of one storage may differ about the time


class LockHeld(StoreError):
    """Another run holds the lock, or took it over."""


@dataclass(frozen=True)
class Lock:
    """A lock that is held. Get one with `acquire`.

    Each change of hands is a new note, numbered one higher and created only if it is not there:
    so of two that find a lock free, or expired, one takes it.

    Parameters
    ----------
    folder : Folder
        Where the notes are.
    number : int
        Of the note that says it is ours.
    holder : str
        32 hexadecimal digits.
    expiry : timedelta
        For how long it is held from each renewal on.
    fence : int
        Number of the note by which it became ours: higher than that of any holder before.

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
        """Take the lock, if nobody holds it or its time is over by the storage's clock.

        One whose process ran on this machine and is gone is taken over at once. After the clock
        was set back, a lock is free that was not renewed for its time since somebody looked first.

        Parameters
        ----------
        folder : Folder
            Where the notes are.
        expiry : timedelta
            For how long it is held from each renewal on.
        patience : timedelta
            For how long one that another holds is waited for.

        Raises
        ------
        InvalidInput
            An expiry that is not above 0, or above a year.
        LockHeld
            Another run holds it: says until when.
        StoreError
            The storage cannot be read or written, or the latest note is none.
        """
        if not timedelta(0) < expiry <= LONGEST_EXPIRY:
            raise InvalidInput(
                f"the lock's expiry is {expiry}; it must be above 0 and at most "
                f"{LONGEST_EXPIRY.days} days"
            )
        if not patience:
            # tenacity takes a tenth of a second to load
            return cls._taken(folder, expiry)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(LockHeld),
            stop=tenacity.stop_after_delay(patience.total_seconds()),
            wait=tenacity.wait_random(*_LOOKS),
            reraise=True,
        )
        return retrying(cls._taken, folder, expiry)

    @classmethod
    def _taken(cls, folder: Folder, expiry: timedelta) -> Lock:
        """As `acquire`, or nobody waits."""
        number, marks = _latest(folder), list[str]()
        if number:
            note, now = _read(folder, number), folder.clock()
            until = f"until {note.until:%Y-%m-%d %H:%M:%S} UTC"
            held = not note.released and not is_gone(note.process)
            if held and note.until - now > note.expiry + _SKEW:
                marks.append(_mark(number))
                if not _was_silent_since(folder, number, now, note.expiry):
                    raise LockHeld(
                        f"{folder.url}/{_file(number)} holds the lock {until}, by the storage's "
                        f"clock longer than the {note.expiry} that a run holds it: a clock was "
                        "wrong. The lock is free if that run does not renew it for as long; "
                        "delete that file if no run is going on"
                    )
            elif held and now < note.until:
                raise LockHeld(
                    f"another run holds the lock of {folder.url} {until}; wait for it to end. One "
                    "that died is taken over at once where it ran, elsewhere after that time"
                )
        lock = cls(folder, number, uuid.uuid4().hex, expiry)._next()
        old = range(max(1, lock.number - 2 * _KEPT), lock.number - _KEPT)
        folder.delete([*(_file(number) for number in old), *marks])
        return replace(lock, fence=lock.number)

    def above(self, fence: int) -> Lock:
        """The lock with a fence above one that was used, though the notes of it were deleted.

        Raises
        ------
        LockHeld
            They were not: another run has taken it over.
        StoreError
            The storage cannot be written.
        """
        self._require_latest(self.number)
        lock = replace(self, number=max(self.number, fence))._next()
        return replace(lock, fence=lock.number)

    def renewed(self) -> Lock:
        """The lock, held from now on for its time.

        Raises
        ------
        LockHeld
            Another run has taken it over after it had expired.
        StoreError
            The storage cannot be written.
        """
        return self._next()

    def release(self) -> None:
        """Let the next one have it; raises as `renewed`."""
        self._next(released=True)

    def _next(self, released: bool = False) -> Lock:
        mine = replace(self, number=self.number + 1)
        until = self.folder.clock() + self.expiry
        note = _Note(self.holder, until, released, self.expiry, mark_of_process())
        found = create_once(self.folder, _file(mine.number), note.sealed())
        if found is not None:
            if _read(self.folder, mine.number).holder != self.holder:
                raise LockHeld(
                    f"another run has taken the lock of {self.folder.url}; run it again when that "
                    "one has ended, or give the lock a longer expiry"
                )
            # of another time: we were told that nobody knows whether it is there
            return mine._next(released)
        # whoever slept while notes were deleted has made one that was there before
        self._require_latest(mine.number)
        return mine

    def _require_latest(self, number: int) -> None:
        if _latest(self.folder) != number:
            raise LockHeld(
                f"other runs have taken the lock of {self.folder.url} since; run it again"
            )


@contextmanager
def held(folder: Folder, expiry: timedelta, patience: timedelta = timedelta(0)) -> Iterator[None]:
    """Hold a lock for as long as a block lasts; a thread renews it.

    Raises LockHeld if another run holds it, or took it over before the block ended.
    """
    latest, over = [Lock.acquire(folder, expiry, patience)], Event()

    def keep() -> None:
        while not over.wait(expiry.total_seconds() / _BEATS):
            # tried again; the end of the block says whether another has taken it over
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
    """Let a change raise LockHeld once a commit was made under a later lock.

    A run that sleeps past its lock's time cannot know at its next commit that it was taken over.
    The log does, as each commit keeps the highest fence up to it. Fence 0 is a writer without a
    lock, which is never refused.
    """

    def under_lock(head: Commit) -> Commit:
        if fence and fence < head.fence:
            raise LockHeld(
                f"version {head.version} was committed under lock {head.fence}, this run holds "
                f"lock {fence}: it was taken for dead and was taken over, and commits no more; run "
                "it again when the other one has ended, or give the lock a longer expiry"
            )
        return replace(change(head), fence=fence or head.fence)

    return under_lock


@dataclass(frozen=True)
class _Note:
    """Who holds the lock until when, by the storage's clock, for how long at a time, and where."""

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
        # earlier versions of the package wrote neither
        expiry = timedelta(seconds=content.get("expiry", LONGEST_EXPIRY.total_seconds()))
        process = content.get("process", "")
        texts = isinstance(holder, str) and isinstance(process, str)
        if not texts or not isinstance(released, bool) or until.tzinfo is None:
            raise ValueError("a holder, a time with its zone, and whether it was released")
        return cls(holder, until.astimezone(UTC), released, min(expiry, LONGEST_EXPIRY), process)


def _latest(folder: Folder) -> int:
    """Number of the latest note, 0 without any."""
    listed = [_FILE.fullmatch(name) for name in folder.names(LOCKS)]
    return max((int(found[1]) for found in listed if found), default=0)


def _was_silent_since(folder: Folder, number: int, now: datetime, expiry: timedelta) -> bool:
    """Whether the latest note is as old as the expiry since it was first seen to be in the future.

    The time of the note says nothing after the clock was set back: a mark beside it says since
    when, by the clock as it is now, the holder has not renewed it.
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
    if now < seen:  # it was set back once more
        folder.write(_mark(number), mine)
    return now - seen > expiry


def _read(folder: Folder, number: int) -> _Note:
    where = f"{folder.url}/{_file(number)}"
    data = folder.read(_file(number))
    try:
        return _Note.unsealed(data, where)
    except (StoreError, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as why:
        raise StoreError(
            f"{where} is damaged or is no lock; delete it if no run is going on"
        ) from why


def _file(number: int) -> str:
    return f"{LOCKS}/{number:020d}.json"


def _mark(number: int) -> str:
    return f"{LOCKS}/{number:020d}.seen"
