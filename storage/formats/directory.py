"""Directory: a folder of texts with one document in each file, or one file of such a folder."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from streaming_moments.errors import ShardError, printable
from streaming_moments.storage.files.filesystems import (
    FileState,
    file_state,
    files_under,
    shard_errors,
)
from streaming_moments.storage.files.parts import DOCUMENT
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.formats.base import (
    BYTE_ORDER_MARK,
    Format,
    Position,
    ReadLimits,
    Source,
    decoded,
    refuse_long,
)
from streaming_moments.storage.formats.compressions import opened
from streaming_moments.storage.formats.text_chunks import encoded_in_chunks


class Directory(Format):
    """A folder of texts, in which each file is one document."""

    name = "directory"
    suffixes = ()
    of_folder = True

    def chunks(
        self, source: Source, limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Array, Position]]:
        return encoded_in_chunks(_files(source, limits.document_bytes, start), limits)

    def ids(
        self, source: Source, column: str | None, limits: ReadLimits
    ) -> Iterator[pa.Array] | None:
        """Return the path of each file within the folder, which is the id of its document."""
        if column is not None:
            return super().ids(source, column, limits)
        names = [_name_of(source, state.path) for state in _states(source)]
        return iter([pa.array(names, pa.string())])

    def share_before(self, source: Source, place: Position) -> float:
        before = _states(source)[: place.passed]
        return sum(state.size for state in before) / max(source.size, 1)


def _states(source: Source) -> list[FileState]:
    if source.url.endswith(DOCUMENT):
        return [file_state(source.fs, source.path)]
    return files_under(source.fs, source.path, source.url)


def _files(
    source: Source, document_bytes: int, start: Position
) -> Iterator[tuple[str, int, Position]]:
    fs, url = source.fs, source.url
    states = islice(_states(source), start.passed, None)
    for passed, state in enumerate(states, start=start.passed + 1):
        name = f"file {_name_of(source, state.path)}"
        content = b""
        try:
            with shard_errors(url, source.storage_options):
                if state.size:
                    with opened(fs, state.path) as stream:
                        content = stream.read(document_bytes + 1)
        except ShardError as error:
            raise ShardError(url, f"{name} {error.reason}") from error
        refuse_long(len(content), name, url, document_bytes)
        text = decoded(content.removeprefix(BYTE_ORDER_MARK), name, url)
        yield text, len(content), Position(passed)


def _name_of(source: Source, path: str) -> str:
    within = path[len(source.path) :].lstrip("/") or path.rpartition("/")[2]
    return printable(shard_name(within))
