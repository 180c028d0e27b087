"""Compressions: decompress files, as their suffixes say, in bounded memory."""

from __future__ import annotations

import io
import lzma
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any
from urllib.parse import urlsplit

import fsspec

from streaming_moments.storage.lazy_libraries import pa

_BLOCK_BYTES = 1 << 16
_LONGEST = 6  # bytes of the longest mark at the start of a file that shows its compression
# bytes of memory that xz may use: enough for files of `xz -9`, while others may need up to 4 GiB
_XZ_BYTES = 66 << 20


@dataclass(frozen=True)
class Compression:
    """A compression of whole files, recognised by the suffix of their names.

    `decompressed` turns the stream of a file into the stream of its decompressed content. `begins`
    matches the first bytes of a compressed file.
    """

    suffix: str
    begins: re.Pattern[bytes]
    decompressed: Callable[[IO[bytes]], IO[bytes]]


class _XzContent(io.RawIOBase):
    """Decompressed content of a file, which consists of one or more xz streams."""

    def __init__(self, stored: IO[bytes]) -> None:
        self._stored = stored
        self._decoder = _xz_decoder()

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        content = b""
        while not content:
            more = b""
            if self._decoder.eof:
                # skip zero bytes after a stream; another stream may follow
                more = self._decoder.unused_data.lstrip(b"\0")
                while not more and (block := self._stored.read(_BLOCK_BYTES)):
                    more = block.lstrip(b"\0")
                if not more:
                    return 0
                self._decoder = _xz_decoder()
            elif self._decoder.needs_input:
                more = self._stored.read(_BLOCK_BYTES)
                if not more:
                    raise EOFError("Truncated xz stream")
            try:
                content = self._decoder.decompress(more, len(into))
            except lzma.LZMAError as error:
                raise OSError(
                    f"xz: {error}; use a dictionary of at most 64 MiB, as `xz -9` does"
                ) from error
        into[: len(content)] = content
        return len(content)


def _xz_decoder() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_BYTES)


def _of_xz(stored: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(_XzContent(stored))


def _by_arrow(codec: str, stored: IO[bytes]) -> IO[bytes]:
    return pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec)  # type: ignore[no-any-return]


COMPRESSIONS = (
    Compression(".gz", re.compile(rb"\x1f\x8b"), partial(_by_arrow, "gzip")),
    # files that pzstd writes begin with a skippable frame
    Compression(
        ".zst",
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
        partial(_by_arrow, "zstd"),
    ),
    Compression(".bz2", re.compile(rb"BZh"), partial(_by_arrow, "bz2")),
    Compression(".xz", re.compile(rb"\xfd7zXZ\x00"), _of_xz),
)


def compression_of(url: str) -> Compression | None:
    """Return the compression that the suffix of a URL names; None without one.

    Examples
    --------
    >>> compression_of("/corpus/a.txt.zst").suffix, compression_of("/corpus/a.txt")
    ('.zst', None)
    """
    name = _name_of(url)
    return next((one for one in COMPRESSIONS if name.endswith(one.suffix)), None)


def compression_within(content: bytes) -> Compression | None:
    r"""Return the compression that the first bytes of content show; None without one.

    Examples
    --------
    >>> compression_within(b"\x1f\x8b\x08").suffix, compression_within(b"law")
    ('.gz', None)
    """
    return next((one for one in COMPRESSIONS if one.begins.match(content)), None)


def uncompressed_name(url: str) -> str:
    """Return the name of a file in lower case, without the suffixes of compressions.

    Examples
    --------
    >>> uncompressed_name("https://host/corpus/A.jsonl.gz?as=b.txt")
    'a.jsonl'
    """
    name = _name_of(url)
    for compression in COMPRESSIONS:
        name = name.removesuffix(compression.suffix)
    return name


@contextmanager
def opened(fs: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    """Open the content of a file, decompressed as its suffix says; OSError if this fails."""
    compression = compression_of(path)
    with fs.open(path, "rb") as stored:
        if compression is None:
            yield stored
            return
        try:
            yield compression.decompressed(stored)
        except (OSError, EOFError) as error:
            with fs.open(path, "rb") as again:
                if compression.begins.match(again.read(_LONGEST)):
                    raise
            raise OSError(
                f"its content is not compressed as {compression.suffix}: compress it, or rename it"
            ) from error


def stored_before_line(fs: fsspec.AbstractFileSystem, path: str, passed: int) -> int:
    """Return how many bytes of a file store its first `passed` lines, or slightly more."""
    compression = compression_of(path)
    with fs.open(path, "rb") as stored:
        stream = stored if compression is None else compression.decompressed(stored)
        lines = 0
        while lines < passed and (block := stream.read(_BLOCK_BYTES)):
            lines += block.count(b"\n")
        return int(stored.tell())


def _name_of(url: str) -> str:
    path = urlsplit(url).path if url.startswith(("http://", "https://")) else url
    return path.rsplit("/", 1)[-1].lower()
