"""Zarr: an array of version 3 in a folder, or in a group, whose first axis is the rows."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from streaming_moments.errors import ShardError, printable
from streaming_moments.storage.formats.arrays.npy import require_rows, table_of
from streaming_moments.storage.formats.base import (
    OfNumbers,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.lazy_libraries import cpu, stores, zarr

if TYPE_CHECKING:
    import pyarrow as pa
    from zarr.core.buffer import Buffer

_DESCRIPTION = "zarr.json"
_BLOSC = ("blosc", "numcodecs.blosc")
# bytes of the header; its last four bytes are the size of header and content, little-endian
_BLOSC_HEADER = 16


class ZarrArray(OfNumbers):
    """Rows of numbers in a Zarr array. The rows of a chunk are read together."""

    name = "zarr"
    suffixes = (".zarr",)
    of_folder = True

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        if len(columns) != 1:
            raise ShardError(
                source.url,
                f"can be read as one array only, not as {', '.join(columns)}; "
                "give the name of one array",
            )
        try:
            yield from _tables(source, columns[0], limits, start)
        except (ValueError, KeyError, TypeError, RuntimeError, zlib.error) as error:
            raise ShardError(
                source.url, f"holds an array that cannot be read ({error!r}); write it again"
            ) from error

    def share_before(self, source: Source, place: Position) -> float:
        """Return the share of rows before a place, for an array at the root of its folder."""
        rows = int(_Array(source, "").stored.shape[0])
        return min(place.passed / max(rows, 1), 1.0)


class _Array:
    """A Zarr array, with the files of a few of its chunks in memory."""

    def __init__(self, source: Source, name: str) -> None:
        self._source = source
        self._files: dict[str, Buffer] = {}
        root = json.loads(self._read(_DESCRIPTION))
        self._folder = f"{name}/" if root["node_type"] == "group" else ""
        self._read(f"{self._folder}{_DESCRIPTION}")
        memory = stores.MemoryStore(self._files)
        self.stored: Any = zarr.open_array(memory, path=self._folder.rstrip("/"), mode="r")

    @property
    def chunk(self) -> tuple[int, ...]:
        """Shape of the chunk in one file."""
        shape: tuple[int, ...] = self.stored.metadata.chunk_grid.chunk_shape
        return shape

    def rows(self, start: int, stop: int) -> Any:
        """Read rows of one chunk, then free its files; a missing chunk has the fill value."""
        row, width = start // self.chunk[0], self.stored.shape[1]
        places = [(row, column) for column in range(-(-width // self.chunk[1]))]
        keys = [f"{self._folder}{self.stored.metadata.encode_chunk_key(one)}" for one in places]
        for key in keys:
            self._require_whole(self._read(key, absent=True), key)
        found = self.stored[start:stop]
        for key in keys:
            self._files.pop(key, None)
        return found

    def _require_whole(self, content: bytes, key: str) -> None:
        # the decoder trusts the size in the header, and would read past the end of a shorter file
        if not content or self.stored.metadata.codecs[-1].to_dict()["name"] not in _BLOSC:
            return
        said = int.from_bytes(content[_BLOSC_HEADER - 4 : _BLOSC_HEADER], "little")
        if len(content) < _BLOSC_HEADER or len(content) != said:
            raise ShardError(
                self._source.url,
                f"has a file {key} of {len(content)} bytes that cannot be read, because its "
                f"header gives {said} bytes; write it again",
            )

    def _read(self, key: str, absent: bool = False) -> bytes:
        try:
            with self._source.fs.open(f"{self._source.path.rstrip('/')}/{key}", "rb") as stream:
                content: bytes = stream.read()
        except FileNotFoundError as error:
            if absent:
                return b""
            raise ShardError(
                self._source.url,
                f"has no {printable(key)}",
                "give the folder of a Zarr 3 array, or of a group that contains the array named "
                "by {create.columns}",
            ) from error
        self._files[key] = cpu.Buffer.from_bytes(content)
        return content


def _tables(
    source: Source, name: str, limits: ReadLimits, start: Position
) -> Iterator[tuple[pa.Table, Position]]:
    array = _Array(source, name)
    shape = array.stored.shape
    require_rows(shape, array.stored.dtype, source.url)
    row_bytes = shape[1] * array.stored.dtype.itemsize
    if array.chunk[0] * row_bytes > limits.decoded_bytes:
        raise ShardError(
            source.url,
            f"has chunks of {array.chunk[0]} rows, {array.chunk[0] * row_bytes} bytes, above the "
            f"limit of {limits.decoded_bytes}",
            "write it again with smaller chunks, or raise {option.max_row_group_bytes}",
        )
    most = min(limits.batch_documents, max(1, limits.batch_bytes // row_bytes))
    passed = start.passed
    while passed < shape[0]:
        end = min(shape[0], (passed // array.chunk[0] + 1) * array.chunk[0])
        rows = array.rows(passed, end)
        for begin in range(0, len(rows), most):
            part = rows[begin : begin + most]
            passed += len(part)
            yield table_of(part, name), Position(passed)
