"""Sealing: batches become shards, each document in one of them, whoever seals and whenever it dies.

A seal is a numbered file that says which submissions of which batches make which shards; it is
created only if it is not there, so of two that seal the same batches one wins. Shards are written
after it, and follow from it and the batches alone: what a sealer that died has left undone, the
next one does. Batches are deleted last.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TypeAlias

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.parts import SEALED_NAME
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.batches import Piece, Submission
from streaming_moments.storage.inbox.inbox import BATCHES, Inbox
from streaming_moments.storage.inbox.receipts import Claim, ReceiptId, seal_before
from streaming_moments.storage.log.schema import Count, Digest, Identity, Path, checked

SEALS, SEALED = "seals", "sealed"
MOST_DOCUMENTS = 10_000
MOST_BYTES = 64 << 20
_FILE = re.compile(r"(\d{20})\.json")
_REACHED = "reached.json"  # a note of a number that the log has reached at least
EXPIRED = "expired.json"  # a note of a number up to which seals are no longer kept
_HELD = 256  # seals in memory


class SealedByAnother(StoreError):
    """Another has sealed batches meanwhile; look again."""


@dataclass(frozen=True)
class Kept:
    """A submission that is in the shards of a seal.

    Parameters
    ----------
    receipt : str
        Its identity.
    place : int
        In the batch, from 0 on.
    pieces : tuple of Piece
        Its documents, day by day: those of a day are in the shard of the day.
    """

    receipt: ReceiptId
    place: Count
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Taken:
    """A batch in a seal.

    Parameters
    ----------
    name : str
        Of the batch.
    kept : tuple of Kept
        Submissions of which the documents are in the shards, in their order.
    refused : tuple of str
        Receipts under which another content had come before.
    """

    name: Path
    kept: tuple[Kept, ...]
    refused: tuple[ReceiptId, ...] = ()


@dataclass(frozen=True)
class SealedShard:
    """A shard of documents of one day.

    Parameters
    ----------
    path : str
        In the inbox.
    day : date
        Of its documents.
    documents, nbytes : int
        What it holds.
    sha256 : str
        Of its bytes.
    """

    path: Path
    day: date
    documents: Count
    nbytes: Count
    sha256: Digest


@dataclass(frozen=True)
class Seal:
    """What one seal says.

    Parameters
    ----------
    number : int
        From 1 on, without gaps.
    transaction : str
        Of who made it.
    batches : tuple of Taken
        What it is made of.
    shards : tuple of SealedShard
        What it makes; none where all had come before.
    """

    number: Count
    transaction: Identity
    batches: tuple[Taken, ...]
    shards: tuple[SealedShard, ...]

    @cached_property
    def receipts(self) -> frozenset[str]:
        """Receipts whose documents are in its shards."""
        return frozenset(kept.receipt for batch in self.batches for kept in batch.kept)

    def shards_of(self, receipt: str) -> tuple[SealedShard, ...]:
        """Shards that hold documents of a receipt."""
        days = {
            piece.day
            for batch in self.batches
            for kept in batch.kept
            if kept.receipt == receipt
            for piece in kept.pieces
        }
        return tuple(shard for shard in self.shards if shard.day in days)

    def documents_of(self, receipt: str) -> int:
        """How many came under a receipt."""
        return sum(
            piece.documents
            for batch in self.batches
            for kept in batch.kept
            if kept.receipt == receipt
            for piece in kept.pieces
        )

    @property
    def documents(self) -> int:
        """How many its shards hold."""
        return sum(shard.documents for shard in self.shards)


_SEAL: TypeAdapter[Seal] = TypeAdapter(Seal)
_NUMBER: TypeAdapter[int] = TypeAdapter(Count)
_Contents: TypeAlias = dict[str, tuple[Submission, ...]]  # of batches, by name


@dataclass(frozen=True)
class SealLog:
    r"""The seals of an inbox.

    Parameters
    ----------
    inbox : Inbox
        Of which batches are sealed.

    Examples
    --------
    >>> inbox = Inbox.open("memory://sealing-example")
    >>> piece = Piece(date(2026, 11, 23), 1, 15)
    >>> one = Submission("b" + "0" * 32 + "-0", "a" * 64, False, (piece,), b'{"text":"sea"}\n')
    >>> _ = inbox.put([one])
    >>> log = SealLog(inbox)
    >>> [shard.path for shard in log.seal_next().shards], inbox.pending()
    (['sealed/2026-11-23/00000000000000000001.sealed.jsonl'], [])
    """

    inbox: Inbox
    _held: dict[int, Seal] = field(default_factory=dict, repr=False, compare=False)

    def latest(self) -> int:
        """Number of the latest seal; 0 without any.

        Raises
        ------
        StoreError
            The storage cannot be read, or a note of it is damaged.
        """
        folder = self.inbox.folder
        number = self._noted(_REACHED)
        if not number:
            listed = [_FILE.fullmatch(name) for name in folder.names(SEALS)]
            number = max((int(found[1]) for found in listed if found), default=0)
        number = max(number, *self._held, 0) if self._held else number
        while folder.exists(seal_file(number + 1)):
            number += 1
        return number

    def expired(self) -> int:
        """Number of a seal up to which none is kept; errors as `latest`."""
        return self._noted(EXPIRED)

    def read(self, number: int) -> Seal:
        """A seal.

        Raises
        ------
        StoreError
            There is none of that number, or it is damaged.
        """
        held = self._held.get(number)
        if held is None:
            where = f"{self.inbox.folder.url}/{seal_file(number)}"
            content = unseal(self.inbox.folder.read(seal_file(number)), where)
            held = self._remembered(checked(_SEAL, content, f"{where} is no seal"))
        return held

    def find(self, receipt: str, after: int, last: int) -> Seal | None:
        """The seal that has a receipt; None where none has it that is kept.

        Parameters
        ----------
        receipt : str
            As it was answered.
        after, last : int
            Seals from the one behind the first number to the second are looked at.
        """
        if after < last and after + 1 not in self._held:
            there = self.inbox.folder.exists(seal_file(after + 1))
            after = after if there else max(after, self.expired())
        seals = (self.read(number) for number in range(after + 1, last + 1))
        return next((one for one in seals if receipt in one.receipts), None)

    def seal_next(
        self, most_documents: int = MOST_DOCUMENTS, most_bytes: int = MOST_BYTES
    ) -> Seal | None:
        """Seal the oldest batches; None where nothing waits.

        Parameters
        ----------
        most_documents, most_bytes : int
            Batches are taken while they hold no more; the oldest is taken always.

        Raises
        ------
        SealedByAnother
            Another has sealed meanwhile.
        StoreError
            A batch is damaged, or the storage fails: whatever was begun is ended by the next call.
        """
        number = self.latest()
        if number:
            self.finish(number)
        batches = self._oldest(most_documents, most_bytes)
        if not batches:
            return None
        contents = dict(zip(batches, self.inbox.read_all(batches), strict=True))
        taken = self._taken(contents, number)
        shards = tuple(shard for shard, _ in _shards(number + 1, taken, contents))
        sealed = Seal(number + 1, uuid.uuid4().hex, taken, shards)
        content = seal(_SEAL.dump_python(sealed, mode="json"))
        found = create_once(self.inbox.folder, seal_file(sealed.number), content)
        if found is not None:
            raise SealedByAnother(
                f"seal {sealed.number} of {self.inbox.folder.url} was made by another; look again"
            )
        if sealed.number <= self.expired():
            # whoever slept while seals expired has made one that was there before
            self.inbox.folder.delete([seal_file(sealed.number)])
            raise SealedByAnother(f"seal {sealed.number} has expired; look again")
        self._remembered(sealed)
        self._finish(sealed, contents)
        return sealed

    def finish(self, number: int) -> None:
        """Write the shards of a seal, as far as they are not there, and delete its batches.

        Raises
        ------
        StoreError
            A batch is damaged or gone before its shards are there, or the storage fails.
        """
        sealed = self.read(number)
        names = [one.name for one in sealed.batches]
        waiting = self._waiting(names)
        if not waiting:
            return
        contents: _Contents | None = None
        if len(waiting) == len(names):
            try:
                contents = dict(zip(names, self.inbox.read_all(names), strict=True))
            except StoreError:
                # another may end it at the same time, and be deleting already
                if len(self._waiting(names)) == len(names):
                    raise
        self._finish(sealed, contents)

    def _finish(self, sealed: Seal, contents: _Contents | None) -> None:
        """End a seal; without contents all its shards are there, as a batch is gone."""
        folder = self.inbox.folder
        # of one that was ended documents may be gone: batches were written again since
        if contents is not None and self._noted(_REACHED) < sealed.number:
            for shard, lines in _shards(sealed.number, sealed.batches, contents):
                if create_once(folder, shard.path, lines) is not None:
                    raise StoreError(
                        f"{folder.url}/{shard.path} has another content than seal {sealed.number} "
                        "says; restore it from a copy"
                    )
            for day in sorted({shard.day for shard in sealed.shards}):
                folder.sync(f"{SEALED}/{day.isoformat()}")
        self.inbox.remove([one.name for one in sealed.batches])
        folder.write(_REACHED, seal({"seal": sealed.number}))

    def _noted(self, name: str) -> int:
        """Number of a seal that a note says; 0 without it."""
        data, where = self.inbox.folder.find(name), f"{self.inbox.folder.url}/{name}"
        content = {"seal": 0} if data is None else unseal(data, where)
        return checked(_NUMBER, content.get("seal"), f"{where} names no seal")

    def _waiting(self, names: Sequence[str]) -> set[str]:
        return set(self.inbox.folder.names(BATCHES)) & set(names)

    def _oldest(self, most_documents: int, most_bytes: int) -> list[str]:
        found, documents, nbytes = list[str](), 0, 0
        for batch in self.inbox.pending():
            documents, nbytes = documents + batch.documents, nbytes + batch.nbytes
            if found and (documents > most_documents or nbytes > most_bytes):
                break
            found.append(batch.name)
        return found

    def _taken(self, contents: _Contents, number: int) -> tuple[Taken, ...]:
        """Of each batch the submissions that came for the first time."""
        claims = self._claims([one for batch in contents.values() for one in batch], number)
        seen = set[str]()
        taken = []
        for name, submissions in contents.items():
            kept, refused = list[Kept](), list[str]()
            for place, one in enumerate(submissions):
                claim = claims.get(one.receipt)
                after = seal_before(one.receipt) if claim is None else claim.after
                if claim is not None and claim.digest != one.digest:
                    refused.append(one.receipt)
                elif one.receipt not in seen and not self.find(one.receipt, after or 0, number):
                    seen.add(one.receipt)
                    kept.append(Kept(one.receipt, place, one.pieces))
            taken.append(Taken(name, tuple(kept), tuple(refused)))
        return tuple(taken)

    def _claims(self, submissions: Sequence[Submission], number: int) -> dict[str, Claim]:
        """Claims of those that came with keys; who brought one may have died before its claim."""
        keyed = {one.receipt: one for one in reversed(submissions) if one.keyed}
        return {
            receipt: found or self.inbox.claim(receipt, keyed[receipt].digest, number)
            for receipt, found in self.inbox.claims_of(list(keyed)).items()
        }

    def _remembered(self, sealed: Seal) -> Seal:
        self._held[sealed.number] = sealed
        while len(self._held) > _HELD:
            self._held.pop(next(iter(self._held)), None)
        return sealed


def seal_file(number: int) -> str:
    """Name of a seal.

    Examples
    --------
    >>> seal_file(7)
    'seals/00000000000000000007.json'
    """
    return f"{SEALS}/{number:020d}.json"


def shard_file(number: int, day: date) -> str:
    """Name of the shard of a day in a seal; its folder says the day."""
    return f"{SEALED}/{day.isoformat()}/{number:020d}{SEALED_NAME}"


def _shards(
    number: int, taken: Sequence[Taken], contents: _Contents
) -> Iterator[tuple[SealedShard, bytes]]:
    """Each shard with its lines: all that follows from a seal."""
    days: dict[date, list[tuple[int, bytes]]] = {}
    for batch in taken:
        for kept in batch.kept:
            for piece, lines in contents[batch.name][kept.place].lines():
                days.setdefault(piece.day, []).append((piece.documents, lines))
    for day in sorted(days):
        documents = sum(number for number, _ in days[day])
        lines = b"".join(lines for _, lines in days[day])
        digest = hashlib.sha256(lines).hexdigest()
        yield SealedShard(shard_file(number, day), day, documents, len(lines), digest), lines
