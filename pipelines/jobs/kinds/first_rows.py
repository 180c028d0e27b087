"""The first rows of a shard: names, types and some values of its columns, in bounded memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from itertools import islice
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from streaming_moments.storage.formats.base import DEFAULT_LIMITS
from streaming_moments.storage.formats.compressions import opened
from streaming_moments.storage.shards import Shard, ShardFormat, open_shard

_ROWS = 100
_BYTES = 1 << 20  # most bytes to read of a text file
_FOOTER = 8  # number of last bytes of a Parquet file, which begin with the length of its footer


def first_rows(
    shard: Shard, form: ShardFormat, storage_options: Mapping[str, object] | None
) -> pa.Table | None:
    """Read up to 100 rows of a shard; return None for a format without columns.

    A Parquet file with a large first row group gives its columns without rows. If reading fails,
    return None, because the job that reads the whole shard reports the error.
    """
    kind = form.kind_of(shard.url)
    try:
        fs, path = open_shard(shard, storage_options)
        with fs.open(path, "rb") if kind == "parquet" else opened(fs, path) as stream:
            if kind == "parquet":
                return _of_parquet(stream, shard.size)
            if kind == "jsonl":
                return _of_json(_lines(stream))
            if kind in ("csv", "tsv"):
                return _of_csv(_lines(stream), "," if kind == "csv" else "\t")
    # ignore errors here, because the job that reads the whole shard reports the place of an error
    except (OSError, ValueError, EOFError, RecursionError, pa.ArrowException, csv.Error):
        pass
    return None


def _of_parquet(stream: IO[bytes], size: int) -> pa.Table | None:
    stream.seek(max(0, size - _FOOTER))
    if int.from_bytes(stream.read(4), "little") > DEFAULT_LIMITS.document_bytes:
        return None
    file = pq.ParquetFile(stream)
    whole = file.metadata.num_row_groups
    if whole and file.metadata.row_group(0).total_byte_size <= DEFAULT_LIMITS.decoded_bytes:
        batches = file.iter_batches(_ROWS, row_groups=[0], use_threads=False)
        return pa.Table.from_batches(islice(batches, 1), file.schema_arrow)
    return file.schema_arrow.empty_table()


def _lines(stream: IO[bytes]) -> list[str]:
    """Read the first whole lines of a text file."""
    block = stream.read(_BYTES)
    whole = block if len(block) < _BYTES else block[: block.rfind(b"\n") + 1]
    return whole.decode("utf-8-sig").splitlines()[: _ROWS + 1]


def _of_json(lines: list[str]) -> pa.Table:
    return pa.Table.from_pylist([json.loads(line) for line in lines[:_ROWS] if line.strip()])


def _of_csv(lines: list[str], separator: str) -> pa.Table:
    names, *rows = csv.reader(lines, delimiter=separator)
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    return pa.table({name: _typed(values) for name, values in zip(names, columns, strict=False)})


def _typed(values: tuple[str, ...]) -> Any:
    """Convert texts to numbers if all are numbers; an empty text is missing."""
    for kind in (int, float):
        try:
            return pa.array([kind(one) if one else None for one in values])
        except (ValueError, OverflowError):
            continue
    return pa.array(values)
