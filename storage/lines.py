"""Lines of a file, plain or compressed, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

import fsspec
import pyarrow as pa

from streaming_moments.errors import ShardError
from streaming_moments.storage.shards import compression_of

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BLOCK_BYTES = 1 << 20


class Position(NamedTuple):
    """Place between two documents of a shard, from which reading can go on.

    Parameters
    ----------
    passed : int
        Lines, rows or files before it.
    offset : int
        Byte of the file at which it lies; 0 where nothing can be read from its middle.
    """

    passed: int = 0
    offset: int = 0


START = Position()


@contextmanager
def opened(fs: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    """The content of a file, decompressed as its suffix tells."""
    codec = compression_of(path)
    with fs.open(path, "rb") as stored:
        if codec is None:
            yield stored
        else:
            yield pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec)


def read_lines(
    fs: fsspec.AbstractFileSystem, path: str, url: str, document_bytes: int, start: Position = START
) -> Iterator[tuple[Position, bytes]]:
    r"""Lines from a position on, each with the position after it; ends of lines are cut off.

    Compressed files are read from their beginning all the same.

    Raises
    ------
    ShardError
        A line is longer than `document_bytes`: gives its number, from 1.

    Examples
    --------
    >>> memory = fsspec.filesystem("memory")
    >>> memory.pipe("/lines/a.txt", b"law\r\nsea")
    >>> [(first, _), _] = read_lines(memory, "/lines/a.txt", "a.txt", 5)
    >>> first, list(read_lines(memory, "/lines/a.txt", "a.txt", 5, first))
    (Position(passed=1, offset=5), [(Position(passed=2, offset=8), b'sea')])
    """
    whole = compression_of(path) is not None
    passed, offset = (0, 0) if whole else start
    begun: list[bytes] = []
    with opened(fs, path) as stream:
        if offset:
            stream.seek(offset)
        while block := stream.read(_BLOCK_BYTES):
            first, *others = block.split(b"\n")
            begun.append(first)
            refuse_long(sum(map(len, begun)), f"line {passed + 1}", url, document_bytes)
            if others:
                for line in (b"".join(begun), *others[:-1]):
                    passed, offset = passed + 1, offset + len(line) + 1
                    refuse_long(len(line), f"line {passed}", url, document_bytes)
                    if passed > start.passed:
                        yield Position(passed, 0 if whole else offset), _bare(line, passed)
                begun = others[-1:]
    rest = b"".join(begun)
    refuse_long(len(rest), f"line {passed + 1}", url, document_bytes)
    if rest:
        end = 0 if whole else offset + len(rest)
        yield Position(passed + 1, end), _bare(rest, passed + 1)


def refuse_long(nbytes: int, place: str, url: str, document_bytes: int) -> None:
    """Refuse a document above the limit.

    Raises
    ------
    ShardError
        Names the place, the limit and its option.
    """
    if nbytes > document_bytes:
        raise ShardError(
            url,
            f"{place} is above {document_bytes} bytes; "
            "split the document, or raise --max-document-bytes",
        )


def decoded(content: bytes, place: str, url: str) -> str:
    """The text of a document.

    Raises
    ------
    ShardError
        It is not UTF-8: says where.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise ShardError(
            url,
            f"{place} is not UTF-8: byte {error.start} of it is 0x{byte:02x}; "
            "convert the shard to UTF-8",
        ) from error


def _bare(line: bytes, number: int) -> bytes:
    line = line.removesuffix(b"\r")
    return line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
