"""Chunks of documents given as texts, checked and cut as whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming_moments.storage.formats.base import Position, ReadLimits, decoded, refuse_long
from streaming_moments.storage.formats.cutting import bounded, cut


@dataclass(frozen=True, eq=False)
class TextPiece:
    """Consecutive texts of a shard.

    texts : the texts, without nulls and not yet checked to be UTF-8
    place : function that names the place of a text in the shard, for errors, given its number
    after : function that returns the position after a text, given its number from 0
    url : URL of the shard, for errors
    """

    texts: pa.LargeStringArray
    place: Callable[[int], str]
    after: Callable[[int], Position]
    url: str


def in_chunks(
    pieces: Iterable[TextPiece], limits: ReadLimits
) -> Iterator[tuple[pa.LargeStringArray, Position]]:
    """Join and cut pieces into the largest chunks within limits, each with the position after it.

    A text above `limits.batch_bytes` is a chunk of its own. Raises ShardError for a text that is
    not UTF-8, or above `limits.document_bytes`.

    Examples
    --------
    >>> texts = pa.array(["sea", "law", "ship"], pa.large_string())
    >>> piece = TextPiece(texts, "text {}".format, lambda text: Position(text + 1), "/a")
    >>> chunks = in_chunks([piece], ReadLimits(batch_bytes=6))
    >>> [(chunk.to_pylist(), after.passed) for chunk, after in chunks]
    [(['sea', 'law'], 2), (['ship'], 3)]
    """
    sized = ((piece, sound_sizes(piece, limits.document_bytes)) for piece in pieces)
    for held in cut(sized, limits.batch_bytes, limits.batch_documents):
        last, _, end = held[-1]
        texts = pa.concat_arrays([piece.texts[first:stop] for piece, first, stop in held])
        yield texts, last.after(end - 1)


def encoded_in_chunks(
    texts: Iterable[tuple[str, int, Position]], limits: ReadLimits
) -> Iterator[tuple[pa.LargeBinaryArray, Position]]:
    """Join texts into chunks, encoded as UTF-8.

    Each text comes with its size in bytes and the position after it.
    """
    return ((encoded(chunk), after) for chunk, after in bounded(texts, limits))


def encoded(texts: Iterable[str]) -> pa.LargeBinaryArray:
    """Encode texts as UTF-8; half of a surrogate pair, which is not part of a word, becomes `?`."""
    return pa.array([text.encode(errors="replace") for text in texts], pa.large_binary())


def buffers(texts: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the uint8 bytes of all texts, and their (documents + 1,) int64 offsets.

    A null is an empty text.
    """
    column = texts.cast(pa.large_binary())
    if column.null_count:
        column = pc.fill_null(column, b"")
    _, offsets, data = column.buffers()
    if offsets is None or len(column) == 0:
        offsets = bytes(8)
    content = np.frombuffer(b"" if data is None else data, dtype=np.uint8)
    places = np.frombuffer(offsets, dtype=np.int64)[column.offset :][: len(column) + 1]
    # Some of Arrow's buffers are writable. All are made read-only here, because kernels are
    # compiled only for read-only arrays.
    content.flags.writeable = places.flags.writeable = False
    return content, places


def sound_sizes(piece: TextPiece, document_bytes: int) -> NDArray[np.int64]:
    """Check the texts of a piece, and return their byte sizes; raises the errors of `in_chunks`."""
    sizes = np.asarray(pc.binary_length(piece.texts), dtype=np.int64)
    try:
        piece.texts.validate(full=True)
        sound = sizes.max(initial=0) <= document_bytes
    except pa.ArrowInvalid:
        sound = False
    if not sound:
        _refuse_first(piece, document_bytes)
    return sizes


def _refuse_first(piece: TextPiece, document_bytes: int) -> None:
    """Raise ShardError for the first invalid text."""
    for number, content in enumerate(piece.texts.cast(pa.large_binary()).to_pylist()):
        place = piece.place(number)
        refuse_long(len(content), place, piece.url, document_bytes)
        decoded(content, place, piece.url)
