"""Record files: the records of a segment's shards as an Arrow table and a Parquet file."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from streaming_moments.errors import StoreError
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.storage.files.urls import shard_name

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")
    pq = LazyModule("pyarrow.parquet")

COLUMNS = ("url", "size", "fingerprint", "documents", "tokens", "outside")
_FEW = 1 << 14  # URLs
_HTTP = "(?i)^https?://"


@cache
def record_schema() -> pa.Schema:
    """Arrow schema of a table of shard records."""
    texts = ("url", "fingerprint")
    return pa.schema([(name, pa.string() if name in texts else pa.int64()) for name in COLUMNS])


def table_to_parquet(table: pa.Table) -> bytes:
    """Encode a table of records as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def table_from_parquet(content: bytes, where: str) -> pa.Table:
    """Decode a Parquet file of records; converts names to the present form of `shard_name`."""
    try:
        table = pq.ParquetFile(pa.BufferReader(content)).read().select([*COLUMNS])
        table = table if table.schema.equals(record_schema()) else table.cast(record_schema())
    except (pa.ArrowException, KeyError) as error:
        raise StoreError(
            f"{where} is not a table of shard records ({error}); restore it"
        ) from error
    # earlier versions of the package stored signatures, and hosts as they were spelled
    if _any_of_web(table["url"]):
        names = [shard_name(url) for url in table["url"].to_pylist()]
        table = table.set_column(0, record_schema().field("url"), pa.array(names, pa.string()))
    return table


def _any_of_web(urls: pa.ChunkedArray) -> bool:
    if len(urls) > _FEW:
        return bool(pc.any(pc.match_substring_regex(urls, _HTTP)).as_py())
    # loading the compute module takes longer than a few comparisons
    return any(re.match(_HTTP, url) for url in urls.to_pylist())
