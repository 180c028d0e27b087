"""Batches: what several requests brought at once, in one file that is written whole."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import islice, pairwise

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.receipts import ReceiptId
from streaming_moments.storage.log.schema import Count, Digest, checked

_LINES = 2  # of a sealed header


@dataclass(frozen=True)
class Piece:
    """Documents of one day in a submission.

    Parameters
    ----------
    day : date
        Of the documents, or of their arrival.
    documents : int
        How many.
    nbytes : int
        Of their lines.
    """

    day: date
    documents: Count
    nbytes: Count


@dataclass(frozen=True)
class Submission:
    """What one request brought.

    Parameters
    ----------
    receipt : str
        Its identity.
    digest : str
        SHA-256 of what was sent, in hexadecimal: another under the same receipt differs in it.
    keyed : bool
        Whether it came with a key, so that it may come again.
    pieces : tuple of Piece
        Its documents, day by day.
    content : bytes
        JSON Lines of the documents, piece by piece.
    """

    receipt: ReceiptId
    digest: Digest
    keyed: bool
    pieces: tuple[Piece, ...]
    content: bytes = field(repr=False)

    @property
    def documents(self) -> int:
        """How many it brought."""
        return sum(piece.documents for piece in self.pieces)

    def lines(self) -> Iterator[tuple[Piece, bytes]]:
        """Each piece with its lines."""
        ends = [0]
        for piece in self.pieces:
            ends.append(ends[-1] + piece.nbytes)
        for piece, (start, stop) in zip(self.pieces, pairwise(ends), strict=True):
            yield piece, self.content[start:stop]


@dataclass(frozen=True)
class _Head:
    receipt: ReceiptId
    digest: Digest
    keyed: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class _Header:
    body: Digest
    submissions: tuple[_Head, ...]


_HEADER: TypeAdapter[_Header] = TypeAdapter(_Header)


def batch_to_bytes(submissions: Sequence[Submission]) -> bytes:
    r"""File of a batch: a sealed header, then the lines of all documents.

    Examples
    --------
    >>> piece = Piece(date(2026, 11, 23), 1, 15)
    >>> one = Submission("b" + "0" * 32 + "-0", "a" * 64, False, (piece,), b'{"text":"sea"}\n')
    >>> batch_from_bytes(batch_to_bytes([one]), "batch") == (one,)
    True
    """
    body = b"".join(one.content for one in submissions)
    heads = tuple(_Head(one.receipt, one.digest, one.keyed, one.pieces) for one in submissions)
    header = _Header(hashlib.sha256(body).hexdigest(), heads)
    return seal(_HEADER.dump_python(header, mode="json")) + b"\n" + body


def batch_from_bytes(data: bytes, where: str) -> tuple[Submission, ...]:
    """Decode the submissions of a batch file; `where` names the file in errors.

    A single changed bit raises a StoreError.
    """
    header, start = _header(data, where)
    body = data[start:]
    if hashlib.sha256(body).hexdigest() != header.body:
        raise StoreError(
            f"{where} is damaged (its documents do not have the SHA-256 of its header); restore it "
            "from a copy, or take it away: then its documents are lost"
        )
    found, at = [], 0
    for one in header.submissions:
        stop = at + sum(piece.nbytes for piece in one.pieces)
        found.append(Submission(one.receipt, one.digest, one.keyed, one.pieces, body[at:stop]))
        at = stop
    if at != len(body):
        raise StoreError(f"{where} is damaged (its pieces are not its documents); restore it")
    return tuple(found)


def receipts_of_batch(data: bytes, where: str) -> dict[str, str]:
    """Receipts of a batch, with the digest of each; of the documents nothing is read."""
    header, _ = _header(data, where)
    return {one.receipt: one.digest for one in header.submissions}


def _header(data: bytes, where: str) -> tuple[_Header, int]:
    ends = [found.end() for found in islice(re.finditer(rb"\n", data), _LINES)]
    if len(ends) < _LINES:
        raise StoreError(f"{where} is damaged (it has no header); restore it from a copy")
    start = max(ends)
    content = unseal(data[: start - 1], where)
    return checked(_HEADER, content, f"{where} is no batch of documents"), start
