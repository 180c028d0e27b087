"""Inbox: batches of documents, each durable before it is acknowledged."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.backends import remedy_of
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.retries import retrying
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.batches import (
    Submission,
    batch_from_bytes,
    batch_to_bytes,
)
from streaming_moments.storage.inbox.idempotency import CLAIMS, Claims
from streaming_moments.storage.inbox.owners import FORMAT_FILE, Owner, named, require_owner

BATCHES = "batches"
FORMAT = 1
_KEPT = "kept"  # a file that prevents the deletion of an empty folder
_BATCH = re.compile(r"[0-9a-f]{32}-(\d{1,19})\.batch")


@dataclass(frozen=True)
class PendingBatch:
    """A batch whose documents are not in a shard yet.

    `nbytes` is the size of its file; `arrived` is its time of writing, by the storage's clock.
    """

    name: str
    documents: int
    nbytes: int
    arrived: datetime


@dataclass(frozen=True)
class Backlog:
    """Pending documents and batches.

    batches, documents, nbytes : numbers of batches, documents and bytes
    age : age of the oldest batch, by the clock of the storage; 0 without batches
    """

    batches: int = 0
    documents: int = 0
    nbytes: int = 0
    age: timedelta = timedelta(0)


@dataclass(frozen=True)
class Inbox(Claims):
    r"""The inbox of a store: its pending documents, and the claims of idempotency keys.

    Several processes may write batches at once, and any process may seal them: see
    `sealing.SealLog`. Create an inbox with `open`.


    Examples
    --------
    >>> from datetime import date
    >>> from streaming_moments.storage.inbox.batches import Piece
    >>> inbox = Inbox.open("memory://inbox-example")
    >>> piece = Piece(date(2026, 11, 23), 1, 15)
    >>> one = Submission("b" + "0" * 32 + "-0", "a" * 64, False, (piece,), b'{"text":"sea"}\n')
    >>> name = inbox.put([one])
    >>> inbox.read(name) == (one,), inbox.backlog().documents
    (True, 1)
    """

    @classmethod
    def open(
        cls,
        url: str,
        storage_options: Mapping[str, Any] | None = None,
        owner: Owner | None = None,
    ) -> Inbox:
        """Open the inbox at a URL, and create it if it is missing.

        Raises InboxOfAnother if the inbox belongs to another store. Raises StoreError if the
        storage cannot be written, lets two writers create the same file, or holds an inbox of a
        later version.

        url, storage_options : place of the inbox
        owner : the store that counts its documents. An inbox without an owner adopts this store. By
            default the owner is not checked.
        """
        inbox = cls(Folder.at(url, storage_options))
        folder = inbox.folder
        if not folder.creates_exclusively:
            raise StoreError(
                f"the storage of {folder.url} does not support atomic create-if-absent, which an "
                "inbox needs; put the inbox on a local disk, s3, gs or az"
            )
        content = seal({"format": FORMAT, **({} if owner is None else named(owner))})
        there = create_once(folder, FORMAT_FILE, content)
        if there is not None:
            content = there
            where = f"{folder.url}/{FORMAT_FILE}"
            found = unseal(there, where).get("format")
            if found != FORMAT:
                raise StoreError(
                    f"{where} has format {found!r}, and this version supports {FORMAT}; upgrade "
                    "streaming-moments"
                )
        inbox._require_exclusive(content)
        if owner is not None:
            require_owner(folder, owner)
        for part in (BATCHES, CLAIMS):
            create_once(folder, f"{part}/{_KEPT}", b"kept")
        folder.sync("")
        return inbox

    def put(self, submissions: Sequence[Submission], identity: str | None = None) -> str:
        """Write a batch; it survives a power cut once this returns.

        Raises CreationUnknown if the batch may or may not exist: do not acknowledge it. Raises
        StoreError if the batch was not written.

        Returns the name of the batch. `identity` has 32 hexadecimal digits, random by default.
        """
        documents = sum(one.documents for one in submissions)
        name = f"{identity or uuid.uuid4().hex}-{documents}.batch"
        if create_once(self.folder, f"{BATCHES}/{name}", batch_to_bytes(submissions)) is not None:
            raise StoreError(f"{self.folder.url}/{BATCHES}/{name} holds another batch; try again")
        return name

    def pending(self) -> list[PendingBatch]:
        """List the pending batches, the oldest first.

        Raises StoreError if the storage cannot list them.
        """
        found = []
        for file in self.folder.files(BATCHES):
            match = _BATCH.fullmatch(file.path)
            if match:
                found.append(PendingBatch(file.path, int(match[1]), file.size, file.modified))
        return sorted(found, key=lambda batch: (batch.arrived, batch.name))

    def backlog(self) -> Backlog:
        """Measure the pending documents; raises the errors of `pending`."""
        found = self.pending()
        if not found:
            return Backlog()
        # take the absolute value, so that a clock that was set back does not make batches look new
        age = abs(self.folder.clock() - found[0].arrived)
        documents = sum(batch.documents for batch in found)
        return Backlog(len(found), documents, sum(batch.nbytes for batch in found), age)

    def read(self, name: str) -> tuple[Submission, ...]:
        """Read the submissions of a batch.

        Raises StoreError if the batch is missing or damaged.
        """
        return self.read_all([name])[0]

    def read_all(self, names: Sequence[str]) -> list[tuple[Submission, ...]]:
        """Read several batches as `read` does, at the same time if the storage allows that."""
        places = [f"{BATCHES}/{name}" for name in names]
        contents = self.folder.read_all(places)
        return [
            batch_from_bytes(content, f"{self.folder.url}/{place}")
            for place, content in zip(places, contents, strict=True)
        ]

    def remove(self, names: Sequence[str]) -> None:
        """Delete batches whose documents are in shards; missing batches are skipped."""
        self.folder.delete([f"{BATCHES}/{name}" for name in names])

    def _require_exclusive(self, content: bytes) -> None:
        """Check that the storage refuses to create an existing file; other errors are retried."""

        def is_no_answer(outcome: object) -> bool:
            return isinstance(outcome, Exception) and not isinstance(outcome, FileExistsError)

        try:
            retrying(is_no_answer)(self.folder.create, FORMAT_FILE, content)
        except FileExistsError:
            return
        except Exception as error:
            remedy = remedy_of(error) or "check the connection, then start again"
            raise StoreError(
                f"the inbox {self.folder.url} cannot be written ({self.folder.explain(error)}); "
                f"{remedy}"
            ) from error
        raise StoreError(
            f"the storage of {self.folder.url} overwrites a file that it should only create, so "
            "documents could be lost or counted twice; put the inbox on a storage with "
            "conditional creation"
        )
