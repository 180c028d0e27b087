"""Sealing: assigns each pending document to exactly one shard, even if processes die.

A seal is a numbered file that lists the submissions of some batches and the shards made of these
submissions. A seal is created only if the file does not exist, so one of two simultaneous processes
wins. The shards are written after the seal and depend only on the seal and the batches, so another
process can write missing shards. Batches are deleted last.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeAlias

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.batches import Submission
from streaming_moments.storage.inbox.idempotency import Claim, come_first, is_refused
from streaming_moments.storage.inbox.inbox import BATCHES, Inbox
from streaming_moments.storage.inbox.receipts import seal_before
from streaming_moments.storage.inbox.seals import (
    SEALED,
    SEALS,
    Seal,
    SealedBatch,
    SealedShard,
    SealedSubmission,
    gone_file,
    seal_file,
    seal_of_shard,
    shard_file,
)
from streaming_moments.storage.log.schema import Count, checked

MOST_DOCUMENTS = 10_000
MOST_BYTES = 64 << 20
_FILE = re.compile(r"(\d{20})\.json")
# file with the number of an existing seal, where the search for the latest seal begins
_REACHED = "reached.json"
_HELD, _HELD_SUBMISSIONS = 256, 50_000  # largest numbers of seals and of submissions in memory
# this many of the latest seals stay in memory; they have nearly all receipts that are looked up
_NEAR = 256
_AT_ONCE = 32  # number of seals that are read at the same time
EXPIRED = "expired.json"  # file with the number of the last expired seal


class SealedByAnother(StoreError):
    """Another process has sealed batches meanwhile; try again."""


_NUMBER: TypeAdapter[int] = TypeAdapter(Count)
_Contents: TypeAlias = dict[str, tuple[Submission, ...]]  # submissions of each batch, by its name


@dataclass(frozen=True)
class SealLog:
    r"""The seals of an inbox, which assign its pending documents to shards.

    inbox : inbox whose batches are sealed

    Examples
    --------
    >>> from streaming_moments.storage.inbox.batches import Piece
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
        """Return the number of the latest seal; 0 if there are no seals.

        Raises StoreError if the storage cannot be read, or the note of the latest seal is damaged.
        """
        folder = self.inbox.folder
        number = self._noted(_REACHED)
        if number not in self._held and not folder.exists(seal_file(number)):
            # list all seals: the note of the latest seal is lost, or a slow process noted the
            # number of an expired seal
            listed = [_FILE.fullmatch(name) for name in folder.names(SEALS)]
            number = max((int(found[1]) for found in listed if found), default=0)
        number = max([number, *self._held])
        while folder.exists(seal_file(number + 1)):
            number += 1
        return number

    def expired(self) -> int:
        """Return the number of the last expired seal; raises the errors of `latest`."""
        return self._noted(EXPIRED)

    def read(self, number: int) -> Seal:
        """Read a seal, from memory if possible.

        Raises StoreError if the seal is missing or damaged.
        """
        held = self._held.get(number)
        return self.read_anew(number) if held is None else held

    def read_anew(self, number: int) -> Seal:
        """Read a seal as `read` does, but always from its file, which a purge may have changed."""
        return self._remembered(*self._read_several([number]))

    def each(self, numbers: Sequence[int]) -> Iterator[Seal]:
        """Yield seals in order, with only a few in memory; raises the errors of `read`."""
        for start in range(0, len(numbers), _AT_ONCE):
            yield from self._read_several(numbers[start : start + _AT_ONCE])

    def holds(self, path: str) -> bool:
        """Whether the stored seal of a shard still lists the shard; raises the errors of `read`."""
        return path in self._shards_now(seal_of_shard(path))

    def _shards_now(self, number: int) -> set[str]:
        expired = number <= self.expired()
        return set() if expired else {shard.path for shard in self.read_anew(number).shards}

    def find(self, receipt: str, after: int, last: int) -> Seal | None:
        """Find the seal with a receipt; None if no stored seal has it.

        receipt : receipt of a submission
        after, last : the search covers the seals `after + 1` to `last`
        """
        return self.find_all({receipt: after}, last).get(receipt)

    def find_all(self, receipts: Mapping[str, int], last: int) -> dict[str, Seal]:
        """Find the seals that have the given receipts, in one pass; raises the errors of `read`.

        receipts : for each receipt the number of a seal, after which the search begins
        last : number of the last seal to search
        """
        found = dict[str, Seal]()

        def look_in(one: Seal, names: Set[str]) -> None:
            # Accept only seals after the given number. A receipt follows from the idempotency key
            # of its request. If a client uses a key again after it has expired, an earlier seal
            # can have the same receipt.
            found.update({name: one for name in names if receipts[name] < one.number})

        near, begin = last - _NEAR, min(receipts.values(), default=last) + 1
        if begin <= last:
            begin = max(begin, self.expired() + 1)
        far = {receipt for receipt, after in receipts.items() if after < near}
        # read old seals, but do not keep them in memory
        for start in range(begin, near + 1, _AT_ONCE):
            for one in self._read_several(range(start, min(start + _AT_ONCE, near + 1))):
                look_in(one, far & one.receipts)
        for number in range(max(near + 1, begin), last + 1):
            one = self.read(number)
            look_in(one, receipts.keys() & one.receipts)
        return found

    def seal_next(
        self, most_documents: int = MOST_DOCUMENTS, most_bytes: int = MOST_BYTES
    ) -> Seal | None:
        """Seal the oldest batches, and return the seal; None without batches.

        Raises SealedByAnother if another process has sealed batches meanwhile. Raises StoreError if
        a batch is damaged, or the storage fails. After an error, the next call continues.

        most_documents, most_bytes : upper bounds of the sealed documents and bytes. The oldest
            batch may exceed them.
        """
        number = self.latest()
        if number:
            self.finish(number)
        batches = self._oldest(most_documents, most_bytes)
        if not batches:
            return None
        contents = dict(zip(batches, self.inbox.read_all(batches), strict=True))
        taken = self._new_submissions(contents, number)
        shards = tuple(shard for shard, _ in _shards(number + 1, taken, contents))
        sealed = Seal(number + 1, uuid.uuid4().hex, taken, shards)
        found = create_once(self.inbox.folder, seal_file(sealed.number), sealed.sealed())
        if found is not None:
            raise SealedByAnother(
                f"another process made seal {sealed.number} of {self.inbox.folder.url}; try again"
            )
        if sealed.number <= self.expired():
            # this process was slow: it has made a seal again that had expired before
            self.inbox.folder.delete([seal_file(sealed.number)])
            raise SealedByAnother(f"seal {sealed.number} has expired; try again")
        self._finish(sealed, contents)
        return sealed

    def finish(self, number: int) -> None:
        """Write the missing shards of a seal, and delete its batches.

        Raises StoreError if a batch is damaged or missing before its shards exist, or the storage
        fails.
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
                # ignore the error if another process has deleted a batch to finish the seal
                if len(self._waiting(names)) == len(names):
                    raise
        self._finish(sealed, contents)

    def _finish(self, sealed: Seal, contents: _Contents | None) -> None:
        """Finish a seal.

        Pass no `contents` if batches were deleted: then all shards of the seal exist.
        """
        folder = self.inbox.folder
        ended = self._noted(_REACHED) >= sealed.number
        # write no shards of a seal that is noted as complete: deleted lines must not reappear
        if contents is not None and not ended:
            written, others = list[SealedShard](), list[SealedShard]()
            for shard, lines in _shards(sealed.number, sealed.batches, contents):
                found = create_once(folder, shard.path, lines)
                (written if found is None else others).append(shard)
            for day in sorted({shard.day for shard in sealed.shards}):
                folder.sync(f"{SEALED}/{day.isoformat()}")
            # While this process was slow, another may have purged shards or deleted lines that this
            # process then wrote again: delete the files that bring them back.
            there = self._shards_now(sealed.number)
            folder.delete(
                [one.path for one in written if one.path not in there or self._lacks_lines(one)]
            )
            if others:
                raise StoreError(
                    f"the content of {folder.url}/{others[0].path} differs from seal "
                    f"{sealed.number}; restore it from a copy"
                )
        self.inbox.remove([one.name for one in sealed.batches])
        if not ended:
            folder.write(_REACHED, seal({"seal": sealed.number}))

    def _lacks_lines(self, shard: SealedShard) -> bool:
        """Whether the file of a shard still (or again) has lines that a deletion removed."""
        folder = self.inbox.folder
        # look for the note first: a deletion writes the note after the remaining lines
        noted = folder.exists(gone_file(shard.path))
        content = folder.find(shard.path) if noted else None
        return content is not None and hashlib.sha256(content).hexdigest() == shard.sha256

    def _noted(self, name: str) -> int:
        """Return the number of the seal in a note file; 0 if there is no such file."""
        data, where = self.inbox.folder.find(name), f"{self.inbox.folder.url}/{name}"
        content = {"seal": 0} if data is None else unseal(data, where)
        return checked(_NUMBER, content.get("seal"), f"{where} has no valid number of a seal")

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

    def _new_submissions(self, contents: _Contents, number: int) -> tuple[SealedBatch, ...]:
        """Select from each batch the submissions that are new, not repeated or refused."""
        claims = self._claims([one for batch in contents.values() for one in batch], number)
        looked_for = {
            one.receipt: claims[one.receipt].after
            if one.receipt in claims
            else seal_before(one.receipt) or 0
            for batch in contents.values()
            for one in batch
            if not is_refused(one, claims)
        }
        sealed = self.find_all(looked_for, number)
        for receipt, after in looked_for.items():
            if receipt in claims and after < number - _NEAR:
                # write the number of a later seal to an old claim, so that the next search begins
                # there
                behind = sealed[receipt].number - 1 if receipt in sealed else number
                self._renew(receipt, replace(claims[receipt], after=behind))
        seen = set(sealed)
        taken = []
        for name, submissions in contents.items():
            first, refused = come_first(submissions, claims, seen)
            kept = (SealedSubmission(one.receipt, place, one.pieces) for place, one in first)
            taken.append(SealedBatch(name, tuple(kept), tuple(refused)))
        return tuple(taken)

    def _renew(self, receipt: str, claim: Claim) -> None:
        self.inbox.renew(receipt, claim)
        found = self.find(receipt, claim.after, self.latest())
        if found is not None and self.read_anew(found.number).lacks_some_of(receipt):
            # a purge removed the hash after this process read the claim, so remove the hash again
            self.inbox.renew(receipt, claim.forgotten())

    def _claims(self, submissions: Sequence[Submission], number: int) -> dict[str, Claim]:
        """Read the claims of submissions with idempotency keys.

        If a process died before it wrote the claim of a submission, write it now.
        """
        keyed = {one.receipt: one for one in reversed(submissions) if one.keyed}
        return {
            receipt: found or self.inbox.claim(receipt, keyed[receipt].digest, number)
            for receipt, found in self.inbox.claims_of(list(keyed)).items()
        }

    def _read_several(self, numbers: Sequence[int]) -> Iterator[Seal]:
        names, url = [seal_file(number) for number in numbers], self.inbox.folder.url
        for name, data in zip(names, self.inbox.folder.read_all(names), strict=True):
            yield Seal.unsealed(data, f"{url}/{name}")

    def _remembered(self, sealed: Seal) -> Seal:
        self._held[sealed.number] = sealed
        held = list(self._held.items())
        submissions = sum(one.submissions for _, one in held)
        for place, (number, one) in enumerate(held[:-1]):
            if len(held) - place <= _HELD and submissions <= _HELD_SUBMISSIONS:
                break
            submissions -= one.submissions
            self._held.pop(number, None)
        return sealed


def _shards(
    number: int, taken: Sequence[SealedBatch], contents: _Contents
) -> Iterator[tuple[SealedShard, bytes]]:
    """Yield each shard of a seal with its lines."""
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
