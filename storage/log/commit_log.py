"""Commit log: the append-only list of versions and their segments."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError, StreamingMomentsError
from streaming_moments.storage.files.backends import remedy_of
from streaming_moments.storage.files.created import CreationUnknown, create_once
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.files.retries import (
    COMMIT_ATTEMPTS,
    CONFLICT_ATTEMPTS,
    DELAY,
    retrying,
)
from streaming_moments.storage.files.sealed import seal, unseal
from streaming_moments.storage.log.commit_json import commit_from_json, commit_to_json, is_expired
from streaming_moments.storage.log.commits import Commit
from streaming_moments.storage.log.layout import COMMITS, commit_file, reached_file
from streaming_moments.storage.log.schema import Count, checked

_FILE = re.compile(r"(\d{20})\.json")
_PROBE = f"{COMMITS}/probe"
_VERSION: TypeAdapter[int] = TypeAdapter(Count)
_EXPIRED = "has expired or was purged"


class CommitConflict(StoreError):
    """Another writer has committed a version of the same number first."""


@dataclass(frozen=True)
class CommitLog:
    """The commits of a store.

    single_writer : whether the user guarantees that there is a single writer. Required if the
        storage lets two writers create the same file.
    attempts : how many times `put` tries to write a commit, as long as nothing was written
    delay : upper bound, in seconds, on the first random wait between attempts; the bound doubles
        at each attempt
    """

    folder: Folder
    single_writer: bool = False
    attempts: int = COMMIT_ATTEMPTS
    delay: float = DELAY

    def latest_version(self) -> int | None:
        """Return the latest version; None without a commit.

        Raises StoreError if the file of a version that existed before is missing.
        """
        # read the note of the latest version before the listing, or a commit made in between would
        # seem lost
        reached = version = self._reached()
        if reached < 0 or not self.folder.exists(commit_file(reached)):
            listed = [_FILE.fullmatch(name) for name in self.folder.names(COMMITS)]
            version = max((int(found[1]) for found in listed if found), default=-1)
        # Both the listing and the note may be outdated, so look for later versions. `find` reads
        # the file, because `exists` of an object store would also look for a folder of this name.
        while self.folder.find(commit_file(version + 1)) is not None:
            version += 1
        if version < reached:
            raise StoreError(
                f"{self.folder.url}/{commit_file(reached)} is missing; restore it from a copy, or "
                f"delete {reached_file()} to continue from version {version}"
            )
        return version if version >= 0 else None

    def read(self, version: int) -> Commit:
        """Read the commit of a version.

        Raises StoreError if the commit is missing, damaged or expired.
        """
        commit = self._parse(version, self.folder.read(commit_file(version)))
        if commit is None:
            raise StoreError(f"version {version} of {self.folder.url} {_EXPIRED}")
        return commit

    def holds(self, commit: Commit) -> bool:
        """Whether the file of a version holds this commit, expired or not.

        Raises StoreError if the file cannot be read, or is damaged.
        """
        return self.has(commit.version, commit.transaction)

    def has(self, version: int, transaction: str) -> bool:
        """Whether a transaction made the commit of a version; raises the errors of `holds`."""
        name = commit_file(version)
        data = self.folder.find(name)
        if data is None:
            return False
        content = unseal(data, f"{self.folder.url}/{name}")
        return bool(content.get("transaction") == transaction)

    def existing(self, version: int) -> Commit:
        """Read the commit of a version; an error names the existing versions.

        -1 is the latest version, -2 the one before it.
        """
        latest = self.latest()
        if version < 0 <= latest.version + 1 + version:
            version += latest.version + 1
        if not latest.keeps(version):
            has = ", ".join(
                f"{first} to {last}" if first < last or not latest.expired else f"{first}"
                for first, last in latest.kept
            )
            what = f"version {version} of {self.folder.url} {_EXPIRED}"
            if not 0 <= version <= latest.version:
                what = f"{self.folder.url} has no version {version}"
            raise StoreError(f"{what}; it has {has}")
        return self.read(version)

    def history(self, version: int, first: int = 0) -> tuple[Commit, ...]:
        """Read the commits from one version to another, the latest first, without expired ones.

        Raises StoreError if a commit is missing or damaged.
        """
        # read the latest commit, because only it lists all versions that have expired
        latest = self.latest()
        versions = [number for number in range(version, first - 1, -1) if latest.keeps(number)]
        contents = self.folder.read_all([commit_file(number) for number in versions])
        # leave out versions that have expired since the latest commit was read
        return tuple(commit for commit in map(self._parse, versions, contents) if commit)

    def probe(self) -> None:
        """Check that the storage refuses to create an existing file.

        Raises StoreError if the storage overwrites files, or cannot be written.
        """
        if not self.folder.creates_exclusively and self.single_writer:
            return
        self._require_writer()
        try:
            self._created(_PROBE, b"probe")
            honoured = not self._created(_PROBE, b"probe again")
        except Exception as error:
            remedy = remedy_of(error) or "check that the place exists, and its permissions"
            raise StoreError(
                f"{self.folder.url} cannot be written ({self.folder.explain(error)}); {remedy}"
            ) from error
        if not honoured:
            raise StoreError(
                f"the storage of {self.folder.url} overwrites a file that it should only create, "
                "so two writers could lose commits; use another storage, or single_writer=True if "
                "there is a single writer"
            )

    def put(self, commit: Commit) -> None:
        """Write a commit unless its version exists.

        Raises CommitConflict if another writer has committed the version. Raises CreationUnknown if
        the file may or may not have been created, or if the existing file is damaged. Raises
        StoreError if all attempts failed, and nothing was written.
        """
        self._require_writer()
        name, content = commit_file(commit.version), seal(commit_to_json(commit))
        try:
            found = create_once(self.folder, name, content, self.attempts, self.delay)
        except CreationUnknown:
            raise
        except StoreError as error:
            raise StoreError(f"{error}; the store is unchanged") from error.__cause__
        if found is not None:
            try:
                writer = unseal(found, f"{self.folder.url}/{name}").get("transaction")
            except StoreError as damaged:
                raise CreationUnknown(f"{damaged}; nothing was deleted") from damaged
            # if the transactions are equal, the stored commit is this one; it may have expired
            if writer != commit.transaction:
                raise CommitConflict(
                    f"another writer committed version {commit.version} of {self.folder.url}; open "
                    "the latest version and run the command again"
                )
        # ignore an error: the commit is valid without the note of its number, and the next commit
        # writes the note again
        with contextlib.suppress(StoreError):
            self.folder.write(reached_file(), seal({"version": commit.version}))

    def extend(self, head: Commit, change: Callable[[Commit], Commit]) -> Commit:
        """Apply `change` to the latest commit, and commit the result; repeat both after a conflict.

        Raises CommitConflict if too many other writers committed first. Raises StoreError if `put`
        or `change` does.

        head : the latest version that the caller has read
        change : makes the successor of a commit, or raises an error
        """
        heads = iter([head])

        def attempt() -> Commit:
            successor = self._changed(next(heads, None), change)
            self.put(successor)
            return successor

        again = retrying(
            lambda found: isinstance(found, CommitConflict), CONFLICT_ATTEMPTS, self.delay
        )
        return again(attempt)

    def latest(self) -> Commit:
        """Return the latest commit.

        Raises StoreError if there are no commits, because the creation of the store was
        interrupted.
        """
        version = self.latest_version()
        if version is None:
            raise StoreError(
                f"the creation of {self.folder.url} was interrupted before its first commit; "
                "create the store again"
            )
        return self.read(version)

    def _reached(self) -> int:
        """Read the note of the latest version, which may be outdated; -1 without a note."""
        data = self.folder.find(reached_file())
        if data is None:
            return -1
        where = f"{self.folder.url}/{reached_file()}"
        return checked(
            _VERSION, unseal(data, where).get("version"), f"{where} has no valid version"
        )

    def _changed(self, known: Commit | None, change: Callable[[Commit], Commit]) -> Commit:
        if known is None:
            return change(self.latest())
        try:
            return change(known)
        except StreamingMomentsError:
            # try the latest version, which may allow the change that the known version refuses
            latest = self.latest()
            if latest.transaction == known.transaction:
                raise
            return change(latest)

    def _created(self, name: str, content: bytes) -> bool:
        try:
            self.folder.create(name, content)
        except FileExistsError:
            return False
        return True

    def _require_writer(self) -> None:
        if not (self.folder.creates_exclusively or self.single_writer):
            raise StoreError(
                f"the storage of {self.folder.url} does not support atomic create-if-absent; use "
                "a local disk, s3, gs or az, or create the store with single_writer=True if there "
                "is a single writer"
            )

    def _parse(self, version: int, data: bytes) -> Commit | None:
        """Decode the commit in a file; None if it has expired."""
        where = f"{self.folder.url}/{commit_file(version)}"
        content = unseal(data, where)
        if is_expired(content):
            return None
        commit = commit_from_json(content, where)
        if commit.version != version:
            raise StoreError(
                f"{where} holds version {commit.version} instead of its own; restore it from a copy"
            )
        return commit
