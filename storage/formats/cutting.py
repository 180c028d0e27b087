"""Cutting: joins and cuts documents into the largest chunks within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.storage.formats.base import START, Position, ReadLimits

_Piece = TypeVar("_Piece")
_Document = TypeVar("_Document")


def cut(
    pieces: Iterable[tuple[_Piece, NDArray[np.int64]]], chunk_bytes: int, chunk_documents: int
) -> Iterator[list[tuple[_Piece, int, int]]]:
    """Join and cut pieces, which are sequences of documents, into chunks.

    Each piece comes with the (documents,) int64 sizes of its documents in bytes. A chunk is a list
    of pieces, each with its first document in the chunk and the one after the last. The order is
    preserved, and no chunk is empty. A document above `chunk_bytes` is a chunk of its own.

    Examples
    --------
    >>> list(cut([("a", np.array([3, 3, 4])), ("b", np.array([3]))], 6, 2))
    [[('a', 0, 2)], [('a', 2, 3)], [('b', 0, 1)]]
    """
    held: list[tuple[_Piece, int, int]] = []
    size = documents = 0
    for piece, sizes in pieces:
        ends = np.concatenate([[0], np.cumsum(sizes)])
        first = 0
        while first < sizes.size:
            fitting = int(np.searchsorted(ends, ends[first] + chunk_bytes - size, side="right")) - 1
            end = min(fitting, first + chunk_documents - documents)
            if end <= first and held:
                yield held
                held, size, documents = [], 0, 0
                continue
            end = max(end, first + 1)
            held.append((piece, first, end))
            size, documents = size + int(ends[end] - ends[first]), documents + end - first
            first = end
    if held:
        yield held


def bounded(
    documents: Iterable[tuple[_Document, int, Position]], limits: ReadLimits
) -> Iterator[tuple[list[_Document], Position]]:
    """Join documents into chunks.

    Each document comes with its size in bytes and the position after it.

    Examples
    --------
    >>> documents = [("law", 3, Position(1)), ("sea", 3, Position(2)), ("ship", 4, Position(3))]
    >>> [chunk for chunk, _ in bounded(documents, ReadLimits(batch_bytes=6))]
    [['law', 'sea'], ['ship']]
    """
    chunk: list[_Document] = []
    size, end = 0, START
    for document, nbytes, after in documents:
        if chunk and (size + nbytes > limits.batch_bytes or len(chunk) == limits.batch_documents):
            yield chunk, end
            chunk, size = [], 0
        chunk.append(document)
        size, end = size + nbytes, after
    if chunk:
        yield chunk, end
