"""Zip: an archive of texts, one document for each member, in order of names."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import IO
from zipfile import BadZipFile, ZipFile, ZipInfo

import pyarrow as pa

from streaming_moments.errors import ShardError, printable
from streaming_moments.storage.formats.base import (
    BYTE_ORDER_MARK,
    Format,
    Position,
    ReadLimits,
    Source,
    decoded,
    refuse_long,
)
from streaming_moments.storage.formats.text_chunks import encoded_in_chunks

_MEMBERS = 1_000_000
_ENCRYPTED = 1
# files in the archive with these suffixes are no texts, but shards of other formats; ".dat" is not
# in the list, as such a file may be a text
_OF_SHARDS = (
    *(".parquet", ".pq", ".jsonl", ".ndjson", ".csv", ".tsv", ".tab", ".ldac", ".lda-c"),
    *(".arrow", ".feather", ".ipc", ".npy"),
)
_PACKED = (".zip", ".gz", ".zst", ".bz2", ".xz", ".7z", ".tar", ".rar")
# errors that mean a damaged archive; errors of the operating system are handled elsewhere
_BROKEN = (BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, lzma.LZMAError)


class Zip(Format):
    """An archive in which each file is a document; hidden files and those of macOS are skipped."""

    name = "zip"
    suffixes = (".zip",)

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Array, Position]]:
        return encoded_in_chunks(_members(source, limits.document_bytes, start), limits)

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        """Return the names of the files in the archive, which are the ids of their documents."""
        if column is not None:
            return super().ids(source, column, limits)
        with source.fs.open(source.path, "rb") as stored, _opened(stored, source.url) as archive:
            names = [printable(one.filename) for one in _listed(archive, source.url)]
        return iter([pa.array(names, pa.string())])

    def share_before(self, source: Source, place: Position) -> float:
        with source.fs.open(source.path, "rb") as stored, _opened(stored, source.url) as archive:
            sizes = [one.compress_size for one in _listed(archive, source.url)]
        return sum(sizes[: place.passed]) / max(sum(sizes), 1)


def _opened(stored: IO[bytes], url: str) -> ZipFile:
    try:
        return ZipFile(stored)
    except _BROKEN as error:
        raise ShardError(url, f"is not a zip archive ({error}); write it again") from error


def _listed(archive: ZipFile, url: str) -> list[ZipInfo]:
    found = archive.infolist()
    if len(found) > _MEMBERS:
        raise ShardError(
            url, f"holds {len(found)} files, more than {_MEMBERS}; split it into several archives"
        )
    kept = [
        one
        for one in found
        if not one.is_dir()
        and not any(part.startswith((".", "__MACOSX")) for part in one.filename.split("/"))
    ]
    for one in kept:
        name = printable(one.filename)
        if one.filename.lower().endswith((*_OF_SHARDS, *_PACKED)):
            raise ShardError(
                url, f"holds {name}, which is not a text; unpack the archive and give its files"
            )
        if one.flag_bits & _ENCRYPTED:
            raise ShardError(
                url, f"holds {name}, which is encrypted; unpack the archive and give its files"
            )
    return sorted(kept, key=lambda one: one.filename)


def _members(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[str, int, Position]]:
    url = source.url
    with source.fs.open(source.path, "rb") as stored, _opened(stored, url) as archive:
        members = islice(_listed(archive, url), start.passed, None)
        for passed, member in enumerate(members, start=start.passed + 1):
            name = f"file {printable(member.filename)}"
            try:
                with archive.open(member) as stream:
                    content = stream.read(document_bytes + 1)
            except _BROKEN as error:
                raise ShardError(
                    url, f"{name} cannot be read ({error}); write the archive again"
                ) from error
            refuse_long(len(content), name, url, document_bytes)
            text = decoded(content.removeprefix(BYTE_ORDER_MARK), name, url)
            yield text, len(content), Position(passed)
