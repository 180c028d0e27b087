"""Chunks of documents given as token ids, checked and cut as whole arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import Position, ReadLimits, refuse_long
from streaming_moments.storage.formats.cutting import cut

IdDocument = tuple[NDArray[np.int64], NDArray[np.int64] | None]

_LARGEST_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class IdChunk:
    """Documents as token ids and optional counts, in three arrays that all documents share.

    Parameters
    ----------
    offsets : (documents + 1,) int64
        Start of each document's entries.
    ids : (entries,) int64
        Token ids, at least 0; a document may repeat an id.
    counts : (entries,) int64 or None
        Numbers of occurrences, at least 1; None means 1 for each entry.

    Examples
    --------
    >>> chunk = IdChunk(np.array([0, 2, 3]), np.array([7, 9, 9]), None)
    >>> len(chunk), chunk[1]
    (2, (array([9]), None))
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    counts: NDArray[np.int64] | None

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, place: int) -> IdDocument:
        one = self.part(place, place + 1)
        return one.ids, one.counts

    def part(self, first: int, end: int) -> IdChunk:
        """Return the documents from `first` to before `end`, which share memory with the chunk.

        Examples
        --------
        >>> IdChunk(np.array([0, 2, 3]), np.array([7, 9, 9]), None).part(1, 2).ids
        array([9])
        """
        entries = slice(self.offsets[first], self.offsets[end])
        counts = None if self.counts is None else self.counts[entries]
        return IdChunk(self.offsets[first : end + 1] - entries.start, self.ids[entries], counts)


def join_ids(documents: Sequence[IdDocument]) -> IdChunk:
    """Join documents into one chunk; a document is given by its ids, and their counts or None.

    Examples
    --------
    >>> chunk = join_ids([(np.array([7, 9]), None), (np.array([9]), None)])
    >>> chunk.offsets, chunk.ids, chunk.counts
    (array([0, 2, 3]), array([7, 9, 9]), None)
    """
    return _concatenated([ids.size for ids, _ in documents], documents)


def require_counts(
    ids: NDArray[np.int64], counts: NDArray[np.int64] | None, place: str, url: str
) -> None:
    """Raise ShardError for a document with an id or a count out of range."""
    if ids.size and ids.min() < 0:
        raise ShardError(url, f"{place} has id {ids.min()}; ids must be whole numbers >= 0")
    if counts is None or not counts.size:
        return
    if counts.min() < 0 or counts.max() > _LARGEST_COUNT:
        wrong = counts.min() if counts.min() < 0 else counts.max()
        token_id = ids[int(np.argmax(counts == wrong))]
        raise ShardError(
            url,
            f"{place} counts id {token_id} {wrong} times; "
            f"counts must be whole numbers from 0 to {_LARGEST_COUNT}",
        )
    if counts.sum() > _LARGEST_COUNT:
        raise ShardError(
            url,
            f"{place} has {counts.sum()} tokens; split it into documents of at most "
            f"{_LARGEST_COUNT} tokens",
        )


def require_sound(
    lists: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    sizes: NDArray[np.int64],
    passed: int,
    url: str,
    document_bytes: int,
) -> None:
    """Raise ShardError for a row that is too large, or whose ids or counts are invalid.

    `lists` holds the offsets and values of the ids, then those of the counts if there are any.
    """
    if not _are_sound(lists, sizes, document_bytes):
        _refuse_first(lists, passed, url, document_bytes)


def without_zeros(chunk: IdChunk) -> IdChunk:
    """Return the documents without ids of count 0.

    Examples
    --------
    >>> chunk = IdChunk(np.array([0, 2, 3]), np.array([7, 8, 9]), np.array([1, 0, 2]))
    >>> without_zeros(chunk).offsets, without_zeros(chunk).ids
    (array([0, 1, 2]), array([7, 9]))
    """
    if chunk.counts is None or chunk.counts.all():
        return chunk
    present = chunk.counts > 0
    offsets = np.concatenate([[0], np.cumsum(present)])[chunk.offsets]
    return IdChunk(offsets, chunk.ids[present], chunk.counts[present])


def in_chunks(
    pieces: Iterable[tuple[IdChunk, NDArray[np.int64], Position]], limits: ReadLimits
) -> Iterator[tuple[IdChunk, Position]]:
    """Join and cut pieces into the largest chunks within limits, each with the position after it.

    A piece consists of documents, their (documents,) int64 stored sizes in bytes, and the position
    before the first. A document above `limits.batch_bytes` is a chunk of its own.

    Examples
    --------
    >>> chunk, sizes = IdChunk(np.array([0, 2, 3]), np.array([7, 9, 9]), None), np.array([16, 8])
    >>> chunks = in_chunks([(chunk, sizes, Position())] * 2, ReadLimits(batch_bytes=24))
    >>> [(chunk.ids.tolist(), after.passed) for chunk, after in chunks]
    [([7, 9, 9], 2), ([7, 9, 9], 2)]
    """
    sized = (((piece, before), sizes) for piece, sizes, before in pieces)
    for held in cut(sized, limits.batch_bytes, limits.batch_documents):
        (_, before), _, end = held[-1]
        parts = [piece.part(first, last) for (piece, _), first, last in held]
        yield _joined(parts), Position(before.passed + end)


def _joined(chunks: Sequence[IdChunk]) -> IdChunk:
    if len(chunks) == 1:
        return chunks[0]
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    return _concatenated(lengths, [(chunk.ids, chunk.counts) for chunk in chunks])


def _concatenated(lengths: ArrayLike, entries: Sequence[IdDocument]) -> IdChunk:
    """Make a chunk of documents; `lengths` holds the number of entries of each document."""
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    counted = [counts for _, counts in entries if counts is not None]
    counts = np.concatenate(counted) if counted else None
    return IdChunk(offsets, np.concatenate([ids for ids, _ in entries]), counts)


def _are_sound(
    lists: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    sizes: NDArray[np.int64],
    document_bytes: int,
) -> bool:
    """Whether all rows are valid, so that `_refuse_first` would find nothing to refuse."""
    offsets, ids = lists[0]
    if sizes.max(initial=0) > document_bytes or ids.min(initial=0) < 0:
        return False
    for others, counts in lists[1:]:
        if not np.array_equal(others, offsets):
            return False
        if counts.min(initial=0) < 0 or counts.max(initial=0) > _LARGEST_COUNT:
            return False
        # check each document only if all together have more tokens than one document may have
        if counts.sum() > _LARGEST_COUNT:
            tokens = np.diff(np.concatenate([[0], np.cumsum(counts)])[offsets])
            if tokens.max(initial=0) > _LARGEST_COUNT:
                return False
    return True


def _refuse_first(
    lists: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    passed: int,
    url: str,
    document_bytes: int,
) -> None:
    """Raise ShardError for the first invalid row."""
    split = [np.split(numbers, offsets[1:-1]) for offsets, numbers in lists]
    for row, arrays in enumerate(zip(*split, strict=True), start=passed + 1):
        place = f"row {row}"
        refuse_long(sum(array.nbytes for array in arrays), place, url, document_bytes)
        if len({array.size for array in arrays}) > 1:
            raise ShardError(
                url, f"{place} does not have one count for each id; correct or delete it"
            )
        require_counts(arrays[0], arrays[1] if len(arrays) > 1 else None, place, url)
