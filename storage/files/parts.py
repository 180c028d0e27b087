"""Parts: shards that are one part of a file or folder; the end of the name marks the part.

`URL#bytes=N` is the part appended to a file that had N bytes when it was counted. `URL#document` is
one file of a folder of texts.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import fsspec

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# The name of a shard from standard input is this prefix, followed by a hash of its content.
STANDARD_INPUT = "stdin://"
DOCUMENT = "#document"
FROM_BYTE = "#bytes="
# End of the names of shards that a service makes of the documents in its inbox.
SEALED_NAME = ".sealed.jsonl"
_PART = re.compile(rf"(?:{FROM_BYTE}(\d+)|{DOCUMENT})\Z")


def whole_of(url: str) -> str:
    """Return the URL of the file that a part belongs to; other URLs stay unchanged.

    Examples
    --------
    >>> whole_of("/logs/a.jsonl#bytes=120"), whole_of("/texts/a.txt#document"), whole_of("/a#1.txt")
    ('/logs/a.jsonl', '/texts/a.txt', '/a#1.txt')
    """
    return _PART.sub("", url)


def given_name(url: str) -> str:
    """Return the part of a URL that a user chose, without marks of parts or hashes of content.

    Examples
    --------
    >>> given_name("/logs/a.jsonl#bytes=120"), given_name("stdin://20261121.txt")
    ('/logs/a.jsonl', '')
    """
    return "" if url.startswith(STANDARD_INPUT) else whole_of(url)


def first_byte(url: str) -> int | None:
    """Return the byte of the file at which an appended part begins; None for other URLs."""
    found = _PART.search(url)
    return int(found[1]) if found and found[1] else None


def part_from(url: str, first: int) -> str:
    """Return the URL of the part of a file that begins at byte `first`."""
    return f"{url}{FROM_BYTE}{first}"


@dataclass(frozen=True)
class PartOfFile:
    """A file system that shows only `size` bytes of a file, from byte `first` on."""

    fs: fsspec.AbstractFileSystem
    first: int
    size: int

    def open(self, path: str, mode: str = "rb") -> IO[bytes]:
        """Open the part for reading."""
        return io.BufferedReader(_Part(self.fs.open(path, mode), self.first, self.size))

    def info(self, path: str) -> dict[str, Any]:
        """Return the file's information, with the part's present size, and without ETag and time.

        Additions to the file change its ETag and time, but not the part.
        """
        found = self.fs.info(path)
        size = max(0, min(self.size, int(found.get("size") or 0) - self.first))
        return {"name": found["name"], "type": found["type"], "size": size}


class _Part(io.RawIOBase):
    """The `size` bytes of a seekable stream from byte `first` on."""

    def __init__(self, stored: IO[bytes], first: int, size: int) -> None:
        self._stored, self._first, self._size = stored, first, size
        self._stored.seek(first)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stored.tell() - self._first

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self._size}[whence]
        return self._stored.seek(self._first + base + offset) - self._first

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        content = self._stored.read(max(0, min(len(view), self._size - self.tell())))
        view[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._stored.close()
        super().close()
