"""What a format of shards is, and what all formats share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import fsspec

from streaming_moments.errors import InvalidInput, ShardError
from streaming_moments.storage.formats.compressions import compression_of, stored_before_line

if TYPE_CHECKING:
    import pyarrow as pa

Holds = Literal["texts", "ids", "categories", "vectors"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ROW_GROUP_BYTES = 64 << 20
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


@dataclass(frozen=True)
class ReadLimits:
    """Bounds on what is held at once.

    Parameters
    ----------
    document_bytes : int
        Largest document, in bytes of UTF-8; a token id or a count in Parquet takes 8. Of JSON Lines
        and CSV it is the largest record, with all its fields.
    batch_bytes : int
        Documents of a chunk, in bytes; a chunk holds one document at least.
    batch_documents : int
        Documents of a chunk.
    row_group_bytes : int, optional
        Largest row group of Parquet, in bytes decompressed, and 8 for each token id or count. Of
        a larger one of texts no page may be above it: these are decoded whole. By default 64 MiB,
        and in pipelines what their memory plan allows.
    pilot_bytes : int
        Documents, or rows, that a sample of a shard holds, in bytes; a sample holds one at least.

    Raises
    ------
    InvalidInput
        A bound below 1.
    """

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
        """The bound on a row group, or its default."""
        return _ROW_GROUP_BYTES if self.row_group_bytes is None else self.row_group_bytes


DEFAULT_LIMITS = ReadLimits()


class Columns(Protocol):
    """Names of columns, or of JSON fields, as `ShardFormat` has them."""

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
        Where it lies.
    path, url : str
        Its path in there, and its URL for errors.
    size : int
        In bytes, as stored.
    columns : Columns
        What is read of it, where it has columns.
    storage_options : mapping, optional
        Of the file system, whose values errors must not show.
    whole : AbstractFileSystem, optional
        Where all of the file is seen, of a part that came to it.
    even : bool
        Whether lists in its columns are vectors, all of about one length.
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
        """Whether it can be read from its beginning only."""
        return compression_of(self.path) is not None


class Format(Protocol):
    """How documents lie in a shard. A format is one class of this kind, and a line in `FORMATS`.

    Parameters
    ----------
    name : str
        As `--format` and the store name it.
    suffixes : tuple of str
        Ends of the names of its files, in lower case, without those of compressions.
    options : tuple of str
        Fields of `Columns` that it goes by.
    of_folder : bool
        Whether a shard is a folder rather than a file.
    grows : bool
        Whether records may be added at the end of a file.
    """

    name: str
    suffixes: tuple[str, ...]
    options: tuple[str, ...] = ()
    of_folder: bool = False
    grows: bool = False

    def holds(self, columns: Columns) -> Holds:
        """What documents are: strings, lists of token ids, rows of categories, or none."""
        return "texts"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[Any, Position]]:
        """Documents from a position on, in chunks within the limits, with the position after each.

        Texts are arrays that `count_column` takes, ids an `IdChunk`, rows a table. Which documents
        a chunk has follows from the documents after `start` and the limits alone.

        Raises
        ------
        ShardError
            The shard cannot be read as this format: names the line, row or file, from 1.
        """

    def whole_bytes(self, stream: IO[bytes]) -> int:
        """Bytes from the beginning of a record to the end of the last whole one, where it grows."""
        end = place = 0
        while block := stream.read(_BLOCK_BYTES):
            last = block.rfind(b"\n")
            end = place + last + 1 if last >= 0 else end
            place += len(block)
        return end

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        """Rows of some columns from a position on, as `chunks`; of CSV all are strings.

        Raises
        ------
        ShardError
            The shard cannot be read as this format, a column is missing, or the format has none.
        """
        raise ShardError(
            source.url,
            f"is of format {self.name}, of which no columns {', '.join(columns)} are read; give "
            "Parquet, JSON Lines, CSV or TSV",
        )

    def days(self, source: Source, column: str, zones: bool = True) -> Iterator[date]:
        """Days in a column of dates; the earliest and the latest are among them.

        A text with a zone is of its day in UTC; without `zones` as the store's version counted it.

        Raises
        ------
        ShardError
            The column is missing or holds something else, or the format has no columns.
        """
        raise ShardError(
            source.url,
            f"is of format {self.name}, which has no column {column!r} of dates; create the "
            "store without --date-column",
        )

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        """What documents are called, in the order of `chunks`, as arrays of texts; null: nothing.

        Values of a column; without one what the format itself has, and None where that is nothing.

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
            f"is of format {self.name}, which has no column {column!r} of ids; transform "
            "it without --id-column: its documents are known by their numbers",
        )

    def share_before(self, source: Source, place: Position) -> float:
        """Share of the stored bytes before a place, 0 to 1, without reading the documents."""
        before = place.offset
        if source.compressed:
            before = stored_before_line(source.fs, source.path, place.passed)
        return min(before / max(source.size, 1), 1.0)


class OfNumbers(Format):
    """A format of columns of numbers, and of no documents."""

    def holds(self, columns: Columns) -> Holds:
        return "vectors"

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[Any, Position]]:
        raise not_documents(source.url)


def not_documents(url: str) -> ShardError:
    """The error of a shard of tables alone that is asked for documents."""
    return ShardError(
        url,
        "is of a format of which columns of numbers are read, and no documents; create a store "
        "--kind vectors for them",
    )


def refuse_long(nbytes: int, place: str, url: str, document_bytes: int) -> None:
    """Raise ShardError for a document above the limit."""
    if nbytes > document_bytes:
        raise ShardError(
            url,
            f"{place} is above {document_bytes} bytes; "
            "split the document, or raise --max-document-bytes",
        )


def decoded(content: bytes, place: str, url: str) -> str:
    """Text of a document; raises ShardError, with the place, if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        byte = content[error.start]
        raise ShardError(
            url,
            f"{place} is not UTF-8: byte {error.start} of it is 0x{byte:02x}; "
            "convert the shard to UTF-8",
        ) from error


def table_chunks(
    tables: Iterator[tuple[pa.Table, Position]], limits: ReadLimits
) -> Iterator[tuple[pa.Table, Position]]:
    """Tables joined while they stay within the limits of a chunk."""
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
    """Position of a column among all; raises ShardError if there is not exactly one of that name.

    `option` is the option that chooses a column, for the message.

    Examples
    --------
    >>> place_of_column(["n", "text"], "text", "create --text-column", "/corpus/a.csv")
    1
    """
    if (number := names.count(column)) != 1:
        what = f"{number} columns" if number else "no column"
        raise ShardError(
            url,
            f"has {what} {column!r}, it has {list(names)}; rename one, or choose another by "
            f"`{option} NAME`",
        )
    return names.index(column)
