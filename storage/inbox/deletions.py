"""Deletions: documents that are to be taken out of the shards they were sealed in.

A deletion is asked for by a file, and planned by another, created once, that says which lines of
which shards go and what these held before: whoever applies it may die at any time, and the next
one goes on. The old content lies aside while statistics are counted without it.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import TypeAdapter

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.storage.files.created import create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.inbox.inbox import Inbox
from streaming_moments.storage.inbox.receipts import seal_before
from streaming_moments.storage.inbox.sealing import SealLog
from streaming_moments.storage.inbox.seals import GONE, SEALED, Seal, SealedShard, gone_file
from streaming_moments.storage.inbox.searching import (
    SEARCHES,
    drop_search,
    lines_with_ids,
    search,
)
from streaming_moments.storage.inbox.set_aside import set_aside_file
from streaming_moments.storage.log.schema import Count, Digest, Identity, Path, checked

ASKED, PLANS, DONE, ASIDE = "deletions", "deletion-plans", "deleted", "aside"
_MOST = 1000  # receipts or ids of a deletion

Beat: TypeAlias = Callable[[int, int], None]


def _unheard(done: int, total: int) -> None:
    """Progress that nobody sees."""


@dataclass(frozen=True)
class Deletion:
    """A request to delete documents, by their receipts or by their ids."""

    by: Literal["receipt", "id"]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.names) <= _MOST or not all(self.names):
            raise InvalidInput(
                f"{len(self.names)} names of documents to forget; give 1 to {_MOST}, none empty"
            )


@dataclass(frozen=True)
class ShardDeletion:
    """Lines that a deletion removes from a shard.

    path : in the inbox
    lines : numbers before the deletion, from 0
    before, after : SHA-256 of the old and the new content; `after` is None where nothing is left
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
    """The result of a deletion: how many documents were deleted.

    `version` is the first of the store that does not count them; None where there were none.
    """

    documents: Count
    version: Count | None = None


@dataclass(frozen=True)
class Gone:
    """What a note says of the deleted lines of a shard.

    lines : numbers of the deleted lines, as they were sealed
    left : SHA-256 of what is left; None where nothing is, or in a note of an earlier version
    by : identity of the latest deletion
    """

    lines: tuple[Count, ...] = ()
    left: Digest | None = None
    by: str = ""


_DELETION: TypeAdapter[Deletion] = TypeAdapter(Deletion)
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_DELETED: TypeAdapter[Deleted] = TypeAdapter(Deleted)
_IDENTITY: TypeAdapter[str] = TypeAdapter(Identity)
_GONE: TypeAdapter[Gone] = TypeAdapter(Gone)


@dataclass(frozen=True)
class Deletions:
    """The deletions of an inbox, which take lines from its sealed shards."""

    seals: SealLog

    @property
    def _inbox(self) -> Inbox:
        return self.seals.inbox

    def ask(self, deletion: Deletion) -> str:
        """Record a deletion, and return its identity; from then on it outlasts a power cut."""
        identity = uuid.uuid4().hex
        content = seal(_DELETION.dump_python(deletion, mode="json"))
        create_once(self._inbox.folder, f"{ASKED}/{identity}.json", content)
        self._inbox.folder.sync(ASKED)  # which may be new itself
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

    def plan(self, identity: str, deletion: Deletion, beat: Beat = _unheard) -> Plan:
        """Plan a deletion; once made, the plan stays the same.

        All earlier documents must be in shards: seal them first. `identity` and `deletion` are as
        `waiting` gives them. `beat` is called after each shard searched for ids, with the number of
        its seal and of the last seal. A StoreError is raised if an unfinished deletion has begun
        with the same shard. The next call resumes the search.
        """
        plan = self._planned(identity)
        if plan is None:
            plan = Plan(tuple(self._lines_of(identity, deletion, beat)))
            self._require_free(plan)
            content = seal(_PLAN.dump_python(plan, mode="json"))
            create_once(self._inbox.folder, f"{PLANS}/{identity}.json", content)
            # lost after its shards are cut, another plan would not find what went
            self._inbox.folder.sync(PLANS)
            plan = self._planned(identity) or plan  # another process may have made it first
        return Plan(tuple(one for one in plan.shards if not self._is_purged(one.path)))

    def begun(self) -> dict[str, str]:
        """Shards of deletions that are begun and not done, by path, with the deletion."""
        plans = {identity: self._planned(identity) for identity in self.waiting()}
        return {
            one.path: identity
            for identity, plan in plans.items()
            if plan is not None
            for one in plan.shards
        }

    def unplanned(self) -> list[str]:
        """Deletions that may yet find their documents in any shard, by their identity."""
        return [identity for identity in self.waiting() if self._planned(identity) is None]

    def _require_free(self, plan: Plan) -> None:
        begun = self.begun()
        for one in plan.shards:
            if one.path in begun:
                raise StoreError(
                    f"deletion {begun[one.path]} has begun with {self._inbox.folder.url}/{one.path}"
                    " and is not done; this one goes on after it"
                )

    def _planned(self, identity: str) -> Plan | None:
        name = f"{PLANS}/{identity}.json"
        data, where = self._inbox.folder.find(name), f"{self._inbox.folder.url}/{name}"
        return None if data is None else checked(_PLAN, unseal(data, where), f"{where} is no plan")

    def set_aside(self, one: ShardDeletion) -> tuple[str, str | None]:
        """Copy a shard's old content aside, and write what is left of it in its place.

        Returns the paths of the old content and of the new. The second is None where nothing is
        left: the shard is then unchanged, to be forgotten whole. Content that does not match the
        plan raises a StoreError. May run again after a crash.
        """
        folder = self._inbox.folder
        old = f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"
        found = folder.find(one.path)
        if found is None and one.after is None:
            return old, None  # who deleted it died before the end
        content = folder.read(one.path) if found is None else found
        if _sha256(content) == one.before:
            create_once(folder, old, content)
            folder.sync(old.rpartition("/")[0])
            if one.after is not None:
                folder.write(one.path, _without(content, one.lines))
                folder.sync(one.path.rpartition("/")[0])
        elif _sha256(content) != one.after:
            raise StoreError(
                f"{folder.url}/{one.path} is not what the deletion was planned on; restore it"
            )
        self._is_purged(one.path)
        return old, None if one.after is None else one.path

    def finish(self, identity: str, plan: Plan, version: int | None, beat: Beat = _unheard) -> None:
        """Note that a deletion is done, and delete the old content of its shards."""
        folder = self._inbox.folder
        for place, one in enumerate(plan.shards, 1):
            note_gone(folder, one.path, one.lines, one.after, identity)
            if one.after is None:
                folder.delete([one.path])
            folder.delete([f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"])
            self._drop_begun(one)
            self._is_purged(one.path)
            beat(place, len(plan.shards))
        # what is reported as deleted must not come back after a power cut
        for name in sorted({GONE, ASIDE, *(one.path.rpartition("/")[0] for one in plan.shards)}):
            if plan.shards:
                folder.sync_nearest(name)
        content = seal(_DELETED.dump_python(Deleted(plan.documents, version), mode="json"))
        create_once(folder, f"{DONE}/{identity}.json", content)
        folder.sync(DONE)
        self.withdraw(identity)

    def _drop_begun(self, one: ShardDeletion) -> None:
        """Delete what a process that died had begun to put aside, which holds the old content."""
        aside = f"{ASIDE}/{one.before}"
        begun = [file.path for file in self._inbox.folder.files(aside) if file.is_partial]
        self._inbox.folder.delete([f"{aside}/{path}" for path in begun])

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
            *(name for name in (*plans, SEARCHES) if path.encode() in (folder.find(name) or b"")),
        ]

    def _is_purged(self, path: str) -> bool:
        """Whether a shard was purged; what whoever slept meanwhile has brought back goes again."""
        if self.seals.holds(path):
            return False
        self._inbox.folder.delete(self.files_of(path))
        return True

    def withdraw(self, identity: str) -> None:
        """Delete the request of a deletion that is done."""
        drop_search(self._inbox.folder, identity)
        self._inbox.folder.delete([f"{ASKED}/{identity}.json"])

    def left_of(self, receipt: str, sealed: Seal) -> dict[SealedShard, int]:
        """Shards of a seal in which documents of a receipt still are, and how many."""
        left = {
            shard: len(_lines_of([receipt], sealed, shard.path, self._gone(shard.path)))
            for shard in sealed.shards_of(receipt)
        }
        return {shard: documents for shard, documents in left.items() if documents}

    def _lines_of(self, identity: str, deletion: Deletion, beat: Beat) -> Iterator[ShardDeletion]:
        chosen = self._by_receipt(deletion)
        if deletion.by == "id":
            chosen = self._by_id(identity, deletion, beat)
        for path, content, lines in chosen:
            if lines:
                left = _without(content, lines)
                after = _sha256(left) if left else None
                yield ShardDeletion(path, tuple(lines), _sha256(content), after)

    def _by_receipt(self, deletion: Deletion) -> Iterator[tuple[str, bytes, list[int]]]:
        for sealed in self._seals_of(deletion):
            for shard in sealed.shards:
                content = self._inbox.folder.find(shard.path)
                if content is not None:  # else all of it went before, or was removed
                    gone = self._gone(shard.path)
                    yield shard.path, content, _lines_of(deletion.names, sealed, shard.path, gone)

    def _by_id(
        self, identity: str, deletion: Deletion, beat: Beat
    ) -> Iterator[tuple[str, bytes, list[int]]]:
        # others that wait are searched for in the same pass
        begun = {name.removesuffix(".json") for name in self._inbox.folder.names(PLANS)}
        wanted = {
            one: other.names
            for one, other in self.waiting().items()
            if other.by == "id" and one not in begun
        }
        found = search(self.seals, {**wanted, identity: deletion.names}, beat)[identity]
        for place, path in enumerate(found, 1):
            content = self._inbox.folder.find(path)
            if content is not None:
                yield path, content, lines_with_ids(content, deletion.names)
            beat(place, len(found))

    def _seals_of(self, deletion: Deletion) -> Iterator[Seal]:
        """Seals that have documents of the receipts."""
        last = self.seals.latest()
        found = {name: seal_before(name) for name in deletion.names}
        claims = self._inbox.claims_of([name for name, after in found.items() if after is None])
        # a key may have expired, and what came under it be there
        found |= {name: claim.after if claim else 0 for name, claim in claims.items()}
        behind = {name: after for name, after in found.items() if after is not None}
        sealed = {one.number: one for one in self.seals.find_all(behind, last).values()}
        yield from (sealed[number] for number in sorted(sealed))

    def _gone(self, path: str) -> tuple[int, ...]:
        return read_gone(self._inbox.folder, path).lines


def _lines_of(names: Sequence[str], sealed: Seal, path: str, gone: Sequence[int]) -> list[int]:
    """Numbers of the lines that receipts have in a shard, among those that are left."""
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


def _without(content: bytes, lines: Sequence[int]) -> bytes:
    gone = set(lines)
    kept = (line for place, line in enumerate(content.split(b"\n")[:-1]) if place not in gone)
    return b"".join(line + b"\n" for line in kept)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_gone(folder: Folder, path: str) -> Gone:
    """Read the note of a shard's deleted lines; `path` is that of the shard in the inbox."""
    name = gone_file(path)
    data = folder.find(name)
    if data is None:
        return Gone()
    content = unseal(data, name)
    known = {key: content[key] for key in ("lines", "left", "by") if key in content}
    return checked(_GONE, {"lines": None, **known}, f"{name} names no lines")


def note_gone(
    folder: Folder, path: str, lines: Sequence[int], left: str | None, identity: str
) -> None:
    """Note lines that a deletion removed from a shard; repeating a call changes nothing.

    lines : numbers among the lines that were left before
    left : SHA-256 of what is left now
    identity : of the deletion
    """
    noted = read_gone(folder, path)
    if noted.by == identity:
        return  # noted twice, lines would be counted behind those that went
    gone = sorted({*noted.lines, *(as_sealed(line, noted.lines) for line in lines)})
    folder.write(gone_file(path), seal({"lines": gone, "by": identity, "left": left}))


def documents_left(folder: Folder, shard: SealedShard) -> int:
    """How many documents deletions have left in a shard; raises as `read_gone`."""
    return shard.documents - len(read_gone(folder, shard.path).lines)


def is_as_noted(folder: Folder, shard: SealedShard, digest: str) -> bool:
    """Whether bytes of this SHA-256 are a shard as it was sealed, or what deletions left of it.

    Notes of version 0.2.0 do not say what is left: any bytes beside such a note are.
    """
    if digest == shard.sha256:
        return True
    gone = read_gone(folder, shard.path)
    return bool(gone.lines) and gone.left in (None, digest)


def cut_shards(folder: Folder) -> list[str]:
    """Paths of all shards from which documents were deleted."""
    names = (file.path for file in folder.files(GONE) if not file.is_partial)
    return [name.removesuffix(".json") for name in names]


def as_sealed(line: int, gone: Sequence[int]) -> int:
    """Number of a line as it was sealed, from that among the lines that are left.

    Examples
    --------
    >>> [as_sealed(left, (0, 2)) for left in (0, 1, 2)]
    [1, 3, 4]
    """
    for one in sorted(gone):
        line += one <= line
    return line
