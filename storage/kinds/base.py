"""StoredKind: how a store reads and receives the records of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.reading import ReadBatch
from streaming_moments.storage.formats import START, Position, ReadLimits
from streaming_moments.storage.inbox.fields import RecordField
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.snapshot import Snapshot

StorageOptions = Mapping[str, object] | None


class ShardReader(Protocol):
    """Reader of the shards of one store, batch by batch; each worker receives it once."""

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[Any]]:
        """Read records of a shard from a position on; yield a batch or more, or raise ShardError.

        With `content`, raise ShardError if the shard no longer has that content.
        """


def columns_read(store: Snapshot) -> tuple[str, ...]:
    """Return the columns that a store counts; empty if its records are texts."""
    return tuple(store.reading.get("columns", ()))


@dataclass(frozen=True)
class StoredKind:
    """How the records of a kind are stored in shards, and sent one by one.

    foundation : class of the foundations of its stores
    reader : `reader(store, limits, storage_options)` reads the shards of a store
    fields : function that returns the fields of a record as it is sent to the service, or raises
        InvalidInput for a store whose records cannot be sent; None for a kind that the service
        does not accept
    columns : columns of the records of a store; empty if they are texts
    may_grow : whether records may be appended to a counted file
    takes_texts : whether a record is a text whose words are counted
    """

    foundation: Any
    reader: Callable[[Snapshot, ReadLimits, StorageOptions], ShardReader]
    fields: Callable[[Snapshot], tuple[RecordField, ...]] | None
    columns: Callable[[Snapshot], tuple[str, ...]] = columns_read
    may_grow: Callable[[Snapshot], bool] = lambda store: True
    takes_texts: Callable[[Snapshot], bool] = lambda store: False
