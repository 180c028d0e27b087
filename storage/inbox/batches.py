"""Batches: files that each hold the documents of several requests."""

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

_LINES = 2  # lines of the header of a batch file, including its checksum


@dataclass(frozen=True)
class Piece:
    """Documents of one day in a submission.

    day : date of the documents; if they have none, the day of their arrival
    documents : number of documents
    nbytes : size of their lines in bytes
    """

    day: date
    documents: Count
    nbytes: Count


@dataclass(frozen=True)
class Submission:
    """Documents of one request.

    receipt : identity of the submission
    digest : SHA-256 of the request in hexadecimal. A different request with the same receipt
        has a different digest.
    keyed : whether the request had an idempotency key, so that it may arrive again
    pieces : documents by day
    content : JSON Lines of the documents, in the order of `pieces`
    """

    receipt: ReceiptId
    digest: Digest
    keyed: bool
    pieces: tuple[Piece, ...]
    content: bytes = field(repr=False)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return sum(piece.documents for piece in self.pieces)

    def lines(self) -> Iterator[tuple[Piece, bytes]]:
        """Yield the piece of each day, with the lines of its documents."""
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
    r"""Encode a batch: a header with a checksum, then the lines of all documents.

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
            f"{where} is damaged (the SHA-256 of its documents is not that in its header); restore "
            "it from a copy, or delete it and lose its documents"
        )
    found, at = [], 0
    for one in header.submissions:
        stop = at + sum(piece.nbytes for piece in one.pieces)
        found.append(Submission(one.receipt, one.digest, one.keyed, one.pieces, body[at:stop]))
        at = stop
    if at != len(body):
        raise StoreError(
            f"{where} is damaged (the sizes in its header do not add up to that of its documents); "
            "restore it from a copy"
        )
    return tuple(found)


def receipts_of_batch(data: bytes, where: str) -> dict[str, str]:
    """Map each receipt in a batch to the digest of its request, without reading documents."""
    header, _ = _header(data, where)
    return {one.receipt: one.digest for one in header.submissions}


def _header(data: bytes, where: str) -> tuple[_Header, int]:
    ends = [found.end() for found in islice(re.finditer(rb"\n", data), _LINES)]
    if len(ends) < _LINES:
        raise StoreError(f"{where} is damaged (it has no header); restore it from a copy")
    start = max(ends)
    content = unseal(data[: start - 1], where)
    return checked(_HEADER, content, f"{where} is not a valid batch"), start
