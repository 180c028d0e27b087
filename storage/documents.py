"""Documents of a shard in bounded chunks, before anything is counted.

Lines and rows are numbered from 1 in errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import fsspec
import pyarrow as pa

from streaming_moments.errors import InvalidInput, ShardError, printable
from streaming_moments.storage import parquet
from streaming_moments.storage.contents import MarkedFiles, ShardContent
from streaming_moments.storage.counting import encoded
from streaming_moments.storage.filesystems import files_under, shard_errors
from streaming_moments.storage.id_chunks import (
    IdChunk,
    IdDocument,
    in_chunks,
    join_ids,
    parquet_ids,
    require_counts,
    without_zeros,
)
from streaming_moments.storage.lda_c import numbers_of
from streaming_moments.storage.lines import (
    BYTE_ORDER_MARK,
    START,
    Position,
    decoded,
    opened,
    read_lines,
    refuse_long,
)
from streaming_moments.storage.shards import Shard, ShardFormat, open_shard
from streaming_moments.storage.urls import shard_name

_Document = TypeVar("_Document")
_Chunk = TypeVar("_Chunk")

_EMPTY = "is empty; leave it out, or write its documents again"
_ROW_GROUP_BYTES = 64 << 20


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
    row_group_bytes : int, optional
        Largest row group of Parquet, in bytes decompressed, and 8 for each token id or count. Of
        a larger one of texts no page may be above it: these are decoded whole. By default 64 MiB,
        and in pipelines what their memory plan allows.

    Raises
    ------
    InvalidInput
        A bound below 1.
    """

    document_bytes: int = 16 << 20
    batch_bytes: int = 32 << 20
    batch_documents: int = 32_768
    row_group_bytes: int | None = None

    def __post_init__(self) -> None:
        if any(bound is not None and bound < 1 for bound in vars(self).values()):
            raise InvalidInput(f"{self}: every bound must be at least 1")

    @property
    def decoded_bytes(self) -> int:
        """The bound on a row group, or its default."""
        return _ROW_GROUP_BYTES if self.row_group_bytes is None else self.row_group_bytes


DEFAULT_LIMITS = ReadLimits()


def text_chunks(
    shard: Shard,
    form: ShardFormat,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
) -> Iterator[tuple[pa.Array, Position]]:
    """Texts of a shard from a position on, in order, in chunks, each with the position after it.

    A line of a text shard is a document, also an empty one; blank lines of JSON Lines are none.
    A null in Parquet is an empty document. The arrays are what `count_column` takes.

    Raises
    ------
    ShardError
        The shard holds no documents, holds ids, or cannot be read as its format: says where.
    """
    kind = form.kind_of(shard.url)
    if form.holds_ids(shard.url):
        raise ShardError(shard.url, "holds token ids; give shards of texts")
    with shard_errors(shard.source, storage_options):
        fs, path = _opened(shard, storage_options, content)
        if kind == "parquet":
            chunks = _parquet_texts(fs, path, shard.url, form.text_column, limits, start)
        else:
            if kind == "directory":
                documents = _files(fs, path, shard.url, limits, storage_options, start)
            elif kind == "jsonl":
                documents = _json_texts(fs, path, shard.url, form.text_column, limits, start)
            else:
                documents = _line_texts(fs, path, shard.url, limits, start)
            chunks = ((encoded(texts), after) for texts, after in _bounded(documents, limits))
        yield from not_empty(chunks, shard)


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
    return (chunk for chunk, _ in id_chunks(shard, form, limits, storage_options))


def id_chunks(
    shard: Shard,
    form: ShardFormat,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
) -> Iterator[tuple[IdChunk, Position]]:
    """Token ids from a position on, in chunks, each with the position after it; as `read_ids`."""
    if not form.holds_ids(shard.url):
        raise ShardError(shard.url, "holds texts; name the column of token ids by --ids-column")
    with shard_errors(shard.source, storage_options):
        fs, path = _opened(shard, storage_options, content)
        if form.kind_of(shard.url) == "parquet":
            chunks = _parquet_ids(fs, path, shard.url, form, limits, start)
        else:
            lines = _bounded(_lda_c(fs, path, shard.url, limits, start), limits)
            chunks = ((without_zeros(join_ids(held)), after) for held, after in lines)
        yield from not_empty(chunks, shard)


def _opened(
    shard: Shard, storage_options: Mapping[str, object] | None, content: ShardContent | None
) -> tuple[fsspec.AbstractFileSystem | MarkedFiles, str]:
    fs, path = open_shard(shard, storage_options)
    return fs if content is None else MarkedFiles(fs, content, shard.url), path


def not_empty(chunks: Iterable[_Chunk], shard: Shard) -> Iterator[_Chunk]:
    """The chunks of a shard; a shard of no bytes is not even opened.

    Raises
    ------
    ShardError
        There is none.
    """
    none = True
    for chunk in chunks if shard.size else ():
        none = False
        yield chunk
    if none:
        raise ShardError(shard.url, _EMPTY)


def _bounded(
    documents: Iterable[tuple[_Document, int, Position]], limits: ReadLimits
) -> Iterator[tuple[list[_Document], Position]]:
    """Chunks of documents, each given with its bytes and the position after it."""
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


def _line_texts(
    fs: fsspec.AbstractFileSystem, path: str, url: str, limits: ReadLimits, start: Position
) -> Iterator[tuple[str, int, Position]]:
    for after, line in read_lines(fs, path, url, limits.document_bytes, start):
        yield decoded(line, f"line {after.passed}", url), len(line), after


def _json_texts(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    field: str,
    limits: ReadLimits,
    start: Position,
) -> Iterator[tuple[str, int, Position]]:
    for after, line in read_lines(fs, path, url, limits.document_bytes, start):
        if not line.strip():
            continue
        place = f"line {after.passed}"
        try:
            record = json.loads(decoded(line, place, url))
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
        yield text, len(line), after


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
    start: Position,
) -> Iterator[tuple[str, int, Position]]:
    states = islice(files_under(fs, path, url), start.passed, None)
    for passed, state in enumerate(states, start=start.passed + 1):
        name = f"file {printable(shard_name(state.path[len(path) :].lstrip('/')))}"
        content = b""
        try:
            with shard_errors(url, storage_options):
                if state.size:
                    with opened(fs, state.path) as stream:
                        content = stream.read(limits.document_bytes + 1)
        except ShardError as error:
            raise ShardError(url, f"{name} {error.reason}") from error
        refuse_long(len(content), name, url, limits.document_bytes)
        text = decoded(content.removeprefix(BYTE_ORDER_MARK), name, url)
        yield text, len(content), Position(passed)


def _parquet_texts(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    name: str,
    limits: ReadLimits,
    start: Position,
) -> Iterator[tuple[pa.LargeStringArray, Position]]:
    arrays = _sound_texts(fs, path, url, name, limits, start)
    passed = start.passed
    for texts in parquet.in_chunks(arrays, limits.batch_bytes, limits.batch_documents):
        passed += len(texts)
        yield texts, Position(passed)


def _sound_texts(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    name: str,
    limits: ReadLimits,
    start: Position,
) -> Iterator[pa.LargeStringArray]:
    longest = limits.document_bytes
    for passed, texts in parquet.read_strings(fs, path, url, name, limits.decoded_bytes, start):
        if not parquet.are_sound(texts, longest):
            for row, content in enumerate(texts.cast(pa.large_binary()).to_pylist(), passed + 1):
                refuse_long(len(content), f"row {row}", url, longest)
                decoded(content, f"row {row}", url)
        yield texts


def _parquet_ids(
    fs: fsspec.AbstractFileSystem,
    path: str,
    url: str,
    form: ShardFormat,
    limits: ReadLimits,
    start: Position,
) -> Iterator[tuple[IdChunk, Position]]:
    columns = [parquet.ParquetColumn(str(form.ids_column), "--ids-column", True)]
    if form.counts_column is not None:
        columns.append(parquet.ParquetColumn(form.counts_column, "--counts-column", True))
    bounds = (limits.document_bytes, limits.decoded_bytes)
    pieces = parquet_ids(fs, path, url, columns, *bounds, start)
    return in_chunks(pieces, limits.batch_bytes, limits.batch_documents)


def _lda_c(
    fs: fsspec.AbstractFileSystem, path: str, url: str, limits: ReadLimits, start: Position
) -> Iterator[tuple[IdDocument, int, Position]]:
    for after, line in read_lines(fs, path, url, limits.document_bytes, start):
        if not line.strip():
            continue
        place = f"line {after.passed}"
        numbers = numbers_of(line, place, url)
        ids, counts = numbers[1::2], numbers[2::2]
        require_counts(ids, counts, place, url)
        yield (ids, counts), numbers.nbytes, after
