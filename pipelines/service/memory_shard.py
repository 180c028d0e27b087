"""Lines in the memory of this process, read as a shard."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec

from streaming_moments.storage.shards import Shard


@contextmanager
def as_shard(lines: bytes) -> Iterator[Shard]:
    """Yield lines as a shard, for the duration of the block."""
    files, url = fsspec.filesystem("memory"), f"memory:///read/{uuid.uuid4().hex}.jsonl"
    files.pipe_file(url, lines)
    try:
        yield Shard(url, len(lines))
    finally:
        files.rm_file(url)
