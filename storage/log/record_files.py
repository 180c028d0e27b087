"""Record files: the records of a segment's shards as an Arrow table and a Parquet file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.urls import shard_name
from streaming_moments.storage.lazy_libraries import pa, pc, pq

COLUMNS = ("url", "size", "fingerprint", "documents", "tokens", "outside")
_SEGMENT = "segment"  # name of the column with the segment of each record
_FEW = 1 << 14  # up to this many URLs are compared without Arrow's compute module
_HTTP = "(?i)^https?://"


@cache
def record_schema() -> pa.Schema:
    """Return the Arrow schema of a table of shard records."""
    texts = ("url", "fingerprint")
    return pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in COLUMNS])


def table_to_parquet(table: pa.Table) -> bytes:
    """Encode a table of records as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def tables_to_parquet(tables: Mapping[str, pa.Table]) -> bytes:
    """Encode the records of several segments as Parquet, with a column of their identifiers."""
    marked = [
        table.append_column(_SEGMENT, pa.repeat(pa.scalar(name, pa.string()), table.num_rows))
        for name, table in tables.items()
    ]
    return table_to_parquet(pa.concat_tables(marked))


def tables_from_parquet(content: bytes, where: str) -> dict[str, pa.Table]:
    """Decode the records of each segment from a file that `tables_to_parquet` made."""
    table, segments = _read(content, where, _SEGMENT)
    encoded = segments.combine_chunks().dictionary_encode()
    places = encoded.indices.to_numpy()
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    sizes = np.diff(starts, append=places.size)
    names = encoded.dictionary.to_pylist()
    return {
        names[places[start]]: table.slice(start, size)
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    }


def table_from_parquet(content: bytes, where: str) -> pa.Table:
    """Decode a Parquet file of records, and convert names to the present form of `shard_name`."""
    return _read(content, where)[0]


def _read(content: bytes, where: str, *more: str) -> tuple[pa.Table, Any]:
    """Decode as `table_from_parquet` does, and also return further columns."""
    try:
        found = pq.ParquetFile(pa.BufferReader(content)).read().select([*COLUMNS, *more])
        table = found.select([*COLUMNS])
        table = table if table.schema.equals(record_schema()) else table.cast(record_schema())
    except (pa.ArrowException, KeyError) as error:
        raise StoreError(
            f"{where} is not a table of shard records ({error}); restore it"
        ) from error
    # convert names: earlier versions of the package neither removed signatures nor converted hosts
    # to lower case
    if _any_of_web(table["url"]):
        names = [shard_name(url) for url in table["url"].to_pylist()]
        table = table.set_column(0, record_schema().field("url"), pa.array(names, pa.string()))
    return table, found[more[0]] if more else None


def _any_of_web(urls: pa.ChunkedArray) -> bool:
    if len(urls) > _FEW:
        return bool(pc.any(pc.match_substring_regex(urls, _HTTP)).as_py())
    # do without the compute module, as loading it takes longer than a few comparisons
    return any(re.match(_HTTP, url) for url in urls.to_pylist())
