"""Sets: records that list features, or have a column of 0 and 1 for each feature."""

from __future__ import annotations

from streaming_moments.statistics.sets.foundation import SetsFoundation
from streaming_moments.storage.counting.sets import SetReader, SetsForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField, truth_field, values_field
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    sets, foundation = SetsForm.from_json(store.reading), store.foundation
    features, by_content = foundation.features, foundation.by_content
    return SetReader(store.form, sets, features, limits, storage_options, by_content)


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    sets = SetsForm.from_json(store.reading)
    return tuple(map(values_field if sets.listed else truth_field, sets.columns))


SETS = StoredKind(SetsFoundation, _reader, _fields)
