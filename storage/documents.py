"""Read the documents of a shard, their days, their names, and their positions in the shard."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streaming_moments.errors import ShardError
from streaming_moments.storage.contents import MarkedFiles, ShardContent
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.files.filesystems import shard_errors
from streaming_moments.storage.files.parts import DOCUMENT, PartOfFile, given_name
from streaming_moments.storage.formats import (
    DEFAULT_LIMITS,
    FORMATS,
    START,
    Format,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.shards import Shard, ShardFormat, open_shard

if TYPE_CHECKING:
    import pyarrow as pa

_EMPTY = "is empty; leave it out, or write its documents again"


def read_chunks(
    shard: Shard,
    form: ShardFormat,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
) -> Generator[tuple[Any, Position], None, None]:
    """Yield the documents of a shard in chunks, each with the position after it in the shard.

    Documents have the order of the shard; reading begins at `start`. A chunk is an array of texts
    for `count_column`, or an IdChunk of token ids without counts of 0; `ShardFormat.holds` says
    which. `content` marks the content that the shard must have. Raises ShardError if the shard has
    other content, is empty, has changed since it was listed, or has another format; the error names
    the place.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/chunks/a.txt", b"law and sea")
    >>> [(texts, after)] = read_chunks(Shard("memory:///chunks/a.txt", 11), ShardFormat())
    >>> texts.to_pylist(), after
    ([b'law and sea'], Position(passed=1, offset=11))
    """
    none = True
    # do not open an empty shard, unless it is a file of a folder, because that is an empty document
    if shard.size or shard.url.endswith(DOCUMENT):
        with _read_as(shard, form, storage_options, content) as (kind, source):
            for chunk in kind.chunks(source, limits, start):
                none = False
                yield chunk
    if none:
        raise ShardError(shard.url, _EMPTY)


def read_tables(
    shard: Shard,
    form: ShardFormat,
    columns: Sequence[str],
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
    start: Position = START,
    content: ShardContent | None = None,
    even: bool = False,
) -> Iterator[tuple[pa.Table, Position]]:
    r"""Yield some columns of a shard as tables; arguments and errors are those of `read_chunks`.

    If `even`, lists in a column are vectors of about equal length, so row groups of Parquet may
    have any size.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/tables/a.csv", b"a,b\n1,x\n2,y\n")
    >>> shard = Shard("memory:///tables/a.csv", 12)
    >>> [(table, _)] = read_tables(shard, ShardFormat(), ["b", "a"])
    >>> table.to_pydict()
    {'b': ['x', 'y'], 'a': ['1', '2']}
    """
    none = True
    if shard.size:
        with _read_as(shard, form, storage_options, content) as (kind, source):
            for table in kind.tables(replace(source, even=even), columns, limits, start):
                none = False
                yield table
    if none:
        raise ShardError(shard.url, _EMPTY)


def days_of(
    shard: Shard,
    form: ShardFormat,
    source: DateSource,
    storage_options: Mapping[str, object] | None = None,
) -> DateRange | None:
    """Return the days of the documents of a shard, from a column with dates or from its URL.

    If there is a column of dates, it is read once.

    Raises ShardError if the column or field is missing or holds other values than dates, or if the
    format has no columns.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/dated/a.jsonl", b'{"day": "2026-11-21T08:00"}')
    >>> shard = Shard("memory:///dated/a.jsonl", 28)
    >>> str(days_of(shard, ShardFormat(), DateSource(column="day")))
    '2026-11-21'
    """
    if source.column is None:
        return source.in_url(given_name(shard.url))
    with _read_as(shard, form, storage_options) as (kind, opened):
        found = list(kind.days(opened, source.column, source.zones))
    if not found:
        raise ShardError(
            shard.url,
            f"column {source.column!r} holds no dates; choose another column, or leave out the "
            "shard if it has no documents",
        )
    return DateRange(min(found), max(found))


def ids_of(
    shard: Shard,
    form: ShardFormat,
    column: str | None,
    limits: ReadLimits = DEFAULT_LIMITS,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[pa.Array]:
    """Yield the ids of the documents of a shard as string arrays, in order; null if one is missing.

    `column` is a column or JSON field of texts or whole numbers. If it is not given, the ids of
    files in a folder are the names of the files, and other shards have no ids. Raises ShardError if
    the column is missing or has another type, or if the format has no columns.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/named/a.jsonl", b'{"id": 7, "text": "law"}')
    >>> [ids] = ids_of(Shard("memory:///named/a.jsonl", 24), ShardFormat(), "id")
    >>> ids.to_pylist()
    ['7']
    """
    with _read_as(shard, form, storage_options) as (kind, source):
        yield from kind.ids(source, column, limits) or ()


def share_before(
    shard: Shard,
    form: ShardFormat,
    place: Position,
    storage_options: Mapping[str, object] | None = None,
) -> float:
    r"""Return which share of the stored bytes of a shard lies before a position, from 0 to 1.

    No document is read.

    For Parquet it is the share of the rows. A compressed file is decompressed up to the position.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/extents/a.txt", b"law\nsea\n")
    >>> share_before(Shard("memory:///extents/a.txt", 8), ShardFormat(), Position(1, 4))
    0.5
    """
    with _read_as(shard, form, storage_options) as (kind, source):
        return kind.share_before(source, place)


@contextmanager
def _read_as(
    shard: Shard,
    form: ShardFormat,
    storage_options: Mapping[str, object] | None,
    content: ShardContent | None = None,
) -> Iterator[tuple[Format, Source]]:
    kind = FORMATS[form.kind_of(shard.url)]
    with shard_errors(shard.source, storage_options):
        fs, path = open_shard(shard, storage_options)
        files = fs if content is None else MarkedFiles(fs, content, shard.url)
        whole = fs.fs if isinstance(fs, PartOfFile) and fs.first else None
        yield kind, Source(files, path, shard.url, shard.size, form, storage_options, whole)
