"""Locks: one run at a time in a store's folder, for as long as it says, and taken over after."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.folders import Folder
from streaming_moments.storage.sealed import seal, unseal

LOCKS = "locks"
_FILE = re.compile(r"(\d{20})\.json")
_KEPT = 100  # notes that stay: whoever is further behind than these has slept too long


class LockHeld(StoreError):
    """Another run holds the lock, or has taken it over."""


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

    @classmethod
    def acquire(cls, folder: Folder, expiry: timedelta) -> Lock:
        """Take the lock, if nobody holds it or its time is over by the storage's clock.

        Raises
        ------
        InvalidInput
            An expiry that is not above 0.
        LockHeld
            Another run holds it: says until when.
        StoreError
            The storage cannot be read or written.
        """
        if expiry <= timedelta(0):
            raise InvalidInput(f"the lock's expiry is {expiry}; it must be above 0")
        number = _latest(folder)
        if number:
            note = _read(folder, number)
            until = datetime.fromisoformat(str(note["until"]))
            if not note["released"] and folder.clock() < until:
                raise LockHeld(
                    f"another run holds the lock of {folder.url} until {until:%Y-%m-%d %H:%M:%S} "
                    "UTC; wait for it to end. One that died is taken over after that time"
                )
        lock = cls(folder, number, uuid.uuid4().hex, expiry)._next(released=False)
        old = range(max(1, lock.number - 2 * _KEPT), lock.number - _KEPT)
        folder.delete([_file(number) for number in old])
        return lock

    def renewed(self) -> Lock:
        """The lock, held from now on for its time.

        Raises
        ------
        LockHeld
            Another run has taken it over after it had expired.
        StoreError
            The storage cannot be written.
        """
        return self._next(released=False)

    def release(self) -> None:
        """Let the next one have it; errors as `renewed`."""
        self._next(released=True)

    def _next(self, released: bool) -> Lock:
        mine = replace(self, number=self.number + 1)
        until = self.folder.clock() + self.expiry
        content = {"holder": self.holder, "until": until.isoformat(), "released": released}
        try:
            self.folder.create(_file(mine.number), seal(content))
        except Exception as error:
            # the reply may be lost and the note be ours: only the note can tell
            data = self.folder.find(_file(mine.number))
            if data is None:
                raise StoreError(
                    f"the lock of {self.folder.url} cannot be written "
                    f"({self.folder.explain(error)}); check space, permissions and connection"
                ) from error
            if _read(self.folder, mine.number)["holder"] != self.holder:
                raise LockHeld(
                    f"another run has taken the lock of {self.folder.url}; run it again when "
                    "that one has ended, or give the lock a longer expiry"
                ) from error
        if _latest(self.folder) != mine.number:
            raise LockHeld(
                f"other runs have taken the lock of {self.folder.url} since; run it again"
            )
        return mine


def _latest(folder: Folder) -> int:
    """Number of the latest note, 0 without any."""
    listed = [_FILE.fullmatch(name) for name in folder.names(LOCKS)]
    return max((int(found[1]) for found in listed if found), default=0)


def _read(folder: Folder, number: int) -> Mapping[str, Any]:
    name = _file(number)
    where = f"{folder.url}/{name}"
    content = unseal(folder.read(name), where)
    if not content.keys() >= {"holder", "until", "released"}:
        raise StoreError(f"{where} is no lock; delete it if no run is going on")
    return content


def _file(number: int) -> str:
    return f"{LOCKS}/{number:020d}.json"
