"""Documents of a shard in bounded chunks, before anything is counted.

Lines and rows are numbered from 1 in errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TypeVar

import fsspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.storage import parquet
from streaming_moments.storage.filesystems import files_under, open_file_system, shard_errors
from streaming_moments.storage.shards import Shard, ShardFormat, compression_of

_Document = TypeVar("_Document")
IdDocument = tuple[NDArray[np.int64], NDArray[np.int64] | None]

EMPTY = "is empty; leave it out, or write its documents again"
_BLOCK_BYTES = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LDA_C_LINE = re.compile(rb"\s*\d{1,18}(?:\s+\d{1,18}:\d{1,18})*\s*")
_LARGEST_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on what is held at once.

    Parameters
    ----------
    document_bytes : int
        Largest document, in bytes of UTF-8; a token id or a count in Parquet takes 8.
    batch_bytes : int
        Documents of a chunk, in bytes; a chunk holds one document at least.
    batch_documents : int
        Documents of a chunk.

    Raises
    ------
    InvalidInput
        A bound below 1.
    """

    document_bytes: int = 16 << 20
    batch_bytes: int = 32 << 20
    batch_documents: int = 32_768

    def __post_init__(self) -> None:
        if min(self.document_bytes, self.batch_bytes, self.batch_documents) < 1:
            raise InvalidInput(f"{self}: every bound must be at least 1")


DEFAULT_LIMITS = ReadLimits()


@dataclass(frozen=True, eq=False)
class IdChunk:
    """Documents of token ids.

    Parameters
    ----------
    offsets : (documents + 1,) int64
        Where each document's entries begin.
    ids : (entries,) int64
        Token ids, at least 0; a document may repeat one.
    counts : (entries,) int64 or None
        Occurrences, at least 1, in tokens; None: each entry is one.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    counts: NDArray[np.int64] | None


def read_texts(
    shard: Shard,
    form: ShardFormat,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[list[str]]:
    """Texts of a shard, in order, in chunks within the limits.

    A line of a text shard is a document, also an empty one; blank lines of JSON Lines are none.
    A null in Parquet is an empty document.

    Raises
    ------
    ShardError
        The shard holds no documents, holds ids, or cannot be read as its format: says where.
    """
    kind = form.kind_of(shard.url)
    if form.holds_ids(shard.url):
        raise ShardError(shard.url, "holds token ids; give shards of texts")
    with shard_errors(shard.url, storage_options):
        fs, path = open_file_system(shard.url, storage_options)
        if kind == "directory":
            documents = _files(fs, path, shard.url, limits, storage_options)
        elif kind == "parquet":
            arrays = parquet_texts(fs, path, shard.url, form.text_column, limits)
            documents = (pair for texts in arrays for pair in parquet.with_sizes(texts))
        elif kind == "jsonl":
            documents = _json_texts(fs, path, shard.url, form.text_column, limits)
        else:
            documents = _line_texts(fs, path, shard.url, limits)
        yield from _bounded(documents, shard, limits)


def read_ids(
    shard: Shard,
    form: ShardFormat,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[IdChunk]:
    """Token ids of a shard, in order, in chunks within the limits.

    Entries with a count of 0 are left out.

    Raises
    ------
    ShardError
        The shard holds no documents, holds texts, or cannot be read as its format: says where.
    """
    if not form.holds_ids(shard.url):
        raise ShardError(shard.url, "holds texts; name the column of token ids by --ids-column")
    with shard_errors(shard.url, storage_options):
        fs, path = open_file_system(shard.url, storage_options)
        if form.kind_of(shard.url) == "parquet":
            documents = _parquet_ids(fs, path, shard.url, form, limits)
        else:
            documents = _lda_c(fs, path, shard.url, limits)
        yield from map(join_ids, _bounded(documents, shard, limits))


def join_ids(documents: Sequence[IdDocument]) -> IdChunk:
    """Put documents, each given by its ids and their counts or None, into one chunk.

    Examples
    --------
    >>> chunk = join_ids([(np.array([7, 9]), None), (np.array([9]), None)])
    >>> chunk.offsets, chunk.ids, chunk.counts
    (array([0, 2, 3]), array([7, 9, 9]), None)
    """
    offsets = np.zeros(len(documents) + 1, dtype=np.int64)
    np.cumsum([ids.size for ids, _ in documents], out=offsets[1:])
    counted = [counts for _, counts in documents if counts is not None]
    counts = np.concatenate(counted) if counted else None
    return IdChunk(offsets, np.concatenate([ids for ids, _ in documents]), counts)


def split_ids(chunk: IdChunk) -> list[IdDocument]:
    """Ids and counts of each document, sharing memory with the chunk: undoes `join_ids`.

    Examples
    --------
    >>> split_ids(IdChunk(np.array([0, 2, 3]), np.array([7, 9, 9]), None))
    [(array([7, 9]), None), (array([9]), None)]
    """
    ids = np.split(chunk.ids, chunk.offsets[1:-1])
    if chunk.counts is None:
        return [(own, None) for own in ids]
    return list(zip(ids, np.split(chunk.counts, chunk.offsets[1:-1]), strict=True))


def _bounded(
    documents: Iterable[tuple[_Document, int]], shard: Shard, limits: ReadLimits
) -> Iterator[list[_Document]]:
    chunk: list[_Document] = []
    size = 0
    for document, nbytes in documents if shard.size else ():
        if chunk and (size + nbytes > limits.batch_bytes or len(chunk) == limits.batch_documents):
            yield chunk
            chunk, size = [], 0
        chunk.append(document)
        size += nbytes
    # Every chunk but the last was followed by a document: none here means none at all.
    if not chunk:
        raise ShardError(shard.url, EMPTY)
    yield chunk


@contextmanager
def _opened(fs: fsspec.AbstractFileSystem, path: str) -> Iterator[IO[bytes]]:
    codec = compression_of(path)
    with fs.open(path, "rb") as stored:
        if codec is None:
            yield stored
        else:
            yield pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec)


def _lines(
    fs: fsspec.AbstractFileSystem, path: str, url: str, limits: ReadLimits
) -> Iterator[tuple[int, bytes]]:
    number = 1
    begun: list[bytes] = []
    with _opened(fs, path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            first, *others = block.split(b"\n")
            begun.append(first)
            _refuse_long(sum(map(len, begun)), f"line {number}", url, limits)
            if others:
                for line in (b"".join(begun), *others[:-1]):
                    _refuse_long(len(line), f"line {number}", url, limits)
                    yield number, _bare(line, number)
                    number += 1
                begun = others[-1:]
    rest = b"".join(begun)
    _refuse_long(len(rest), f"line {number}", url, limits)
    if rest:
        yield number, _bare(rest, number)


def _bare(line: bytes, number: int) -> bytes:
    line = line.removesuffix(b"\r")
    return line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line


def _line_texts(
    fs: fsspec.AbstractFileSystem, path: str, url: str, limits: ReadLimits
) -> Iterator[tuple[str, int]]:
    for number, line in _lines(fs, path, url, limits):
        yield _decoded(line, f"line {number}", url), len(line)


def _json_texts(
    fs: fsspec.AbstractFileSystem, path: str, url: str, field: str, limits: ReadLimits
) -> Iterator[tuple[str, int]]:
    for number, line in _lines(fs, path, url, limits):
        if not line.strip():
            continue
        place = f"line {number}"
        try:
            record = json.loads(_decoded(line, place, url))
        except (ValueError, RecursionError) as error:
            raise ShardError(url, f"{place} is not JSON ({error}); mend or drop it") from error
        if not isinstance(record, dict):
            raise ShardError(
                url, f"{place} is not a JSON object; write one object with the text on each line"
            )
        if field not in record:
            raise ShardError(
                url,
                f"{place} has no field {field!r}; it has {sorted(record)}; "
                "choose one by --text-column",
            )
        text = record[field]
        if not isinstance(text, str):
            kind = type(text).__name__
            raise ShardError(url, f"{place}: field {field!r} is {kind}, expected a string")
        if b"\\u" in line:
            _refuse_surrogates(text, place, url)
        yield text, len(line)


def _refuse_surrogates(text: str, place: str, url: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ShardError(
            url, f"{place} holds half of a surrogate pair, which is no character; mend or drop it"
        ) from error


def _files(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    limits: ReadLimits,
    storage_options: Mapping[str, object] | None,
) -> Iterator[tuple[str, int]]:
    for state in files_under(fs, path, url):
        name = f"file {state.path[len(path) :].lstrip('/')}"
        content = b""
        try:
            with shard_errors(url, storage_options):
                if state.size:
                    with _opened(fs, state.path) as stream:
                        content = stream.read(limits.document_bytes + 1)
        except ShardError as error:
            raise ShardError(url, f"{name} {error.reason}") from error
        _refuse_long(len(content), name, url, limits)
        yield _decoded(content.removeprefix(_BYTE_ORDER_MARK), name, url), len(content)


def _refuse_long(nbytes: int, place: str, url: str, limits: ReadLimits) -> None:
    if nbytes > limits.document_bytes:
        raise ShardError(
            url,
            f"{place} is above {limits.document_bytes} bytes; "
            "split the document, or raise --max-document-bytes",
        )


def _decoded(content: bytes, place: str, url: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise ShardError(
            url,
            f"{place} is not UTF-8: byte {error.start} of it is 0x{byte:02x}; "
            "convert the shard to UTF-8",
        ) from error


def parquet_texts(
    fs: fsspec.AbstractFileSystem, path: str, url: str, name: str, limits: ReadLimits
) -> Iterator[pa.LargeStringArray]:
    """Texts of a column in small arrays: none is null, all are UTF-8 and within the limit."""
    for first, texts in parquet.read_strings(fs, path, url, name):
        if not parquet.are_sound(texts, limits.document_bytes):
            for row, content in enumerate(texts.cast(pa.large_binary()).to_pylist(), start=first):
                _refuse_long(len(content), f"row {row}", url, limits)
                _decoded(content, f"row {row}", url)
        yield texts


def _parquet_ids(
    fs: fsspec.AbstractFileSystem, path: str, url: str, form: ShardFormat, limits: ReadLimits
) -> Iterator[tuple[IdDocument, int]]:
    columns = [parquet.ParquetColumn(str(form.ids_column), "--ids-column", True)]
    if form.counts_column is not None:
        columns.append(parquet.ParquetColumn(form.counts_column, "--counts-column", True))
    for first, batch in parquet.read_columns(fs, path, url, columns):
        pairs = zip(
            *(parquet.lists_of(batch.column(c.name), c.name, url) for c in columns), strict=True
        )
        for row, lists in enumerate(pairs, start=first):
            place = f"row {row}"
            _refuse_long(sum(array.nbytes for array in lists), place, url, limits)
            if len({array.size for array in lists}) > 1:
                raise ShardError(url, f"{place} has not one count for each id; mend or drop it")
            counts = lists[1] if len(lists) > 1 else None
            yield _checked(lists[0], counts, place, url), sum(array.nbytes for array in lists)


def _lda_c(
    fs: fsspec.AbstractFileSystem, path: str, url: str, limits: ReadLimits
) -> Iterator[tuple[IdDocument, int]]:
    for number, line in _lines(fs, path, url, limits):
        if not line.strip():
            continue
        place = f"line {number}"
        if _LDA_C_LINE.fullmatch(line) is None:
            raise ShardError(url, f"{place} {_lda_c_fault(line)}")
        numbers = np.fromstring(line.replace(b":", b" ").decode(), dtype=np.int64, sep=" ")
        if numbers.size != 2 * numbers[0] + 1:
            raise ShardError(
                url,
                f"{place} begins with {numbers[0]} but has {numbers.size // 2} pairs id:count; "
                "write the line again",
            )
        yield _checked(numbers[1::2], numbers[2::2], place, url), numbers.nbytes


def _lda_c_fault(line: bytes) -> str:
    size, *pairs = line.decode(errors="replace").split()
    if re.fullmatch(r"[0-9]{1,18}", size) is None:
        return f"begins with {size[:40]!r}, expected the number of its ids (LDA-C: M id:count ...)"
    for pair in pairs:
        token_id, _, count = pair.partition(":")
        if re.fullmatch(r"[0-9]{1,18}", token_id) is None:
            return f"has {pair[:40]!r}, expected id:count with a whole number >= 0 as the id"
        if re.fullmatch(r"[0-9]{1,18}", count) is None:
            return f"counts id {token_id} {count[:40]!r} times; counts must be whole numbers >= 0"
    return "is not LDA-C; separate its pairs by spaces"


def _checked(
    ids: NDArray[np.int64], counts: NDArray[np.int64] | None, place: str, url: str
) -> IdDocument:
    if ids.size and ids.min() < 0:
        raise ShardError(url, f"{place} has id {ids.min()}; ids must be whole numbers >= 0")
    if counts is None or not counts.size:
        return ids, counts
    if counts.min() < 0 or counts.max() > _LARGEST_COUNT:
        wrong = counts.min() if counts.min() < 0 else counts.max()
        token_id = ids[int(np.argmax(counts == wrong))]
        raise ShardError(
            url,
            f"{place} counts id {token_id} {wrong} times; "
            f"counts must be whole numbers of 0 to {_LARGEST_COUNT}",
        )
    if counts.sum() > _LARGEST_COUNT:
        raise ShardError(url, f"{place} has {counts.sum()} tokens; at most {_LARGEST_COUNT} fit")
    present = counts > 0
    return (ids, counts) if present.all() else (ids[present], counts[present])
