"""Lines in the memory of this process, read as a shard of a store would be."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import fsspec

from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.readers import ShardReader, reader_of
from streaming_moments.storage.store.store import MomentStore


@contextmanager
def as_shard(lines: bytes) -> Iterator[Shard]:
    """Lines as a shard, for as long as the context lasts."""
    files, url = fsspec.filesystem("memory"), f"memory:///read/{uuid.uuid4().hex}.jsonl"
    files.pipe_file(url, lines)
    try:
        yield Shard(url, len(lines))
    finally:
        files.rm_file(url)


@dataclass(frozen=True)
class Probe:
    """Whether a document can be counted: one that cannot would spoil the shard of all beside it.

    Parameters
    ----------
    store : MomentStore
        That is to count it.
    """

    store: MomentStore

    def __call__(self, line: bytes) -> None:
        """Refuse one that cannot, as a line.

        Raises
        ------
        ShardError
            It cannot be read.
        BoundExceeded
            It is too large for the sums.
        """
        with as_shard(line) as shard:
            for read in self._reader.read(shard):
                self.store.foundation.prepared(read.batch)

    @cached_property
    def _reader(self) -> ShardReader:
        return reader_of(self.store, DEFAULT_LIMITS)
