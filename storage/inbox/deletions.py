"""Deletions: remove documents from the sealed shards that hold them.

One file records the request. A second file, created once, holds the plan: the lines to remove from
each shard, and hashes of the old and new content. If a process dies, the next one continues the
plan. The old content stays in the folder `aside` until the statistics no longer contain its lines.
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
_MOST = 1000  # a deletion names at most this many receipts or ids

Beat: TypeAlias = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Deletion:
    """A request to delete documents, by their receipts or by their ids."""

    by: Literal["receipt", "id"]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        kind = f"{self.by}s"
        if not all(self.names):
            raise InvalidInput(f"one of the {kind} is empty; leave it out")
        if not 0 < len(self.names) <= _MOST:
            raise InvalidInput(
                f"the deletion has {len(self.names):,} {kind}; give 1 to {_MOST:,} of them"
            )


@dataclass(frozen=True)
class ShardDeletion:
    """Lines that a deletion removes from a shard.

    path : path of the shard in the inbox
    lines : numbers of the lines, from 0, before the deletion
    before, after : SHA-256 of the old and new content; None if no line remains
    """

    path: Path
    lines: tuple[Count, ...]
    before: Digest
    after: Digest | None


@dataclass(frozen=True)
class Plan:
    """Plan of a deletion: the changes of each shard."""

    shards: tuple[ShardDeletion, ...] = ()

    @property
    def documents(self) -> int:
        """Number of documents to delete."""
        return sum(len(one.lines) for one in self.shards)


@dataclass(frozen=True)
class Deleted:
    """Result of a deletion: the number of deleted documents.

    `version` is the first version of the store without these documents; None if nothing had to be
    deleted.
    """

    documents: Count
    version: Count | None = None


@dataclass(frozen=True)
class Gone:
    """Note about the deleted lines of a shard.

    lines : numbers of the deleted lines in the shard as it was sealed
    left : SHA-256 of the remaining lines; None if no line remains, or if an earlier version of the
        package wrote the note
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
    """Deletions of an inbox: they remove lines from its sealed shards."""

    seals: SealLog

    @property
    def _inbox(self) -> Inbox:
        return self.seals.inbox

    def ask(self, deletion: Deletion) -> str:
        """Record a deletion durably and return its identity."""
        identity = uuid.uuid4().hex
        content = seal(_DELETION.dump_python(deletion, mode="json"))
        create_once(self._inbox.folder, f"{ASKED}/{identity}.json", content)
        self._inbox.folder.sync(ASKED)  # sync the folder, as it may be new
        return identity

    def waiting(self) -> dict[str, Deletion]:
        """Return pending deletions by identity, those with a plan first.

        A plan depends on the shards that earlier deletions leave, so planned deletions go first.
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
                found[name.removesuffix(".json")] = checked(
                    _DELETION, content, f"{where} is not a valid deletion"
                )
        return found

    def is_waiting(self, identity: str) -> bool:
        """Whether a deletion is pending."""
        return self._inbox.folder.exists(f"{ASKED}/{identity}.json")

    def done(self, identity: str) -> Deleted | None:
        """Return the result of a deletion; None if it is pending or was never requested."""
        data = self._inbox.folder.find(f"{DONE}/{checked(_IDENTITY, identity, 'no identity')}.json")
        where = f"{self._inbox.folder.url}/{DONE}/{identity}.json"
        return (
            None if data is None else checked(_DELETED, unseal(data, where), f"{where} is invalid")
        )

    def plan(self, identity: str, deletion: Deletion, beat: Beat = _silent) -> Plan:
        """Plan a deletion. A repeated call returns the same plan.

        Seal all pending batches first, as a plan covers only sealed shards. `identity` and
        `deletion` are from `waiting`. `beat` is called after each shard searched for ids, with the
        numbers of its seal and of the last seal. If the search is interrupted, the next call
        resumes it. Raises StoreError if an unfinished deletion changes one of the shards.
        """
        plan = self._planned(identity)
        if plan is None:
            plan = Plan(tuple(self._lines_of(identity, deletion, beat)))
            self._require_free(plan)
            content = seal(_PLAN.dump_python(plan, mode="json"))
            create_once(self._inbox.folder, f"{PLANS}/{identity}.json", content)
            # make the plan durable before shards change, as a later plan would miss deleted lines
            self._inbox.folder.sync(PLANS)
            plan = self._planned(identity) or plan  # another process may have planned it first
        return Plan(tuple(one for one in plan.shards if not self._is_purged(one.path)))

    def begun(self) -> dict[str, str]:
        """Map the path of each shard that a pending deletion changes to the deletion's identity."""
        plans = {identity: self._planned(identity) for identity in self.waiting()}
        return {
            one.path: identity
            for identity, plan in plans.items()
            if plan is not None
            for one in plan.shards
        }

    def unplanned(self) -> list[str]:
        """Return identities of pending deletions without a plan, which may change any shard."""
        return [identity for identity in self.waiting() if self._planned(identity) is None]

    def _require_free(self, plan: Plan) -> None:
        begun = self.begun()
        for one in plan.shards:
            if one.path in begun:
                raise StoreError(
                    f"deletion {begun[one.path]} is changing {self._inbox.folder.url}/{one.path}; "
                    "this deletion continues after that one is done"
                )

    def _planned(self, identity: str) -> Plan | None:
        name = f"{PLANS}/{identity}.json"
        data, where = self._inbox.folder.find(name), f"{self._inbox.folder.url}/{name}"
        return (
            None
            if data is None
            else checked(_PLAN, unseal(data, where), f"{where} is not a valid plan")
        )

    def set_aside(self, one: ShardDeletion) -> tuple[str, str | None]:
        """Copy the old content of a shard aside, and replace it by the remaining lines.

        Returns the path of the copy, and the path of the shard. If no line remains, it returns None
        for the shard: the shard is unchanged, and the caller removes it from the store. Content
        that does not match the plan raises a StoreError. After a crash, a caller can repeat the
        call.
        """
        folder = self._inbox.folder
        old = f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"
        found = folder.find(one.path)
        if found is None and one.after is None:
            return old, None  # an earlier process deleted the file and died before it finished
        content = folder.read(one.path) if found is None else found
        if _sha256(content) == one.before:
            create_once(folder, old, content)
            folder.sync(old.rpartition("/")[0])
            if one.after is not None:
                folder.write(one.path, _without(content, one.lines))
                folder.sync(one.path.rpartition("/")[0])
        elif _sha256(content) != one.after:
            raise StoreError(
                f"{folder.url}/{one.path} changed after the deletion was planned; restore it from "
                "a copy"
            )
        self._is_purged(one.path)
        return old, None if one.after is None else one.path

    def finish(self, identity: str, plan: Plan, version: int | None, beat: Beat = _silent) -> None:
        """Record that a deletion is done, and delete the old content of its shards."""
        folder = self._inbox.folder
        for place, one in enumerate(plan.shards, 1):
            note_gone(folder, one.path, one.lines, one.after, identity)
            if one.after is None:
                folder.delete([one.path])
            folder.delete([f"{ASIDE}/{one.before}/{one.path.rpartition('/')[2]}"])
            self._drop_begun(one)
            self._is_purged(one.path)
            beat(place, len(plan.shards))
        # sync before returning: documents reported as deleted must not reappear after a power cut
        for name in sorted({GONE, ASIDE, *(one.path.rpartition("/")[0] for one in plan.shards)}):
            if plan.shards:
                folder.sync_nearest(name)
        content = seal(_DELETED.dump_python(Deleted(plan.documents, version), mode="json"))
        create_once(folder, f"{DONE}/{identity}.json", content)
        folder.sync(DONE)
        self.withdraw(identity)

    def _drop_begun(self, one: ShardDeletion) -> None:
        """Delete partial copies of old content that a dead process left."""
        aside = f"{ASIDE}/{one.before}"
        begun = [file.path for file in self._inbox.folder.files(aside) if file.is_partial]
        self._inbox.folder.delete([f"{aside}/{path}" for path in begun])

    def files_of(self, path: str) -> list[str]:
        """Return the paths of a shard and of all files with its present or deleted documents.

        Files that only name the shard are included.
        """
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
        """Whether a shard was purged; if so, delete files that a slow process wrote later."""
        if self.seals.holds(path):
            return False
        self._inbox.folder.delete(self.files_of(path))
        return True

    def withdraw(self, identity: str) -> None:
        """Delete the request of a completed deletion."""
        drop_search(self._inbox.folder, identity)
        self._inbox.folder.delete([f"{ASKED}/{identity}.json"])

    def left_of(self, receipt: str, sealed: Seal) -> dict[SealedShard, int]:
        """Count the documents of a receipt that are left in each shard of a seal; omit zeros."""
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
                if content is not None:  # a missing shard was deleted or has expired
                    gone = self._gone(shard.path)
                    yield shard.path, content, _lines_of(deletion.names, sealed, shard.path, gone)

    def _by_id(
        self, identity: str, deletion: Deletion, beat: Beat
    ) -> Iterator[tuple[str, bytes, list[int]]]:
        # one pass searches for the ids of all pending deletions
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
        """Yield seals that have documents of the receipts that a deletion names."""
        last = self.seals.latest()
        found = {name: seal_before(name) for name in deletion.names}
        claims = self._inbox.claims_of([name for name, after in found.items() if after is None])
        # search all seals for a receipt without a claim: a claim may expire before its documents
        found |= {name: claim.after if claim else 0 for name, claim in claims.items()}
        behind = {name: after for name, after in found.items() if after is not None}
        sealed = {one.number: one for one in self.seals.find_all(behind, last).values()}
        yield from (sealed[number] for number in sorted(sealed))

    def _gone(self, path: str) -> tuple[int, ...]:
        return read_gone(self._inbox.folder, path).lines


def _lines_of(names: Sequence[str], sealed: Seal, path: str, gone: Sequence[int]) -> list[int]:
    """Return the line numbers of some receipts in a shard after its lines `gone` were removed."""
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
    """Read the note about the deleted lines of the shard at `path` in the inbox."""
    name = gone_file(path)
    data = folder.find(name)
    if data is None:
        return Gone()
    content = unseal(data, name)
    known = {key: content[key] for key in ("lines", "left", "by") if key in content}
    return checked(_GONE, {"lines": None, **known}, f"{name} is not a valid note")


def note_gone(
    folder: Folder, path: str, lines: Sequence[int], left: str | None, identity: str
) -> None:
    """Record which lines a deletion removed from a shard; repeating a call changes nothing.

    lines : numbers of the removed lines in the shard as it was before this deletion
    left : SHA-256 of the lines that remain after this deletion
    identity : identity of the deletion
    """
    noted = read_gone(folder, path)
    if noted.by == identity:
        # A call with this deletion was made before. `lines` are numbers from before the deletion,
        # so they must not be shifted a second time.
        return
    gone = sorted({*noted.lines, *(as_sealed(line, noted.lines) for line in lines)})
    folder.write(gone_file(path), seal({"lines": gone, "by": identity, "left": left}))


def documents_left(folder: Folder, shard: SealedShard) -> int:
    """Return the number of documents that remain in a shard; raises the errors of `read_gone`."""
    return shard.documents - len(read_gone(folder, shard.path).lines)


def is_as_noted(folder: Folder, shard: SealedShard, digest: str) -> bool:
    """Whether `digest` is the SHA-256 of a shard as sealed, or after its recorded deletions.

    Notes of version 0.2.0 have no hash of the remaining lines, so any hash matches them.
    """
    if digest == shard.sha256:
        return True
    gone = read_gone(folder, shard.path)
    return bool(gone.lines) and gone.left in (None, digest)


def cut_shards(folder: Folder) -> list[str]:
    """Return the paths of all shards from which documents were deleted."""
    names = (file.path for file in folder.files(GONE) if not file.is_partial)
    return [name.removesuffix(".json") for name in names]


def as_sealed(line: int, gone: Sequence[int]) -> int:
    """Return the number that a line had when its shard was sealed.

    `line` is its number after the lines `gone` were removed.

    Examples
    --------
    >>> [as_sealed(left, (0, 2)) for left in (0, 1, 2)]
    [1, 3, 4]
    """
    for one in sorted(gone):
        line += one <= line
    return line
