"""Expiry: deletes counted files of an inbox after a time. Numbers of seals are never used again.

Shards are deleted first, if the caller says that they are counted. Then a note records the last
expired seal, and all seals up to and including it are deleted. If a process dies in between, the
next one continues.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.deletions import DONE, PLANS, Deletions
from streaming_moments.storage.inbox.idempotency import CLAIMS, is_claim_file
from streaming_moments.storage.inbox.rejected import LEFT_OUT
from streaming_moments.storage.inbox.sealing import EXPIRED, SealLog
from streaming_moments.storage.inbox.seals import GONE, SEALED, SEALS, seal_file

MOST = 2000  # one call deletes at most this many files
_NUMBER = re.compile(r"(?:.*/)?(\d{20})\.")


@dataclass(frozen=True)
class Retention:
    """How long counted data is stored; None means without limit.

    keys : how long idempotency keys and receipts are stored. After it, a repeated request with the
        same key is counted again. A seal is stored as long as any of its shards is
    documents : how long shards are stored. After it, their documents cannot be deleted by receipt
        or id, nor recounted
    """

    keys: timedelta | None = None
    documents: timedelta | None = None


@dataclass(frozen=True)
class Expired:
    """How many files were deleted; `more` says whether another call can delete more."""

    shards: int = 0
    seals: int = 0
    claims: int = 0
    more: bool = False

    def __bool__(self) -> bool:
        return bool(self.shards or self.seals or self.claims)


@dataclass
class _Going:
    """Deletes files one by one, up to a maximum number."""

    log: SealLog
    now: datetime
    beat: Callable[[], None]
    left: int = MOST
    more: bool = field(default=False)

    def old(self, written: datetime | None, age: timedelta) -> bool:
        return written is not None and self.now - written >= age

    def delete(self, names: Sequence[str]) -> int:
        """Delete the named files, as many as the maximum still allows, and return how many."""
        going = list(islice(names, self.left))
        for name in going:
            self.log.inbox.folder.delete([name])
            self.beat()
        self.left -= len(going)
        self.more = self.more or len(going) < len(names)
        return len(going)


def expire(
    log: SealLog,
    retention: Retention,
    counted: int,
    is_counted: Callable[[str], bool],
    notes: Sequence[str] = (),
    beat: Callable[[], None] = lambda: None,
    most: int = MOST,
) -> Expired:
    r"""Delete expired shards, seals and receipts. The caller holds the lock for sealing.

    Seals up to number `counted` are counted or set aside. A shard for which `is_counted` is False
    stays at any age. The notes of a seal in the folders `notes` are deleted with it. `beat` is
    called after each file, and a call deletes at most `most` files. If the storage fails, the next
    call continues.

    Examples
    --------
    >>> from datetime import date
    >>> from streaming_moments.storage.inbox.batches import Piece, Submission
    >>> from streaming_moments.storage.inbox.inbox import Inbox
    >>> log = SealLog(Inbox.open("memory://expiry-example"))
    >>> piece = Piece(date(2026, 11, 23), 1, 15)
    >>> one = Submission("b" + "0" * 32 + "-0", "a" * 64, False, (piece,), b'{"text":"sea"}\n')
    >>> name, sealed = log.inbox.put([one]), log.seal_next()
    >>> at_once = Retention(timedelta(0), timedelta(0))
    >>> expire(log, at_once, 1, lambda path: False)
    Expired(shards=0, seals=0, claims=0, more=False)
    >>> expire(log, at_once, 1, lambda path: True)  # the latest seal stays
    Expired(shards=1, seals=0, claims=0, more=False)
    """
    folder = log.inbox.folder
    going = _Going(log, folder.clock(), beat, most)
    held = {f"{SEALED}/{file.path}": file.modified for file in folder.files(SEALED)}
    shards = 0
    if retention.documents is not None:
        old = [
            path
            for path, written in held.items()
            if 0 < _number(path) <= counted and going.old(written, retention.documents)
        ]
        gone = [path for path in old if is_counted(path)]
        shards = going.delete(gone)
        held = {path: written for path, written in held.items() if path not in gone[:shards]}
    if retention.keys is None:
        return Expired(shards, more=going.more)
    seals = _seals(going, retention.keys, counted, {_number(path) for path in held}, notes)
    claims = going.delete(
        [
            f"{CLAIMS}/{file.path}"
            for file in folder.files(CLAIMS)
            if is_claim_file(file.path) and going.old(file.modified, retention.keys)
        ]
    )
    waiting = Deletions(log).waiting()
    going.delete(
        [
            f"{part}/{file.path}"
            for part in (PLANS, DONE, LEFT_OUT)
            for file in folder.files(part)
            if going.old(file.modified, retention.keys)
            and file.path.removesuffix(".json") not in waiting
        ]
    )
    return Expired(shards, seals, claims, going.more)


def _seals(
    going: _Going, age: timedelta, counted: int, held: set[int], notes: Sequence[str]
) -> int:
    """Delete expired seals without shards, except the latest seal, and return how many."""
    log, folder = going.log, going.log.inbox.folder
    written = {_number(file.path): file.modified for file in folder.files(SEALS)}
    before = reached = log.expired()
    last = min(counted, log.latest() - 1)
    while reached < last and reached + 1 not in held and going.old(written.get(reached + 1), age):
        reached += 1
    if reached > before:
        folder.write(EXPIRED, seal({"seal": reached}))
        folder.sync("")
    beside = [
        f"{part}/{file.path}"
        for part in (*notes, GONE)
        for file in folder.files(part)
        if 0 < _number(file.path) <= reached
    ]
    going.delete(beside)
    return going.delete([seal_file(number) for number in sorted(written) if 0 < number <= reached])


def _number(path: str) -> int:
    """Return the number of the seal that a file belongs to; 0 for other files.

    Examples
    --------
    >>> _number("sealed/2026-11-23/00000000000000000007.sealed.jsonl"), _number("kept")
    (7, 0)
    """
    found = _NUMBER.match(path)
    return int(found[1]) if found else 0
