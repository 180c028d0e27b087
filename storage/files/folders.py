"""Folder: files under a URL; each file is read and written as a whole."""

from __future__ import annotations

import contextlib
import mimetypes
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

import fsspec
from fsspec.implementations.memory import MemoryFile

from streaming_moments.errors import InvalidInput, ShardError, StoreError
from streaming_moments.storage.files import local_files
from streaming_moments.storage.files.backends import (
    TIMES,
    Backend,
    backend_of,
    remedy_of,
    require_bucket_name,
)
from streaming_moments.storage.files.client_options import unknown_option
from streaming_moments.storage.files.filesystems import (
    one_line,
    open_file_system,
    require_bucket,
    url_of,
)
from streaming_moments.storage.files.silence import NoAnswer
from streaming_moments.storage.files.urls import check_the, require_no_secret, shard_name

CLOCK = "clock"


@dataclass(frozen=True)
class StoredFile:
    """One file in a listing: its path within the listed folder, and its size in bytes.

    `modified` is the time at which the file was written, by the clock of the storage.
    """

    path: str
    size: int
    modified: datetime

    @property
    def is_partial(self) -> bool:
        """Whether the file is a temporary one that was never renamed to its final name."""
        return self.path.endswith(local_files.PARTIAL)


@dataclass(frozen=True)
class Folder:
    """Files under a URL. A process that unpickles a Folder opens its file system again.

    Make one with `at`.

    url : URL of the folder; an absolute path for a local folder
    storage_options : options of the file system; never shown, never stored

    Examples
    --------
    >>> folder = Folder.at("memory://folders")
    >>> folder.write("a.txt", b"sea")
    >>> folder.read("a.txt"), folder.find("b.txt")
    (b'sea', None)
    """

    url: str
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def at(cls, url: str, storage_options: Mapping[str, Any] | None = None) -> Folder:
        """Return the folder at a URL; a local path is made absolute, for use in other processes.

        Raises StoreError if the URL has credentials or lacks a bucket that it needs, if its
        protocol is unknown, or if the package for the protocol is not installed.
        """
        try:
            require_no_secret(url)
            require_bucket_name(url)
        except InvalidInput as error:
            raise StoreError(str(error)) from error
        folder = cls(url.rstrip("/") or url, storage_options)
        return cls(folder._path, storage_options) if folder.is_local else folder

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "storage_options": self.storage_options}

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine's disks."""
        return self._backend.is_local

    @property
    def creates_exclusively(self) -> bool:
        """Whether this storage never lets two writers create the same file."""
        return self._backend.creates != "look"

    def require_bucket(self) -> None:
        """Raise StoreError if the URL names a bucket that does not exist.

        The error names the bucket.
        """
        try:
            require_bucket(self._file_system, self._path, self.url)
        except ShardError as error:
            raise StoreError(str(error)) from error

    @contextlib.contextmanager
    def removed_if_empty(self) -> Iterator[None]:
        """If the block fails, delete a local folder that it created and left empty."""
        new = self.is_local and not os.path.lexists(self.url)
        try:
            yield
        except BaseException:
            # ignore errors of this deletion, because they would hide the error of the block
            with contextlib.suppress(OSError):
                for place, _, _ in os.walk(self.url, topdown=False) if new else ():
                    local_files.remove_empty(place)
            raise

    def find(self, name: str) -> bytes | None:
        """Read the content of a file; None if it does not exist.

        Raises StoreError if the file cannot be read for another reason, which the error names.
        """
        with self._errors("read", name):
            try:
                place, told = self._place(name), self._backend.in_one_request
                content: bytes = self._file_system.cat_file(place, **told)
            except FileNotFoundError:
                return None
            return content

    def read(self, name: str) -> bytes:
        """Read the content of a file.

        Raises StoreError if the file is missing or cannot be read.
        """
        return self.read_all([name])[0]

    def read_all(self, names: Sequence[str], limits: Sequence[int] | None = None) -> list[bytes]:
        """Read the contents of some files, at the same time if the storage can.

        Raises StoreError if a file is missing or cannot be read; the error names the first such
        file.

        names : names of the files
        limits : for each file, the largest number of bytes that are read of it
        """
        contents = []
        for name, content in zip(names, self.find_all(names, limits), strict=True):
            if content is None:
                raise StoreError(f"{self.url}/{name} is missing; restore it from a copy")
            contents.append(content)
        return contents

    def find_all(
        self, names: Sequence[str], limits: Sequence[int] | None = None
    ) -> list[bytes | None]:
        """Read the contents of some files as `read_all` does; None stands for a missing file."""
        starts = [0] * len(names) if limits else None
        places = [self._place(name) for name in names]
        contents: list[bytes | None] = []
        with self._errors("read", f"{len(names)} files"):
            found = self._file_system.cat_ranges(
                places, starts, limits, on_error="return", **self._backend.in_one_request
            )
        for name, content in zip(names, found, strict=True):
            missing = isinstance(content, FileNotFoundError)
            with self._errors("read", name):
                if isinstance(content, BaseException) and not missing:
                    raise content
            contents.append(None if missing else content)
        return contents

    def names(self, name: str) -> list[str]:
        """Return the names of the files and folders in a folder, without those of its subfolders.

        Returns no names if the folder is missing.
        """
        with self._errors("list", name):
            try:
                found = self._file_system.ls(self._place(name), detail=False)
            except FileNotFoundError:
                return []
        return sorted(PurePosixPath(place).name for place in found)

    def sizes(self, name: str) -> dict[str, int]:
        """Return the sizes, in bytes, of all files in a folder and its subfolders, by path.

        Paths are relative to the folder. Partial files, which a killed writer left, are excluded.
        """
        return {file.path: file.size for file in self.files(name) if not file.is_partial}

    def files(self, name: str) -> list[StoredFile]:
        """List all files in a folder and its subfolders, also partial ones, sorted by path.

        Raises StoreError if the folder cannot be listed, or the storage has no modification times.
        """
        with self._errors("list", name):
            root = self._place(name)
            if self.is_local:
                # list the files without fsspec, because fsspec skips folders that cannot be listed
                found = local_files.files_below(root)
            else:
                found = self._file_system.find(root, detail=True)
        start = len(self._file_system._strip_protocol(root)) + 1
        return [
            StoredFile(place[start:], int(info["size"]), self._written(place, info))
            for place, info in sorted(found.items())
        ]

    def shard(self, name: str) -> str:
        """Return the name of a shard that is a file here, as the ledger of a store writes it."""
        return shard_name(url_of(self._file_system, self._place(name)))

    def clock(self) -> datetime:
        """Return the time by the clock of the storage, to compare it with the times in `files`.

        Raises StoreError if no file can be written to the storage, or if it has no modification
        times.
        """
        with self._errors("write", CLOCK):
            place = self._place(CLOCK)
            if self.is_local:
                return datetime.fromtimestamp(local_files.clock(place), UTC)
            self._file_system.pipe_file(place, b"clock")
            info = self._file_system.info(place)
        return self._written(place, info)

    def require_room(self) -> None:
        """Create the folder; raise StoreError if no file can be written now, as on a full disk."""
        if not self.is_local:
            self.clock()
            return
        with self._errors("write", "*"):
            local_files.require_room(self._place(CLOCK))

    def delete(self, names: Sequence[str]) -> None:
        """Delete files, and on local disks also the folders that become empty.

        Raises StoreError if a file cannot be deleted. Missing files are skipped.
        """
        for name in names:
            place = self._place(name)
            with self._errors("delete", name), contextlib.suppress(FileNotFoundError):
                if self.is_local:
                    local_files.remove(place)
                else:
                    self._file_system.rm_file(place)
        if self.is_local:
            above = {parent for name in names for parent in PurePosixPath(name).parents[:-1]}
            for folder in sorted(above, key=lambda parent: -len(parent.parts)):
                with self._errors("delete", str(folder)):
                    local_files.remove_empty(self._place(str(folder)))

    def exists(self, name: str) -> bool:
        """Whether a file exists; raises StoreError if the storage does not answer."""
        with self._errors("look for", name):
            try:
                self._file_system.info(self._place(name))
            except FileNotFoundError:
                return False
            return True

    def write(self, name: str, content: bytes) -> None:
        """Write a file atomically: readers see its whole content or nothing.

        Raises StoreError if the file cannot be written. The error says why.
        """
        with self._errors("write", name):
            if self.is_local:
                local_files.write_whole(self._place(name), content)
            else:
                self._file_system.pipe_file(self._place(name), content, **self._described(name))

    def write_all(self, contents: Mapping[str, bytes]) -> None:
        """Write files by name, each as `write` does, at the same time if the storage can."""
        if self.is_local:
            for name, content in contents.items():
                self.write(name, content)
            return
        alike: dict[tuple[tuple[str, str], ...], dict[str, bytes]] = {}
        for name, content in contents.items():
            told = tuple(self._described(name).items())
            alike.setdefault(told, {})[self._place(name)] = content
        for told, files in alike.items():
            with self._errors("write", f"{len(files)} files"):
                self._file_system.pipe(files, **dict(told))

    def link(self, name: str, source: Folder, other: str) -> bool:
        """Try to give a file of another folder a second name in this one; return whether it worked.

        This works for local files on one disk; see `link_whole`. The file must not be changed
        later, under either name. Raises StoreError if the disk fails.
        """
        if not self.is_local or not source.is_local:
            return False
        with self._errors("write", name):
            return local_files.link_whole(source._place(other), self._place(name))

    def _described(self, name: str) -> dict[str, str]:
        """Return the client's option that gives a file its type; empty if it has no such option."""
        option = self._backend.content_type
        kind = mimetypes.guess_type(name)[0] if option else None
        return {} if kind is None else {option: kind}

    def create(self, name: str, content: bytes) -> None:
        """Write a file atomically unless it exists; of several writers one succeeds.

        Raises FileExistsError if the file exists. If a reply of the storage was lost, this call
        itself may have written that file before. After any other error of the storage, too, the
        file may have been written.
        """
        place, fs, how = self._place(name), self._file_system, self._backend.creates
        if how == "link":
            local_files.create_whole(place, content)
        elif how == "step":
            mine = MemoryFile(fs, place, content)
            # `setdefault` is atomic, so only one writer creates the file
            if fs.store.setdefault(place, mine) is not mine:
                raise FileExistsError(place)
        elif how == "condition":
            whole = {"chunksize": len(content) + 1} if self._backend.in_chunks else {}
            fs.pipe_file(place, content, mode="create", **whole)
        else:
            if self.exists(name):
                raise FileExistsError(place)
            aside = f"{place}.{uuid.uuid4().hex}{local_files.PARTIAL}"
            fs.pipe_file(aside, content)
            fs.mv(aside, place)

    def sync(self, name: str) -> None:
        """Make all files in a folder and its subfolders durable; only local disks need this.

        Raises StoreError if a folder cannot be synced; a power cut may then lose written files.
        """
        if not self.is_local:
            return
        with self._errors("sync", name):
            local_files.sync(self._place(name))

    def sync_nearest(self, name: str) -> None:
        """Make a folder durable as `sync` does; if it is missing, the nearest folder above it."""
        while self.is_local and name and not self.exists(name):
            name = name.rpartition("/")[0]
        if name:
            self.sync(name)

    def explain(self, error: BaseException) -> str:
        """Return the type of an error and the first line of its message; mask storage options.

        The type is left out if a local disk refused the access, if the storage did not answer, or
        if an option is unknown, because the line then says enough.
        """
        text = one_line(error, self.storage_options) if isinstance(error, Exception) else ""
        known = (
            isinstance(error, NoAnswer)
            or unknown_option(error)
            or (isinstance(error, OSError) and text == error.strerror)
        )
        return text if known else f"{type(error).__name__}: {text}"

    @cached_property
    def _opened(self) -> tuple[fsspec.AbstractFileSystem, str]:
        try:
            return open_file_system(self.url, self.storage_options)
        except ShardError as error:
            raise StoreError(str(error)) from error

    @property
    def _file_system(self) -> fsspec.AbstractFileSystem:
        return self._opened[0]

    @property
    def _path(self) -> str:
        return self._opened[1]

    @property
    def _backend(self) -> Backend:
        return backend_of(self._file_system)

    def _written(self, place: str, info: Mapping[str, Any]) -> datetime:
        found = next((info[key] for key in TIMES if info.get(key) is not None), None)
        if isinstance(found, (int, float)):
            return datetime.fromtimestamp(found, UTC)
        if isinstance(found, str):
            found = datetime.fromisoformat(found)
        if not isinstance(found, datetime):
            raise StoreError(
                f"the storage has no modification time for {place}; put the store on a local "
                "disk, s3, gs or az"
            )
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def _place(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}" if name else self._path

    @contextlib.contextmanager
    def _errors(self, doing: str, name: str) -> Iterator[None]:
        try:
            yield
        except StoreError:
            raise
        except IsADirectoryError as error:
            raise StoreError(
                f"{self.url}/{name} is a folder; give the name of a file in it, or another one"
            ) from error
        except NotADirectoryError as error:
            raise StoreError(
                f"{self.url} is not a folder: it is a file, or within a file; {check_the(self.url)}"
            ) from error
        except Exception as error:
            remedy = remedy_of(error) or (
                "check the URL, the space, the permissions and the connection, then run this again"
            )
            raise StoreError(
                f"cannot {doing} {self.url}/{name} ({self.explain(error)}); {remedy}"
            ) from error
