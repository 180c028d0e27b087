"""Edges of a graph, in any order."""

from __future__ import annotations

from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.storage.counting.graphs.edge_batches import EdgeReader
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField, end_field
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    columns, nodes = EdgeColumns(**store.reading), store.foundation.nodes
    return EdgeReader.of(store.form, columns, nodes, limits, storage_options)


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    return tuple(map(end_field, EdgeColumns(**store.reading).columns))


def _columns(store: Snapshot) -> tuple[str, ...]:
    return EdgeColumns(**store.reading).columns


# Files of edges may not grow, because an appended edge may repeat one that is already counted.
EDGES = StoredKind(EdgesFoundation, _reader, _fields, _columns, lambda store: False)
