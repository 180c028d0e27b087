"""Base: the protocol of formats, and functions that all formats share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import fsspec

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.printing.remedies import remedy
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.formats.compressions import (
    compression_of,
    compression_within,
    stored_before_line,
)

if TYPE_CHECKING:
    import pyarrow as pa

Holds = Literal["texts", "ids", "categories", "vectors"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ROW_GROUP_BYTES = 64 << 20
_BLOCK_BYTES = 1 << 20


class Position(NamedTuple):
    """Place between two documents of a shard, from which reading can continue.

    Parameters
    ----------
    passed : int
        Number of lines, rows or files before the place.
    offset : int
        Byte of the file at the place; 0 if the file must be read from its beginning.
    """

    passed: int = 0
    offset: int = 0


START = Position()


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on the data of a shard in memory; the shard is read in chunks of documents.

    Parameters
    ----------
    document_bytes : int
        Size of the largest document in bytes of UTF-8. A token id or a count in Parquet takes 8.
        For JSON Lines and CSV this bounds a record with all its fields.
    batch_bytes : int
        Size of the documents of a chunk in bytes; a chunk holds at least one document.
    batch_documents : int
        Number of documents of a chunk.
    row_group_bytes : int, optional
        Size of the largest row group of Parquet in decompressed bytes; a token id or a count takes
        8. A larger row group of texts must have pages below the bound, which are decoded one by
        one. By default 64 MiB; pipelines use the bound of their memory plan.
    pilot_bytes : int
        Size of the documents or rows of a shard's sample in bytes; a sample holds at least one.

    Raises
    ------
    InvalidInput
        A bound is below 1.
    """

    __repr__ = short_repr

    document_bytes: int = 16 << 20
    batch_bytes: int = 32 << 20
    batch_documents: int = 32_768
    row_group_bytes: int | None = None
    pilot_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if any(bound is not None and bound < 1 for bound in vars(self).values()):
            raise InvalidInput(f"{self}: every bound must be at least 1")

    @property
    def decoded_bytes(self) -> int:
        """Bound on the decoded bytes of a row group, or the default if none is set."""
        return _ROW_GROUP_BYTES if self.row_group_bytes is None else self.row_group_bytes


DEFAULT_LIMITS = ReadLimits()


class Columns(Protocol):
    """Names of columns, or of fields of JSON; the properties are those of `ShardFormat`."""

    @property
    def text_column(self) -> str: ...

    @property
    def ids_column(self) -> str | None: ...

    @property
    def counts_column(self) -> str | None: ...

    @property
    def categories(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Source:
    """A shard as a format reads it.

    Parameters
    ----------
    fs : AbstractFileSystem
        File system of the shard.
    path, url : str
        Path in the file system, and URL for errors.
    size : int
        Stored size in bytes.
    columns : Columns
        Columns to read, for a format with columns.
    storage_options : mapping, optional
        Options of the file system, whose values errors must not show.
    whole : AbstractFileSystem, optional
        For a part of a file: a file system that shows the whole file.
    even : bool
        Whether lists in its columns are vectors, all of about equal length.
    """

    fs: fsspec.AbstractFileSystem
    path: str
    url: str
    size: int
    columns: Columns
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    whole: fsspec.AbstractFileSystem | None = field(default=None, repr=False)
    even: bool = False

    @property
    def compressed(self) -> bool:
        """Whether the shard is compressed, so that reading begins at the start of the file."""
        return compression_of(self.path) is not None


class Format(Protocol):
    """How a shard stores documents. Each format is a class of this kind and a line in `FORMATS`.

    Parameters
    ----------
    name : str
        Name for `--format` and in the store.
    suffixes : tuple of str
        Suffixes of its files in lower case, without those of compressions.
    options : tuple of str
        Fields of `Columns` that the format uses.
    of_folder : bool
        Whether a shard is a folder rather than a file.
    grows : bool
        Whether records may be appended to a file.
    """

    name: str
    suffixes: tuple[str, ...]
    options: tuple[str, ...] = ()
    of_folder: bool = False
    grows: bool = False

    def holds(self, columns: Columns) -> Holds:
        """Return what a record holds: a text, token ids, categories, or a vector of numbers."""
        return "texts"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[Any, Position]]:
        """Read documents from a position on, in chunks, each with the position after it.

        A chunk is an array for `count_column` if it holds texts, an `IdChunk` if it holds token
        ids, and a table if it holds categories. Which documents a chunk holds depends only on the
        limits and on the documents after `start`.

        Raises
        ------
        ShardError
            The shard does not have this format. The error names the line, row or file, from 1.
        """

    def whole_bytes(self, stream: IO[bytes]) -> int:
        """Return the number of bytes of the complete records at the start of a stream.

        Only formats whose files can grow use it.
        """
        end = place = 0
        while block := stream.read(_BLOCK_BYTES):
            last = block.rfind(b"\n")
            end = place + last + 1 if last >= 0 else end
            place += len(block)
        return end

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        """Read some columns from a position on, in chunks as `chunks` does; CSV gives only strings.

        Raises
        ------
        ShardError
            The shard does not have this format, or lacks a column; or the format has no columns.
        """
        raise ShardError(
            source.url,
            f"is of format {self.name}, which has no columns such as {', '.join(columns)}; give "
            "Parquet, JSON Lines, CSV or TSV",
        )

    def days(self, source: Source, column: str, zones: bool = True) -> Iterator[date]:
        """Yield some days of a column of dates, at least the earliest and the latest.

        A text with a time zone belongs to its day in UTC. With `zones=False`, as in version 0.2.0,
        it belongs to the day that it names.

        Raises
        ------
        ShardError
            The column is missing or does not hold dates, or the format has no columns.
        """
        raise ShardError(
            source.url,
            f"is of format {self.name}, which has no column {column!r} of dates",
            "create the store without {create.date_column}",
        )

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        """Return names of documents as arrays of texts, in the order of `chunks`; null if unnamed.

        Names are the values of a column. Without a column, they are the names that the format
        itself gives to documents; the method returns None if the format gives no names.

        Raises
        ------
        ShardError
            The column is missing or holds neither texts nor whole numbers, or the format has no
            columns.
        """
        if column is None:
            return None
        raise ShardError(
            source.url,
            f"is of format {self.name}, which has no id column {column!r}",
            "leave out {transform.id_column} to identify documents by their numbers",
        )

    def share_before(self, source: Source, place: Position) -> float:
        """Estimate the share of stored bytes before a place, 0 to 1, without reading documents."""
        before = place.offset
        if source.compressed:
            before = stored_before_line(source.fs, source.path, place.passed)
        return min(before / max(source.size, 1), 1.0)


class OfNumbers(Format):
    """A format whose files hold columns of numbers instead of documents."""

    def holds(self, columns: Columns) -> Holds:
        return "vectors"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[Any, Position]]:
        raise not_documents(source.url)


def not_documents(url: str) -> ShardError:
    """Return the error for reading documents from a shard of numbers."""
    return ShardError(
        url,
        "has a format with columns of numbers and without documents",
        "create a store for it with {create.kind:vectors}",
    )


def refuse_long(nbytes: int, place: str, url: str, document_bytes: int) -> None:
    """Raise ShardError if a document has more than `document_bytes` bytes."""
    if nbytes > document_bytes:
        raise ShardError(
            url,
            f"{place} exceeds {document_bytes} bytes",
            "split the document, or raise {option.max_document_bytes}",
        )


def decoded(content: bytes, place: str, url: str) -> str:
    """Decode the text of a document; ShardError with the place if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        if compressed := compression_within(content):
            raise ShardError(
                url,
                f"{place} is compressed as {compressed.suffix}; rename the shard, so that its name "
                f"ends in {compressed.suffix}",
            ) from error
        raise ShardError(
            url,
            f"{place} is not UTF-8: its byte {error.start} is 0x{byte:02x}; "
            "convert the shard to UTF-8",
        ) from error


def table_chunks(
    tables: Iterator[tuple[pa.Table, Position]], limits: ReadLimits
) -> Iterator[tuple[pa.Table, Position]]:
    """Join tables into chunks within the limits; a table above the limits stays whole."""
    from pyarrow import concat_tables

    held: list[pa.Table] = []
    rows = size = 0
    end = START
    for table, after in tables:
        full = (
            rows + table.num_rows > limits.batch_documents
            or size + table.nbytes > limits.batch_bytes
        )
        if held and full:
            yield concat_tables(held, promote_options="default"), end
            held, rows, size = [], 0, 0
        held.append(table)
        rows, size, end = rows + table.num_rows, size + table.nbytes, after
    if held:
        yield concat_tables(held, promote_options="default"), end


def place_of_column(names: Sequence[str], column: str, option: str, url: str) -> int:
    """Return the index of a column; ShardError unless exactly one column has the name.

    `option` is the option that chooses a column, as `remedy` names it.

    Examples
    --------
    >>> place_of_column(["n", "text"], "text", "create.text_column", "/corpus/a.csv")
    1
    """
    if (number := names.count(column)) != 1:
        what = f"{number} columns" if number else "no column"
        raise ShardError(
            url,
            f"has {what} {column!r}; its columns are {list(names)}",
            remedy("rename one, or choose another with {" + option + "}"),
        )
    return names.index(column)
