"""Topic proportions of documents as Parquet, one file a shard, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem
from numpy.typing import NDArray

from streaming_moments.errors import StoreError
from streaming_moments.storage.files.filesystems import one_line, open_file_system, storage_errors


@dataclass(frozen=True, eq=False)
class ProportionsFile:
    """An open file of proportions.

    Parameters
    ----------
    url : str
        Where it appears once it is complete.
    writer : pyarrow.parquet.ParquetWriter
        Of `proportions_schema`.
    kept : pyarrow.ChunkedArray, optional
        A column of the shard that goes with its documents.
    """

    url: str
    writer: pq.ParquetWriter
    kept: pa.ChunkedArray | None = None

    @classmethod
    @contextmanager
    def create(
        cls,
        folder: str,
        shard_url: str,
        n_topics: int,
        storage_options: Mapping[str, object] | None = None,
        kept: tuple[str, pa.ChunkedArray] | None = None,
    ) -> Iterator[ProportionsFile]:
        """Write to a temporary file and put it in place when the block ends without an error.

        Raises
        ------
        StoreError
            The folder cannot be written: names it.
        """
        schema = proportions_schema(n_topics, shard_url)
        if kept is not None:
            schema = schema.append(pa.field(kept[0], kept[1].type))
        name = proportions_file(shard_url)
        with parquet_output(folder, name, schema, storage_options) as (url, writer):
            yield cls(url, writer, None if kept is None else kept[1])

    def write(
        self, first: int, lengths: NDArray[np.int64], proportions: NDArray[np.float64]
    ) -> None:
        """Add documents `first, first + 1, ...`.

        Parameters
        ----------
        first : int
            Number of the first of them in the shard.
        lengths : (documents,) int64
            In vocabulary tokens.
        proportions : (documents, k) float64
            Rows on the simplex.
        """
        documents = np.arange(first, first + lengths.size, dtype=np.int64)
        values = pa.array(proportions.ravel())
        columns = [
            pa.array(documents),
            pa.array(lengths),
            pa.array(proportions.argmax(axis=1).astype(np.int32)),
            pa.FixedSizeListArray.from_arrays(values, proportions.shape[1]),
            *(() if self.kept is None else (self.kept.slice(first, lengths.size),)),
        ]
        self.writer.write_table(pa.Table.from_arrays(columns, schema=self.writer.schema))


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
        _put(local, folder, url, storage_options)


def proportions_schema(n_topics: int, shard_url: str) -> pa.Schema:
    """Columns document, length, topic (the largest) and the k proportions.

    Examples
    --------
    >>> proportions_schema(2, "/corpus/a.txt").names
    ['document', 'length', 'topic', 'proportions']
    """
    return pa.schema(
        [
            ("document", pa.int64()),
            ("length", pa.int64()),
            ("topic", pa.int32()),
            ("proportions", pa.list_(pa.float64(), n_topics)),
        ],
        metadata={"shard": shard_url},
    )


def proportions_file(shard_url: str) -> str:
    """Name of a shard's output: its own name, and a mark of its URL as names may repeat.

    Examples
    --------
    >>> proportions_file("/corpus/1990.jsonl.gz")
    '1990.jsonl.gz-ed4363b8.parquet'
    """
    name = shard_url.rstrip("/").rsplit("/", 1)[-1] or "shard"
    return f"{name}-{hashlib.sha256(shard_url.encode()).hexdigest()[:8]}.parquet"


def _put(local: str, folder: str, url: str, storage_options: Mapping[str, object] | None) -> None:
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
