"""Libraries for files and tables, each loaded at the first access to one of its names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import LazyModule

if TYPE_CHECKING:
    import numcodecs.blosc as blosc
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import tenacity
    import zarr
    import zarr.core.buffer.cpu as cpu
    import zarr.storage as stores
else:
    blosc = LazyModule("numcodecs.blosc")
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")
    pq = LazyModule("pyarrow.parquet")
    tenacity = LazyModule("tenacity")
    zarr = LazyModule("zarr")
    cpu = LazyModule("zarr.core.buffer.cpu")
    stores = LazyModule("zarr.storage")

__all__ = ["blosc", "cpu", "pa", "pc", "pq", "stores", "tenacity", "zarr"]
