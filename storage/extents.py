"""Extents: how much of a shard lies before a place in it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from streaming_moments.storage.filesystems import shard_errors
from streaming_moments.storage.lines import Position
from streaming_moments.storage.shards import (
    Shard,
    ShardFormat,
    compression_of,
    files_of,
    open_shard,
)

_BLOCK_BYTES = 1 << 16


def share_before(
    shard: Shard,
    form: ShardFormat,
    place: Position,
    storage_options: Mapping[str, object] | None = None,
) -> float:
    r"""Share of a shard's stored bytes before a place, 0 to 1, without reading its documents.

    Of Parquet it is the share of the rows. A compressed file is decompressed up to the place.

    Parameters
    ----------
    shard, form, storage_options
        As for `read_shard`.
    place : Position
        After a batch of the shard.

    Raises
    ------
    ShardError
        The shard is gone or cannot be read.

    Examples
    --------
    >>> import fsspec
    >>> fsspec.filesystem("memory").pipe("/extents/a.txt", b"law\nsea\n")
    >>> share_before(Shard("memory:///extents/a.txt", 8), ShardFormat(), Position(1, 4))
    0.5
    """
    with shard_errors(shard.source, storage_options):
        kind = form.kind_of(shard.url)
        if kind == "directory":
            before = files_of(shard, storage_options)[: place.passed]
            return sum(state.size for state in before) / max(shard.size, 1)
        fs, path = open_shard(shard, storage_options)
        with fs.open(path, "rb") as stored:
            if kind == "parquet":
                rows = int(pq.ParquetFile(stored).metadata.num_rows)
                return place.passed / max(rows, 1)
            codec = compression_of(path)
            if codec is None:
                return place.offset / max(shard.size, 1)
            lines = 0
            stream = pa.CompressedInputStream(pa.PythonFile(stored, mode="r"), codec)
            while lines < place.passed and (block := stream.read(_BLOCK_BYTES)):
                lines += block.count(b"\n")
            return min(int(stored.tell()) / max(shard.size, 1), 1.0)
