"""Seals: each assigns the submissions of some batches to shards."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.parts import SEALED_NAME
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.batches import Piece
from streaming_moments.storage.inbox.receipts import ReceiptId
from streaming_moments.storage.log.schema import Count, Digest, Identity, Path, checked

SEALS, SEALED = "seals", "sealed"
GONE = "gone"  # folder with notes that say which lines of shards were deleted
_SHARD = re.compile(rf"(.+)/({SEALED}/\d{{4}}-\d\d-\d\d/\d{{20}}{re.escape(SEALED_NAME)})")


@dataclass(frozen=True)
class SealedSubmission:
    """A submission whose documents are in the shards of a seal.

    place : place of the submission in the batch, from 0
    pieces : its documents by day; the shard of a day holds the documents of that day
    """

    receipt: ReceiptId
    place: Count
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class SealedBatch:
    """A batch in a seal.

    kept : submissions whose documents are in the shards, in order
    refused : receipts that were used before for other content
    """

    name: Path
    kept: tuple[SealedSubmission, ...]
    refused: tuple[ReceiptId, ...] = ()


@dataclass(frozen=True)
class SealedShard:
    """A shard with documents of one day.

    `path` is its path in the inbox, and `sha256` the hash of its content.
    """

    path: Path
    day: date
    documents: Count
    nbytes: Count
    sha256: Digest


@dataclass(frozen=True)
class Seal:
    """Content of one seal.

    number : numbers begin with 1 and have no gaps
    transaction : random identity of the call that made the seal
    batches : batches that it seals
    shards : shards that it makes; empty if all submissions were repetitions
    """

    number: Count
    transaction: Identity
    batches: tuple[SealedBatch, ...]
    shards: tuple[SealedShard, ...]

    @cached_property
    def receipts(self) -> frozenset[str]:
        """Receipts whose documents are in the shards of the seal."""
        return frozenset(kept.receipt for batch in self.batches for kept in batch.kept)

    def shards_of(self, receipt: str) -> tuple[SealedShard, ...]:
        """Return the shards that hold documents of a receipt."""
        days = self.days_of(receipt)
        return tuple(shard for shard in self.shards if shard.day in days)

    def lacks_some_of(self, receipt: str) -> bool:
        """Whether a purge removed a shard with documents of a receipt."""
        return not self.days_of(receipt) <= {shard.day for shard in self.shards}

    def days_of(self, receipt: str) -> set[date]:
        """Return the days of the documents of a receipt."""
        return {piece.day for piece in self._pieces_of(receipt)}

    def documents_of(self, receipt: str) -> int:
        """Return the number of documents sent with a receipt."""
        return sum(piece.documents for piece in self._pieces_of(receipt))

    def _pieces_of(self, receipt: str) -> Iterator[Piece]:
        for batch in self.batches:
            for kept in batch.kept:
                if kept.receipt == receipt:
                    yield from kept.pieces

    @cached_property
    def submissions(self) -> int:
        """Number of submissions in the shards of the seal."""
        return sum(len(batch.kept) for batch in self.batches)

    @property
    def documents(self) -> int:
        """Number of documents in the shards of the seal."""
        return sum(shard.documents for shard in self.shards)

    def sealed(self) -> bytes:
        """Encode the seal as a file."""
        return seal(_SEAL.dump_python(self, mode="json"))

    @classmethod
    def unsealed(cls, data: bytes, where: str) -> Seal:
        """Decode the seal in a file.

        Raises StoreError if the file is damaged.
        """
        return checked(_SEAL, unseal(data, where), f"{where} is not a valid seal")


_SEAL: TypeAdapter[Seal] = TypeAdapter(Seal)


def seal_file(number: int) -> str:
    """Return the name of the file of a seal.

    Examples
    --------
    >>> seal_file(7)
    'seals/00000000000000000007.json'
    """
    return f"{SEALS}/{number:020d}.json"


def shard_file(number: int, day: date) -> str:
    """Return the path of a seal's shard for one day, in the folder of that day."""
    return f"{SEALED}/{day.isoformat()}/{number:020d}{SEALED_NAME}"


def seal_of_shard(path: str) -> int:
    """Return the number of the seal of a shard, given the path of the shard.

    Examples
    --------
    >>> seal_of_shard(shard_file(7, date(2026, 11, 23)))
    7
    """
    return int(path.rpartition("/")[2].partition(".")[0])


def place_of_shard(url: str) -> tuple[str, str] | None:
    """Split a sealed shard's URL into its inbox's URL and its path there; None for other shards.

    Examples
    --------
    >>> place_of_shard("/shop/inbox/" + shard_file(7, date(2026, 11, 23)))
    ('/shop/inbox', 'sealed/2026-11-23/00000000000000000007.sealed.jsonl')
    """
    match = _SHARD.fullmatch(url)
    return None if match is None else (match[1], match[2])


def are_of_other_batches(
    shards: tuple[str, str], storage_options: Mapping[str, Any] | None = None
) -> bool:
    """Whether two sealed shards certainly hold documents of different batches.

    Batches have random names. A copy of an inbox keeps these names, even if it was made before the
    batches were sealed. So shards whose seals name different batches are not copies of one another.

    False if a seal is missing or cannot be read, because then one shard may be a copy of the other.
    """
    one, other = (_seal_bytes(shard, storage_options) for shard in shards)
    if one is None or other is None or one == other:
        return False
    try:
        names = [
            {batch.name for batch in Seal.unsealed(data, shard).batches}
            for shard, data in zip(shards, (one, other), strict=True)
        ]
    except StoreError:
        # a damaged seal names no batches
        return False
    return names[0].isdisjoint(names[1])


def gone_file(path: str) -> str:
    """Return the name of the note about the deleted lines of a shard."""
    return f"{GONE}/{path}.json"


def _seal_bytes(shard: str, storage_options: Mapping[str, Any] | None) -> bytes | None:
    place = place_of_shard(shard)
    if place is None:
        return None
    inbox, path = place
    try:
        return Folder.at(inbox, storage_options).find(seal_file(seal_of_shard(path)))
    except StoreError:
        # the place of a shard that has moved may no longer be readable
        return None
