"""Deletions: documents that are to be taken out of the shards they were sealed in.

A deletion is asked for by a file, and planned by another, created once, that says which lines of
which shards go and what these held before: whoever applies it may die at any time, and the next
one goes on. The old content lies aside while statistics are counted without it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter
from pydantic_core import to_json

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import seal_before
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import SEALED, Seal, SealedShard, gone_file
from streaming_moments.storage.inbox.set_aside import set_aside_file
from streaming_moments.storage.log.schema import Count, Digest, Identity, Path, checked

ASKED, PLANS, DONE, ASIDE = "deletions", "deletion-plans", "deleted", "aside"
_MOST = 1000  # receipts or ids of a deletion


@dataclass(frozen=True)
class Deletion:
    """What is to be forgotten.

    Parameters
    ----------
    by : {"receipt", "id"}
        What the names are.
    names : tuple of str
        Receipts, or ids of documents.
    """

    by: Literal["receipt", "id"]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.names) <= _MOST or not all(self.names):
            raise InvalidInput(
                f"{len(self.names)} names of documents to forget; give 1 to {_MOST}, none empty"
            )


@dataclass(frozen=True)
class ShardDeletion:
    """Lines that go from a shard.

    Parameters
    ----------
    path : str
        In the inbox.
    lines : tuple of int
        As they lie before, from 0 on.
    before : str
        SHA-256 of what it held.
    after : str or None
        Of what it holds then; None where nothing is left.
    """

    path: Path
    lines: tuple[Count, ...]
    before: Digest
    after: Digest | None


@dataclass(frozen=True)
class Plan:
    """What a deletion does: the shards, of which each is applied once."""

    shards: tuple[ShardDeletion, ...] = ()

    @property
    def documents(self) -> int:
        """How many go."""
        return sum(len(one.lines) for one in self.shards)


@dataclass(frozen=True)
class Deleted:
    """What a deletion did.

    Parameters
    ----------
    documents : int
        That went.
    version : int or None
        Of the store, that counts them no more; None where there were none.
    """

    documents: Count
    version: Count | None = None


@dataclass(frozen=True)
class _Gone:
    """Lines of a shard that went before, as it was sealed."""

    lines: tuple[Count, ...] = ()


_DELETION: TypeAdapter[Deletion] = TypeAdapter(Deletion)
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_DELETED: TypeAdapter[Deleted] = TypeAdapter(Deleted)
_GONE: TypeAdapter[_Gone] = TypeAdapter(_Gone)
_IDENTITY: TypeAdapter[str] = TypeAdapter(Identity)


@dataclass(frozen=True)
class Deletions:
    """The deletions of an inbox.

    Parameters
    ----------
    seals : SealLog
        Of the inbox, whose shards they take from.
    """

    seals: SealLog

    @property
    def _inbox(self) -> Inbox:
        return self.seals.inbox

    def ask(self, deletion: Deletion) -> str:
        """Ask for one; it outlasts a power cut once this returns its identity.

        Raises
        ------
        StoreError
            It cannot be written.
        """
        identity = uuid.uuid4().hex
        content = seal(_DELETION.dump_python(deletion, mode="json"))
        create_once(self._inbox.folder, f"{ASKED}/{identity}.json", content)
        return identity

    def waiting(self) -> dict[str, Deletion]:
        """Those that are not done, by their identity: one that is begun before all others.

        What another one plans on is what the one that is begun leaves behind.
        """
        folder = self._inbox.folder
        asked = [name for name in folder.names(ASKED) if name.endswith(".json")]
        begun = set(folder.names(PLANS)) if asked else set()
        found = {}
        for name in sorted(asked, key=lambda name: (name not in begun, name)):
            data = folder.find(f"{ASKED}/{name}")
            if data is not None:
                where = f"{folder.url}/{ASKED}/{name}"
                content = unseal(data, where)
                found[name.removesuffix(".json")] = checked(_DELETION, content, f"{where} is none")
        return found

    def is_waiting(self, identity: str) -> bool:
        """Whether one is asked for and not done."""
        return self._inbox.folder.exists(f"{ASKED}/{identity}.json")

    def done(self, identity: str) -> Deleted | None:
        """What one did; None while it is not done, or of what is none."""
        data = self._inbox.folder.find(f"{DONE}/{checked(_IDENTITY, identity, 'no identity')}.json")
        where = f"{self._inbox.folder.url}/{DONE}/{identity}.json"
        return None if data is None else checked(_DELETED, unseal(data, where), f"{where} is none")

    def plan(self, identity: str, deletion: Deletion) -> Plan:
        """What one does; made when it is first asked for, and the same from then on.

        Every document that came before is in a shard then: seal them first.
        """
        folder, name = self._inbox.folder, f"{PLANS}/{identity}.json"
        data = folder.find(name)
        if data is None:
            plan = Plan(tuple(self._lines_of(deletion)))
            data = seal(_PLAN.dump_python(plan, mode="json"))
            data = create_once(folder, name, data) or data
        where = f"{folder.url}/{name}"
        found = checked(_PLAN, unseal(data, where), f"{where} is no plan")
        return Plan(tuple(one for one in found.shards if not self._is_purged(one.path)))

    def set_aside(self, one: ShardDeletion) -> tuple[str, str | None]:
        """Put what a shard held aside, and what is left in its place.

        Returns
        -------
        str, str or None
            Paths of the old content and of the new; None where nothing is left: then the shard is
            as it was, to be forgotten whole.

        Raises
        ------
        StoreError
            The shard holds something else than what was planned on.
        """
        folder = self._inbox.folder
        old = f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"
        found = folder.find(one.path)
        if found is None and one.after is None:
            return old, None  # who deleted it died before the end
        content = folder.read(one.path) if found is None else found
        if _sha256(content) == one.before:
            create_once(folder, old, content)
            if one.after is not None:
                folder.write(one.path, _without(content, one.lines))
                folder.sync(one.path.rpartition("/")[0])
        elif _sha256(content) != one.after:
            raise StoreError(
                f"{folder.url}/{one.path} is not what the deletion was planned on; restore it"
            )
        self._is_purged(one.path)
        return old, None if one.after is None else one.path

    def finish(self, identity: str, plan: Plan, version: int | None) -> None:
        """Note that one is done, and delete what lies aside and what is left of its shards."""
        folder = self._inbox.folder
        for one in plan.shards:
            # noted twice, lines would be counted behind those that went
            name = gone_file(one.path)
            if not _is_noted(folder.find(name), identity):
                gone = self._gone(one.path)
                lines = sorted({*gone, *(_as_sealed(line, gone) for line in one.lines)})
                folder.write(name, seal({"lines": lines, "by": identity}))
            if one.after is None:
                folder.delete([one.path])
            folder.delete([f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"])
            self._is_purged(one.path)
        content = seal(_DELETED.dump_python(Deleted(plan.documents, version), mode="json"))
        create_once(folder, f"{DONE}/{identity}.json", content)
        self.withdraw(identity)

    def files_of(self, path: str) -> list[str]:
        """Files that hold or name what a shard has or had, and the shard."""
        folder, own = self._inbox.folder, path.rpartition("/")[2]
        aside = [f"{ASIDE}/{file.path}" for file in folder.files(ASIDE)]
        plans = [f"{PLANS}/{name}" for name in folder.names(PLANS)]
        return [
            path,
            gone_file(path),
            set_aside_file(path),
            *(name for name in aside if name.endswith(f"/{own}")),
            *(name for name in plans if path.encode() in (folder.find(name) or b"")),
        ]

    def _is_purged(self, path: str) -> bool:
        """Whether a shard was purged; what whoever slept meanwhile has brought back goes again."""
        if self.seals.holds(path):
            return False
        self._inbox.folder.delete(self.files_of(path))
        return True

    def withdraw(self, identity: str) -> None:
        """Ask for one no more: it is done."""
        self._inbox.folder.delete([f"{ASKED}/{identity}.json"])

    def left_of(self, receipt: str, sealed: Seal) -> dict[SealedShard, int]:
        """Shards of a seal in which documents of a receipt still are, and how many."""
        left = {
            shard: len(_by_receipt([receipt], sealed, shard.path, b"", self._gone(shard.path)))
            for shard in sealed.shards_of(receipt)
        }
        return {shard: documents for shard, documents in left.items() if documents}

    def _lines_of(self, deletion: Deletion) -> Iterator[ShardDeletion]:
        chosen = _by_receipt if deletion.by == "receipt" else _by_id
        for sealed in self._seals_of(deletion):
            for shard in sealed.shards:
                content = self._inbox.folder.find(shard.path)
                if content is None:
                    continue  # all of it went before, or was removed
                lines = chosen(deletion.names, sealed, shard.path, content, self._gone(shard.path))
                if lines:
                    left = _without(content, lines)
                    after = _sha256(left) if left else None
                    yield ShardDeletion(shard.path, tuple(lines), _sha256(content), after)

    def _seals_of(self, deletion: Deletion) -> Iterator[Seal]:
        """Seals that may have what is to go: of receipts those that have them, of ids all."""
        last = self.seals.latest()
        if deletion.by == "id":
            yield from (
                self.seals.read(number) for number in range(self.seals.expired() + 1, last + 1)
            )
            return
        found = {name: seal_before(name) for name in deletion.names}
        claims = self._inbox.claims_of([name for name, after in found.items() if after is None])
        # a key may have expired, and what came under it be there
        expired = self.seals.expired() if None in claims.values() else 0
        found |= {name: claim.after if claim else expired for name, claim in claims.items()}
        behind = {name: after for name, after in found.items() if after is not None}
        sealed = {one.number: one for one in self.seals.find_all(behind, last).values()}
        yield from (sealed[number] for number in sorted(sealed))

    def _gone(self, path: str) -> tuple[int, ...]:
        name = gone_file(path)
        data = self._inbox.folder.find(name)
        if data is None:
            return ()
        content = unseal(data, name)
        return checked(_GONE, {"lines": content.get("lines")}, f"{name} names no lines").lines


def _as_sealed(line: int, gone: Sequence[int]) -> int:
    """Number of a line as it was sealed, from that among the lines that are left.

    Examples
    --------
    >>> [_as_sealed(left, (0, 2)) for left in (0, 1, 2)]
    [1, 3, 4]
    """
    for one in sorted(gone):
        line += one <= line
    return line


def _by_receipt(
    names: Sequence[str], sealed: Seal, path: str, content: bytes, gone: Sequence[int]
) -> list[int]:
    wanted, at, found = set(names), 0, set[int]()
    for batch in sealed.batches:
        for kept in batch.kept:
            for piece in kept.pieces:
                if f"{SEALED}/{piece.day.isoformat()}/" in path:
                    lines = range(at, at + piece.documents)
                    at += piece.documents
                    found |= set(lines) if kept.receipt in wanted else set()
    left = [line for line in range(at) if line not in set(gone)]
    return [place for place, line in enumerate(left) if line in found]


def _by_id(
    names: Sequence[str], sealed: Seal, path: str, content: bytes, gone: Sequence[int]
) -> list[int]:
    wanted = set(names)
    if not any(to_json(name)[1:-1] in content for name in names):
        return []
    return [
        place
        for place, line in enumerate(content.splitlines())
        if json.loads(line).get("id") in wanted
    ]


def _without(content: bytes, lines: Sequence[int]) -> bytes:
    gone = set(lines)
    kept = (line for place, line in enumerate(content.split(b"\n")[:-1]) if place not in gone)
    return b"".join(line + b"\n" for line in kept)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_noted(data: bytes | None, identity: str) -> bool:
    content: Mapping[str, object] = {} if data is None else unseal(data, "lines that went")
    return content.get("by") == identity
