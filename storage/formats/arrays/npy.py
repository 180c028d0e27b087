"""npy: a NumPy array whose first axis is the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ShardError
from streaming_moments.storage.formats.base import (
    OfNumbers,
    Position,
    ReadLimits,
    Source,
)
from streaming_moments.storage.formats.compressions import opened
from streaming_moments.storage.lazy_libraries import pa
from streaming_moments.storage.npy_files import read_npy_head

_BLOCK_BYTES = 4 << 20


class Npy(OfNumbers):
    """Rows of numbers in a NumPy file, whose array is in C order."""

    name = "npy"
    suffixes = (".npy",)

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        [name] = columns if len(columns) == 1 else [None]
        if name is None:
            raise ShardError(
                source.url,
                f"is a single array, so it has no columns {', '.join(columns)}; give one column",
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
    """Convert rows of numbers to a table with one column of lists of equal length."""
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    column = pa.FixedSizeListArray.from_arrays(pa.array(native.reshape(-1)), values.shape[1])
    return pa.table({name: column})


def require_rows(shape: tuple[int, ...], kind: np.dtype[Any], url: str) -> None:
    """Raise ShardError for an array that is not two-dimensional or not numeric."""
    if kind.kind not in "biuf" or len(shape) != 2 or not shape[1]:
        raise ShardError(
            url, f"is an array {shape} of {kind}; give rows of numbers, in two dimensions"
        )


def _header(stream: IO[bytes], url: str) -> tuple[int, int, np.dtype[Any]]:
    try:
        shape, by_columns, kind = read_npy_head(stream)
    except (ValueError, EOFError) as error:
        raise ShardError(
            url, f"is not a NumPy array of numbers ({error}); write it again as rows of numbers"
        ) from error
    require_rows(shape, kind, url)
    if by_columns and shape[0] > 1 and shape[1] > 1:
        raise ShardError(
            url, "is stored by columns (Fortran order); write numpy.ascontiguousarray of it"
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
