"""Stored kinds: how the records of each kind of statistics are read and sent, one kind per line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.kinds.counts import COUNTS
from streaming_moments.storage.kinds.edges import EDGES
from streaming_moments.storage.kinds.sequences import SEQUENCES
from streaming_moments.storage.kinds.sets import SETS
from streaming_moments.storage.kinds.vectors import VECTORS
from streaming_moments.storage.kinds.views import VIEWS
from streaming_moments.storage.store.snapshot import Snapshot

_ALL: tuple[StoredKind, ...] = (COUNTS, VIEWS, SEQUENCES, VECTORS, EDGES, SETS)
STORED_KINDS: Mapping[str, StoredKind] = MappingProxyType(
    {one.foundation.kind: one for one in _ALL}
)


def reader_of(
    store: Snapshot, limits: ReadLimits, storage_options: StorageOptions = None
) -> ShardReader:
    """Make the reader of the shards of a store."""
    return STORED_KINDS[store.kind].reader(store, limits, storage_options)


def fields_of(store: Snapshot) -> tuple[RecordField, ...]:
    """Return the fields of records sent to the service; InvalidInput if it accepts none."""
    known = STORED_KINDS.get(store.kind)
    if known is None or known.fields is None:
        raise InvalidInput(
            f"{store.url} counts {store.kind}, which the service does not accept; count them with "
            "`streaming-moments update`"
        )
    return known.fields(store)


def columns_of(store: Snapshot) -> tuple[str, ...]:
    """Return the columns of the records that a store counts; empty for texts."""
    return STORED_KINDS[store.kind].columns(store)


def may_grow(store: Snapshot) -> bool:
    """Whether records may be appended to a counted file of a store."""
    return STORED_KINDS[store.kind].may_grow(store)


def takes_texts(store: Snapshot) -> bool:
    """Whether documents are texts whose words are counted."""
    return STORED_KINDS[store.kind].takes_texts(store)
