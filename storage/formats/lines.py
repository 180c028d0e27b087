"""Lines of a plain or compressed file, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from streaming_moments.storage.formats.base import (
    BYTE_ORDER_MARK,
    START,
    Position,
    Source,
    refuse_long,
)
from streaming_moments.storage.formats.compressions import opened

_BLOCK_BYTES = 1 << 20


def read_lines(
    source: Source, document_bytes: int, start: Position = START
) -> Iterator[tuple[Position, bytes]]:
    r"""Read lines from a position on, without line ends, each with the position after it.

    A compressed file is always read from its beginning. Raises ShardError for a line longer
    than `document_bytes`, with its number from 1.

    Examples
    --------
    >>> import fsspec
    >>> from streaming_moments.storage.shards import ShardFormat
    >>> memory = fsspec.filesystem("memory")
    >>> memory.pipe("/lines/a.txt", b"law\r\nsea")
    >>> source = Source(memory, "/lines/a.txt", "a.txt", 8, ShardFormat())
    >>> [(first, _), _] = read_lines(source, 5)
    >>> first, list(read_lines(source, 5, first))
    (Position(passed=1, offset=5), [(Position(passed=2, offset=8), b'sea')])
    """
    url, whole = source.url, source.compressed
    passed, offset = (0, 0) if whole else start
    begun: list[bytes] = []
    with opened(source.fs, source.path) as stream:
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


def _bare(line: bytes, number: int) -> bytes:
    line = line.removesuffix(b"\r")
    return line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
