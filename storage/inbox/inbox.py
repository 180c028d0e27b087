"""Inbox: batches of documents that came, each durable before anyone is told so."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from streaming_moments.errors import StoreError
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
_KEPT = "kept"  # a file for which a folder is never empty, and so never deleted
_BATCH = re.compile(r"[0-9a-f]{32}-(\d{1,19})\.batch")


@dataclass(frozen=True)
class PendingBatch:
    """A batch that is not in a shard yet.

    `nbytes` is the size of its file; `arrived` is when it was written, by the clock of the storage.
    """

    name: str
    documents: int
    nbytes: int
    arrived: datetime


@dataclass(frozen=True)
class Backlog:
    """Pending documents and batches.

    Parameters
    ----------
    batches, documents, nbytes : int
        How much.
    age : timedelta
        Since the oldest came, by the clock of the storage; 0 where nothing waits.
    """

    batches: int = 0
    documents: int = 0
    nbytes: int = 0
    age: timedelta = timedelta(0)


@dataclass(frozen=True)
class Inbox(Claims):
    r"""Documents that came and are in no shard yet, with the claims of their keys.

    Several processes may put batches at once, and one of them, or another, seals them; see
    `sealing.SealLog`. Make one with `open`.

    Parameters
    ----------
    folder : Folder
        Where it is.

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
        """The inbox at a URL, created if missing.

        Parameters
        ----------
        url, storage_options
            Where it is.
        owner : Owner, optional
            The store that counts its documents. An inbox that belongs to none yet belongs to it
            from then on. By default nobody is asked.

        Raises
        ------
        InboxOfAnother
            It belongs to another store.
        StoreError
            The storage cannot be written, lets two writers create one file, or holds an inbox of
            a later version.
        """
        inbox = cls(Folder.at(url, storage_options))
        folder = inbox.folder
        if not folder.creates_exclusively:
            raise StoreError(
                f"the storage of {folder.url} cannot refuse a second writer; keep the inbox on a "
                "local disk, s3, gs or az"
            )
        content = seal({"format": FORMAT, **({} if owner is None else named(owner))})
        there = create_once(folder, FORMAT_FILE, content)
        if there is not None:
            content = there
            where = f"{folder.url}/{FORMAT_FILE}"
            found = unseal(there, where).get("format")
            if found != FORMAT:
                raise StoreError(
                    f"{where} is of format {found!r}, this version knows {FORMAT}; upgrade "
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
        """Write a batch; it outlasts a power cut once this returns.

        Parameters
        ----------
        submissions : sequence of Submission
            At least one.
        identity : str, optional
            32 hexadecimal digits; by default drawn.

        Returns
        -------
        str
            Name of the batch.

        Raises
        ------
        CreationUnknown
            It may or may not be there: do not acknowledge it.
        StoreError
            Nothing of it is there, and why.
        """
        documents = sum(one.documents for one in submissions)
        name = f"{identity or uuid.uuid4().hex}-{documents}.batch"
        if create_once(self.folder, f"{BATCHES}/{name}", batch_to_bytes(submissions)) is not None:
            raise StoreError(f"{self.folder.url}/{BATCHES}/{name} is another batch; try it again")
        return name

    def pending(self) -> list[PendingBatch]:
        """Batches that are there, the oldest first.

        Raises
        ------
        StoreError
            They cannot be listed.
        """
        found = []
        for file in self.folder.files(BATCHES):
            match = _BATCH.fullmatch(file.path)
            if match:
                found.append(PendingBatch(file.path, int(match[1]), file.size, file.modified))
        return sorted(found, key=lambda batch: (batch.arrived, batch.name))

    def backlog(self) -> Backlog:
        """How much waits, and for how long; raises as `pending`."""
        found = self.pending()
        if not found:
            return Backlog()
        # after a clock was set back what came before is no less old
        age = abs(self.folder.clock() - found[0].arrived)
        documents = sum(batch.documents for batch in found)
        return Backlog(len(found), documents, sum(batch.nbytes for batch in found), age)

    def read(self, name: str) -> tuple[Submission, ...]:
        """Submissions of a batch.

        Raises
        ------
        StoreError
            It is missing or damaged.
        """
        return self.read_all([name])[0]

    def read_all(self, names: Sequence[str]) -> list[tuple[Submission, ...]]:
        """As `read`, of several batches, fetched at the same time where the storage can."""
        places = [f"{BATCHES}/{name}" for name in names]
        contents = self.folder.read_all(places)
        return [
            batch_from_bytes(content, f"{self.folder.url}/{place}")
            for place, content in zip(places, contents, strict=True)
        ]

    def remove(self, names: Sequence[str]) -> None:
        """Delete batches whose documents are in shards; those that are gone are no error."""
        self.folder.delete([f"{BATCHES}/{name}" for name in names])

    def _require_exclusive(self, content: bytes) -> None:
        """Make sure that the storage refuses to create what is there; an error is no refusal."""

        def is_no_answer(outcome: object) -> bool:
            return isinstance(outcome, Exception) and not isinstance(outcome, FileExistsError)

        try:
            retrying(is_no_answer)(self.folder.create, FORMAT_FILE, content)
        except FileExistsError:
            return
        except Exception as error:
            raise StoreError(
                f"the storage of {self.folder.url} did not say whether it overwrites files "
                f"({self.folder.explain(error)}); check the connection and the permissions, then "
                "start again"
            ) from error
        raise StoreError(
            f"the storage of {self.folder.url} overwrites what it was asked to create, so "
            "documents would be lost or counted twice; keep the inbox on a storage with "
            "conditional creation"
        )
