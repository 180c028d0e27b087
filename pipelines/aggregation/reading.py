"""Context that every task on a worker needs to read shards and prepare their records."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming_moments.errors import BoundExceeded, ShardError
from streaming_moments.statistics.base import Prepared
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.reading import ReadBatch
from streaming_moments.storage.formats import START, Position, ReadLimits
from streaming_moments.storage.kinds.base import ShardReader
from streaming_moments.storage.kinds.registry import reader_of
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


@dataclass(frozen=True, eq=False)
class ReadingContext:
    """All that a read task needs besides its shards; loaded once on the cluster."""

    store: MomentStore
    reader: ShardReader
    limits: ReadLimits
    storage_options: Mapping[str, object] | None = field(repr=False)

    @classmethod
    def of(
        cls,
        store: MomentStore,
        limits: ReadLimits,
        storage_options: Mapping[str, object] | None,
    ) -> ReadingContext:
        """Make the context. This runs as a task, so that Dask repeats it if its worker dies."""
        return cls(store, reader_of(store, limits, storage_options), limits, storage_options)

    def __sizeof__(self) -> int:
        # Dask has to send this object to a worker, so its size includes the arrays of the reader.
        buffers: list[pickle.PickleBuffer] = []
        shell = pickle.dumps(self, protocol=5, buffer_callback=buffers.append)
        return len(shell) + sum(buffer.raw().nbytes for buffer in buffers)

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[Any]]:
        """Yield the batches of a shard from a position on; errors as in `ShardReader.read`."""
        return self.reader.read(shard, start, content)

    def prepared(
        self, shard: Shard, content: ShardContent | None = None
    ) -> Iterator[tuple[Prepared, ReadBatch[Any]]]:
        """Yield each batch of a shard as a pair: prepared for the sums, and as it was read.

        Raises ShardError if the shard is unreadable or changed meanwhile, or a record is too large
        to add.
        """
        seen = 0
        for read in self.read(shard, START, content):
            try:
                prepared = self.store.foundation.prepared(read.batch)
            except BoundExceeded as error:
                raise ShardError(
                    shard.url, f"record {seen} or a later one cannot be counted: {error}"
                ) from error
            seen += prepared.totals.n_documents
            yield prepared, read
