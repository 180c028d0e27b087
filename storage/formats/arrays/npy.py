"""npy: an array of NumPy, its first axis the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.formats.base import (
    OfNumbers,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.formats.compressions import opened

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = LazyModule("pyarrow")

_HEADER_BYTES = 10_000
_BLOCK_BYTES = 4 << 20
# what reading a damaged header as Python's raises; MemoryError where it nests too deep
_NO_LITERAL = (SyntaxError, TokenError, TypeError, RecursionError, MemoryError)


class Npy(OfNumbers):
    """Rows of numbers, in the order of C."""

    name = "npy"
    suffixes = (".npy",)

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        [name] = columns if len(columns) == 1 else [None]
        if name is None:
            raise ShardError(
                source.url, f"is one array, not the columns {', '.join(columns)}; give one name"
            )
        with opened(source.fs, source.path) as stream:
            rows, width, kind = _header(stream, source.url)
            row_bytes = width * kind.itemsize
            passed = start.passed
            begin = 0 if source.compressed else stream.tell()
            if source.compressed:
                _read(stream, passed * row_bytes, source.url, keep=False)
            else:
                stream.seek(begin + passed * row_bytes)
            most = min(limits.batch_documents, max(1, limits.batch_bytes // max(1, row_bytes)))
            while passed < rows:
                number = min(most, rows - passed)
                content = _read(stream, number * row_bytes, source.url)
                values = np.frombuffer(content, kind).reshape(number, width)
                passed += number
                offset = 0 if source.compressed else begin + passed * row_bytes
                yield table_of(values, name), Position(passed, offset)


def table_of(values: NDArray[Any], name: str) -> pa.Table:
    """Rows of numbers as a table of one column of lists of one length."""
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    column = pa.FixedSizeListArray.from_arrays(pa.array(native.reshape(-1)), values.shape[1])
    return pa.table({name: column})


def require_rows(shape: tuple[int, ...], kind: np.dtype[Any], url: str) -> None:
    """Raise ShardError for an array whose dimensions or type are not those of rows of numbers."""
    if kind.kind not in "biuf" or len(shape) != 2 or not shape[1]:
        raise ShardError(
            url, f"is {shape} of {kind}; give rows of numbers, an array of two dimensions"
        )


def _header(stream: IO[bytes], url: str) -> tuple[int, int, np.dtype[Any]]:
    try:
        version = npy_format.read_magic(stream)
        read = (
            npy_format.read_array_header_1_0
            if version == (1, 0)
            else npy_format.read_array_header_2_0
        )
        shape, by_columns, kind = read(stream, max_header_size=_HEADER_BYTES)
    except (ValueError, EOFError, *_NO_LITERAL) as error:
        raise ShardError(url, f"is no array of NumPy ({error}); write it again") from error
    require_rows(shape, kind, url)
    if by_columns and shape[0] > 1 and shape[1] > 1:
        raise ShardError(
            url, "lies by columns (Fortran's order); write numpy.ascontiguousarray of it"
        )
    return shape[0], shape[1], kind


def _read(stream: IO[bytes], size: int, url: str, keep: bool = True) -> bytes:
    parts, left = [], size
    while left:
        block = stream.read(min(left, _BLOCK_BYTES))
        if not block:
            raise ShardError(url, f"ends {left} bytes too early; write it again")
        left -= len(block)
        if keep:
            parts.append(block)
    return b"".join(parts)
