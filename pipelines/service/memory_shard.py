"""Lines in the memory of this process, read as a shard of a store would be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec

from streaming_moments.storage.shards import Shard


@contextmanager
def as_shard(lines: bytes) -> Iterator[Shard]:
    """Lines as a shard, for as long as the context lasts."""
    files, url = fsspec.filesystem("memory"), f"memory:///read/{uuid.uuid4().hex}.jsonl"
    files.pipe_file(url, lines)
    try:
        yield Shard(url, len(lines))
    finally:
        files.rm_file(url)
