"""Outputs: files beside a store, each there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.filesystems import one_line, open_file_system, storage_errors


@contextmanager
def parquet_output(
    folder: str,
    name: str,
    schema: pa.Schema,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[tuple[str, pq.ParquetWriter]]:
    """URL and writer of a Parquet file that is put in place when the block ends without an error.

    Raises
    ------
    StoreError
        The folder cannot be written: names it.
    """
    url = f"{folder.rstrip('/')}/{name}"
    with tempfile.TemporaryDirectory(prefix="streaming-moments-") as scratch:
        local = os.path.join(scratch, "output.parquet")
        with pq.ParquetWriter(local, schema, compression="zstd") as writer:
            yield url, writer
        put_whole(local, folder, url, storage_options)


def put_whole(
    local: str, folder: str, url: str, storage_options: Mapping[str, object] | None
) -> None:
    """Put a local file at a URL in a folder, where it appears whole.

    Raises
    ------
    StoreError
        The folder cannot be written: names it.
    """
    try:
        fs, path = open_file_system(url, storage_options)
        fs.makedirs(fs._parent(path), exist_ok=True)
        if isinstance(fs, LocalFileSystem):
            _replace(local, path)
        else:
            # an object is seen when it is whole
            fs.put_file(local, path)
    except storage_errors() as error:
        raise StoreError(
            f"{folder}: the output cannot be written ({one_line(error, storage_options)}); "
            "check the path, the space, the permissions and the credentials"
        ) from error


def _replace(local: str, path: str) -> None:
    aside = f"{path}.{uuid.uuid4().hex}.tmp"
    try:
        shutil.copyfile(local, aside)
        os.replace(aside, path)
    finally:
        if os.path.exists(aside):
            os.remove(aside)
