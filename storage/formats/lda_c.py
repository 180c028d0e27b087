"""LDA-C: the format of Blei's programs, with a line `M id:count id:count ...` for each document."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import (
    Columns,
    Format,
    Holds,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.formats.cutting import bounded
from streaming_moments.storage.formats.id_chunks import (
    IdChunk,
    IdDocument,
    join_ids,
    require_counts,
    without_zeros,
)
from streaming_moments.storage.formats.lines import read_lines

_LINE = re.compile(rb"\s*\d{1,18}(?:\s+\d{1,18}:\d{1,18})*\s*")


class LdaC(Format):
    """Token ids and their counts, one document on each line; blank lines are skipped."""

    name = "lda-c"
    suffixes = (".ldac", ".lda-c", ".dat")
    grows = True

    def holds(self, columns: Columns) -> Holds:
        return "ids"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[IdChunk, Position]]:
        documents = _documents(source, limits.document_bytes, start)
        for chunk, after in bounded(documents, limits):
            yield without_zeros(join_ids(chunk)), after


def _documents(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[IdDocument, int, Position]]:
    for after, line in read_lines(source, document_bytes, start):
        if not line.strip():
            continue
        place = f"line {after.passed}"
        numbers = numbers_of(line, place, source.url)
        ids, counts = numbers[1::2], numbers[2::2]
        require_counts(ids, counts, place, source.url)
        yield (ids, counts), numbers.nbytes, after


def numbers_of(line: bytes, place: str, url: str) -> NDArray[np.int64]:
    """Parse the numbers of a line, (2 M + 1,) int64: M, then M ids, each with its count.

    Raises ShardError for a line of another format.

    Examples
    --------
    >>> numbers_of(b"2 7:1 9:5", "line 1", "/corpus/ap.dat")
    array([2, 7, 1, 9, 5])
    """
    if _LINE.fullmatch(line) is None:
        raise ShardError(url, f"{place} {_fault(line)}")
    numbers = np.fromstring(line.replace(b":", b" ").decode(), dtype=np.int64, sep=" ")
    if numbers.size != 2 * numbers[0] + 1:
        raise ShardError(
            url,
            f"{place} begins with {numbers[0]} but has {numbers.size // 2} pairs id:count; "
            "write the line again",
        )
    return numbers


def _fault(line: bytes) -> str:
    size, *pairs = line.decode(errors="replace").split()
    if re.fullmatch(r"[0-9]{1,18}", size) is None:
        return f"begins with {size[:40]!r}, expected the number of its ids (LDA-C: M id:count ...)"
    for pair in pairs:
        token_id, _, count = pair.partition(":")
        if re.fullmatch(r"[0-9]{19,}", token_id) is not None:
            return f"has id {token_id[:40]}; ids have at most 18 digits"
        if re.fullmatch(r"[0-9]{1,18}", token_id) is None:
            return f"has {pair[:40]!r}, expected id:count with a whole number >= 0 as the id"
        if re.fullmatch(r"[0-9]{1,18}", count) is None:
            return f"counts id {token_id} {count[:40]!r} times; counts must be whole numbers >= 0"
    return "is not LDA-C; separate its pairs with spaces"
