"""Vectors: rows of numbers."""

from __future__ import annotations

from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.storage.counting.vectors import VectorReader, VectorsForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField, number_field, vector_field
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    vectors, foundation = VectorsForm.from_json(store.reading), store.foundation
    width, by_content = foundation.dimension, foundation.by_content
    return VectorReader(store.form, vectors, width, limits, storage_options, by_content)


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    columns = VectorsForm.from_json(store.reading).columns
    if len(columns) == 1:
        return (vector_field(columns[0], store.foundation.dimension),)
    return tuple(map(number_field, columns))


VECTORS = StoredKind(VectorsFoundation, _reader, _fields)
