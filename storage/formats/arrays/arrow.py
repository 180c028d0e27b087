"""Arrow: tables in Arrow's inter-process format, as a file or a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

import pyarrow as pa

from streaming_moments.errors import ShardError
from streaming_moments.storage.files.filesystems import one_line
from streaming_moments.storage.formats.base import (
    OfNumbers,
    Position,
    ReadLimits,
    Source,
    place_of_column,
    table_chunks,
)

_MAGIC = b"ARROW1"
_ROWS = 1024


class Arrow(OfNumbers):
    """Rows of numbers in columns of Arrow's record batches. Each batch is read as a whole."""

    name = "arrow"
    suffixes = (".arrow", ".feather", ".ipc")

    def tables(
        self, source: Source, columns: Sequence[str], limits: ReadLimits, start: Position
    ) -> Iterator[tuple[pa.Table, Position]]:
        return table_chunks(_tables(source, list(dict.fromkeys(columns)), limits, start), limits)

    def share_before(self, source: Source, place: Position) -> float:
        """Return the share of a shard's rows that are before a place in it."""
        with source.fs.open(source.path, "rb") as stream:
            rows: int = sum(batch.num_rows for batch in _batches(stream, None, source.url))
        return float(min(place.passed / max(rows, 1), 1.0))


def _tables(
    source: Source, columns: list[str], limits: ReadLimits, start: Position
) -> Iterator[tuple[pa.Table, Position]]:
    if source.compressed:
        raise ShardError(
            source.url,
            "is a compressed Arrow file, whose record batches may have any size; decompress it, or "
            "let Arrow's writer compress the batches",
        )
    passed = 0
    with source.fs.open(source.path, "rb") as stream:
        for number, batch in enumerate(_batches(stream, columns, source.url), start=1):
            if batch.nbytes > limits.decoded_bytes:
                raise ShardError(
                    source.url,
                    f"record batch {number} has {batch.nbytes} bytes, above the limit of "
                    f"{limits.decoded_bytes}",
                    "write it again with smaller batches, or raise {option.max_row_group_bytes}",
                )
            for begin in range(0, batch.num_rows, _ROWS):
                part = batch[begin : begin + _ROWS]
                before = max(0, start.passed - passed)
                passed += part.num_rows
                if before < part.num_rows:
                    yield pa.Table.from_batches([part[before:]]), Position(passed)


def _batches(stream: IO[bytes], columns: list[str] | None, url: str) -> Iterator[pa.RecordBatch]:
    """Read record batches with the given columns; None means all columns."""
    try:
        head = stream.read(len(_MAGIC))
        of_file = head == _MAGIC
        # the reader of streams starts at the current position, the reader of files at the end
        stream.seek(0)
        opener = pa.ipc.open_file if of_file else pa.ipc.open_stream
        names = opener(stream).schema.names
        chosen = names if columns is None else columns
        places = [place_of_column(names, name, "create.columns", url) for name in chosen]
        stream.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=sorted(places), use_threads=False)
        reader = opener(stream, options=options)
        if not of_file:
            for batch in reader:
                yield batch.select(chosen)
            return
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number).select(chosen)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        raise ShardError(
            url,
            f"is not an Arrow file or stream, or is truncated ({one_line(error)}); write it again",
        ) from error
