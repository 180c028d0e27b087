"""Outputs: files beside a store, each written atomically."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.backends import remedy_of, storage_errors
from streaming_moments.storage.files.filesystems import one_line, open_file_system
from streaming_moments.storage.files.local_files import copy_whole
from streaming_moments.storage.files.output_folders import OutputFolder, OutputOfAnother


@contextmanager
def parquet_output(
    folder: OutputFolder, name: str, schema: pa.Schema
) -> Iterator[tuple[str, pq.ParquetWriter]]:
    """Open a writer of a Parquet file, which becomes visible if the `with` block raises no error.

    Yields its URL and the writer. Raises OutputOfAnother if another model has claimed the folder.
    """
    with tempfile.TemporaryDirectory(prefix="streaming-moments-") as scratch:
        local = os.path.join(scratch, "output.parquet")
        with pq.ParquetWriter(local, schema, compression="zstd") as writer:
            yield f"{folder.url}/{name}", writer
        put_whole(local, folder, name)


def put_whole(local: str, folder: OutputFolder, name: str) -> None:
    """Copy a local file into a folder under a name, atomically.

    Raises OutputOfAnother if another model has claimed the folder, and StoreError if the file
    cannot be written.
    """
    folder.require_own()
    storage_options = folder.folder.storage_options
    try:
        fs, path = open_file_system(f"{folder.url}/{name}", storage_options)
        fs.makedirs(fs._parent(path), exist_ok=True)
        if isinstance(fs, LocalFileSystem):
            copy_whole(local, path)
        else:
            # no temporary name is needed, as an object becomes visible only when it is complete
            fs.put_file(local, path)
    except storage_errors() as error:
        remedy = remedy_of(error) or "check the path and the connection, then run this again"
        raise StoreError(
            f"{folder.url}: the output cannot be written ({one_line(error, storage_options)}); "
            f"{remedy}"
        ) from error
    try:
        folder.require_own()
    except OutputOfAnother:
        # Another model has claimed the folder. Its process did not know of this file, so delete the
        # file here.
        with suppress(FileNotFoundError, *storage_errors()):
            if fs.cat_file(path) == Path(local).read_bytes():
                fs.rm_file(path)
        raise
