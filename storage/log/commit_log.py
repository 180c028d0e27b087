"""Commit log: the append-only log that says which segments make up which version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import TypeAdapter

from streaming_moments.errors import StoreError, StreamingMomentsError
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
_EXPIRED = "was expired, or purged, and is no longer kept"


class CommitConflict(StoreError):
    """Another writer committed the version first."""


@dataclass(frozen=True)
class CommitLog:
    """The commits of a store.

    Parameters
    ----------
    folder : Folder
        The store.
    single_writer : bool
        Whether the user vouches that nobody else writes; needed where the storage would let two
        writers create one file.
    attempts : int
        How often a put is tried that left nothing.
    delay : float
        Scale of the growing random waits between attempts, in seconds.
    """

    folder: Folder
    single_writer: bool = False
    attempts: int = COMMIT_ATTEMPTS
    delay: float = DELAY

    def latest_version(self) -> int | None:
        """The latest version; None without a commit.

        Raises
        ------
        StoreError
            The file of a later version was there and is gone.
        """
        # read before the listing, or a commit in between would seem lost
        reached = version = self._reached()
        if reached < 0 or not self.folder.exists(commit_file(reached)):
            listed = [_FILE.fullmatch(name) for name in self.folder.names(COMMITS)]
            version = max((int(found[1]) for found in listed if found), default=-1)
        # a listing may be older than what it lists, and so may the note
        while self.folder.exists(commit_file(version + 1)):
            version += 1
        if version < reached:
            raise StoreError(
                f"{self.folder.url}/{commit_file(reached)} is missing; restore it from a copy, or "
                f"delete {reached_file()} to go on from version {version}"
            )
        return version if version >= 0 else None

    def read(self, version: int) -> Commit:
        """The commit of a version.

        Raises
        ------
        StoreError
            It is missing, damaged or expired.
        """
        commit = self._parse(version, self.folder.read(commit_file(version)))
        if commit is None:
            raise StoreError(f"version {version} of {self.folder.url} {_EXPIRED}")
        return commit

    def holds(self, commit: Commit) -> bool:
        """Whether the file of a version is that of this commit, expired or not.

        Raises
        ------
        StoreError
            It cannot be read, or is damaged.
        """
        name = commit_file(commit.version)
        data = self.folder.find(name)
        if data is None:
            return False
        content = unseal(data, f"{self.folder.url}/{name}")
        return bool(content.get("transaction") == commit.transaction)

    def existing(self, version: int) -> Commit:
        """The commit of a version as `read`, or an error that says which versions there are.

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
        """The commits from one version to another, the latest first, without those expired.

        Raises
        ------
        StoreError
            One is missing or damaged.
        """
        # a version may be older than what has expired others before it
        latest = self.latest()
        versions = [number for number in range(version, first - 1, -1) if latest.keeps(number)]
        contents = self.folder.read_all([commit_file(number) for number in versions])
        # some may have been expired since
        return tuple(commit for commit in map(self._parse, versions, contents) if commit)

    def probe(self) -> None:
        """Make sure that the storage refuses to create what exists already.

        Raises
        ------
        StoreError
            It does not, or cannot be written at all.
        """
        if not self.folder.creates_exclusively and self.single_writer:
            return
        self._require_writer()
        try:
            self._created(_PROBE, b"probe")
            honoured = not self._created(_PROBE, b"probe again")
        except Exception as error:
            raise StoreError(
                f"{self.folder.url} cannot be written ({self.folder.explain(error)}); check that "
                "the place exists, its permissions and its space"
            ) from error
        if not honoured:
            raise StoreError(
                f"the storage of {self.folder.url} overwrites what it was asked to create, so two "
                "writers would lose commits; use another storage, or single_writer=True if there "
                "is only one"
            )

    def put(self, commit: Commit) -> None:
        """Write a commit unless its version exists.

        Raises
        ------
        CommitConflict
            Another writer has committed the version.
        CreationUnknown
            As `create_once`; or what is there is damaged.
        StoreError
            The put failed time and again, and nothing is written.
        """
        self._require_writer()
        name, content = commit_file(commit.version), seal(commit_to_json(commit))
        try:
            found = create_once(self.folder, name, content, self.attempts, self.delay)
        except CreationUnknown:
            raise
        except StoreError as error:
            raise StoreError(f"{error}; the store is as before") from error.__cause__
        if found is not None:
            try:
                writer = unseal(found, f"{self.folder.url}/{name}").get("transaction")
            except StoreError as damaged:
                raise CreationUnknown(f"{damaged}; nothing was deleted") from damaged
            if writer != commit.transaction:  # it may be ours, and have expired meanwhile
                raise CommitConflict(
                    f"version {commit.version} of {self.folder.url} was committed by another "
                    "writer; open the latest version and run it again"
                )
        # the commit stands without the note, and the next one writes it anew
        with contextlib.suppress(StoreError):
            self.folder.write(reached_file(), seal({"version": commit.version}))

    def extend(self, head: Commit, change: Callable[[Commit], Commit]) -> Commit:
        """Commit what `change` makes of the latest version; after a conflict, of the new one.

        Parameters
        ----------
        head : Commit
            The latest version as far as known.
        change : callable
            From a commit to its successor; raises if there can be none.

        Raises
        ------
        CommitConflict
            Too many other writers came first.
        StoreError
            As `put` and `change` do.
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
        """The latest commit.

        Raises
        ------
        StoreError
            There is none: the creation was cut off.
        """
        version = self.latest_version()
        if version is None:
            raise StoreError(
                f"the creation of {self.folder.url} was cut off before its first commit; "
                "create it again"
            )
        return self.read(version)

    def _reached(self) -> int:
        """A version that was committed, the latest but for lost notes; -1 without a note."""
        data = self.folder.find(reached_file())
        if data is None:
            return -1
        where = f"{self.folder.url}/{reached_file()}"
        return checked(_VERSION, unseal(data, where).get("version"), f"{where} names no version")

    def _changed(self, known: Commit | None, change: Callable[[Commit], Commit]) -> Commit:
        if known is None:
            return change(self.latest())
        try:
            return change(known)
        except StreamingMomentsError:
            # what a stale version refuses the latest may allow
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
                f"the storage of {self.folder.url} cannot refuse a second writer; use a local "
                "disk, s3, gs or az, or create the store with single_writer=True if there is "
                "only one"
            )

    def _parse(self, version: int, data: bytes) -> Commit | None:
        """The commit in a file; None where that says that it was expired."""
        where = f"{self.folder.url}/{commit_file(version)}"
        content = unseal(data, where)
        if is_expired(content):
            return None
        commit = commit_from_json(content, where)
        if commit.version != version:
            raise StoreError(f"{where} is version {commit.version}; restore it from a copy")
        return commit
