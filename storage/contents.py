"""Marks of the content of a shard, such as its digest, to detect that it has changed."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import fsspec

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.filesystems import FileState
from streaming_moments.storage.shards import Shard, content_mark, fingerprint

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK_BYTES = 1 << 20
# A file is divided into at most this many blocks, and each block has a digest. A worker gets these
# digests with each part of a shard, so they have to be small.
_MOST_BLOCKS = 1 << 14
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class FileContent:
    """Marks of the content of one file.

    `etag` is the storage's own mark of the content, if it has one. Otherwise `digests` holds the
    digest of each block of `block_bytes` bytes, concatenated.
    """

    path: str
    size: int
    etag: str | None
    block_bytes: int = _BLOCK_BYTES
    digests: bytes = b""


@dataclass(frozen=True)
class ShardContent:
    """Marks of the content of a shard.

    mark : digest of the content of the shard, or the storage's own mark of it
    files : marks of its files, sorted by path; empty if `mark` is the storage's own mark
    """

    mark: str
    files: tuple[FileContent, ...] = ()

    def find(self, path: str) -> FileContent | None:
        """Return the marks of the file at a path; None for an unknown path."""
        place = bisect_left(self.files, path, key=lambda file: file.path)
        file = self.files[place] if place < len(self.files) else None
        return file if file is not None and file.path == path else None

    def is_of(self, states: Sequence[FileState]) -> bool:
        """Whether the marks fit the files as they are listed now; True if there are no marks."""
        marked = [(file.path, file.size, file.etag) for file in self.files]
        return not marked or marked == [(s.path, s.size, s.etag) for s in states]


def content_of(shard: Shard, storage_options: Mapping[str, object] | None = None) -> ShardContent:
    """Mark the content of a shard; reads the shard once if the storage gives no ETag.

    Examples
    --------
    >>> fsspec.filesystem("memory").pipe("/contents/a.txt", b"law")
    >>> content = content_of(Shard("memory:///contents/a.txt", 3))
    >>> content.mark[:15], len(content.files)
    ('sha256:8f1f74ad', 1)
    """
    files: list[FileContent] = []

    def marked(fs: fsspec.AbstractFileSystem, state: FileState) -> str:
        size, digests = 0, bytearray()
        length = max(_BLOCK_BYTES, -(-state.size // _MOST_BLOCKS))

        def noted(block: bytes) -> None:
            nonlocal size
            size += len(block)
            digests.extend(_digest(block))

        mark = content_mark(fs, state, length, noted)
        if state.etag is not None:
            size = state.size
        files.append(FileContent(state.path, size, state.etag, length, bytes(digests)))
        return mark

    return ShardContent(fingerprint(shard, storage_options, marked), tuple(files))


@dataclass(frozen=True)
class MarkedFiles:
    """A file system that refuses to read content other than the marked one.

    If `content` has no `files`, nothing is checked here, because the storage's own mark of the
    shard detects changes.
    """

    fs: fsspec.AbstractFileSystem
    content: ShardContent
    url: str

    def open(self, path: str, mode: str = "rb") -> IO[bytes]:
        """Open a file for reading; to read a block whose content has changed raises ShardError."""
        stored: IO[bytes] = self.fs.open(path, mode)
        if not self.content.files:
            return stored
        file = self.content.find(path)
        if file is None:
            stored.close()
            raise changed(self.url)
        return io.BufferedReader(_MarkedFile(stored, file, self.url)) if file.digests else stored

    def find(self, path: str, detail: bool) -> Any:
        """List files as `fs.find` does."""
        return self.fs.find(path, detail=detail)

    def info(self, path: str) -> Any:
        """Return the information on a file as `fs.info` does."""
        return self.fs.info(path)


class _MarkedFile(io.RawIOBase):
    """A file whose bytes are checked against its marks as they are read."""

    def __init__(self, stored: IO[bytes], file: FileContent, url: str) -> None:
        self._stored, self._file, self._url = stored, file, url
        self._place = 0
        self._held: tuple[int, bytes] = (-1, b"")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        self._place = base + offset
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self._place >= self._file.size:
            return 0
        view = memoryview(buffer).cast("B")
        index, start = divmod(self._place, self._file.block_bytes)
        taken = memoryview(self._block(index))[start : start + len(view)]
        view[: len(taken)] = taken
        self._place += len(taken)
        return len(taken)

    def close(self) -> None:
        self._stored.close()
        super().close()

    def _block(self, index: int) -> bytes:
        held, block = self._held
        if held == index:
            return block
        begin = index * self._file.block_bytes
        wanted = min(self._file.block_bytes, self._file.size - begin)
        self._stored.seek(begin)
        block = self._stored.read(wanted)
        digest = self._file.digests[index * _DIGEST_BYTES : (index + 1) * _DIGEST_BYTES]
        if _digest(block) != digest:
            raise changed(self._url)
        self._held = index, block
        return block


def changed(url: str) -> ShardError:
    """Return the error of a shard that changed while it was read."""
    return ShardError(url, "changed while it was read; list and read it again")


def _digest(block: bytes) -> bytes:
    return hashlib.sha256(block).digest()[:_DIGEST_BYTES]
