"""Views: records in three columns of words."""

from __future__ import annotations

from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.counting.views import ViewReader, ViewsForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField, values_field, view_of_text
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    views = ViewsForm.from_json(store.reading)
    return ViewReader.of(store.form, views, store.foundation, limits, storage_options)


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    views = ViewsForm.from_json(store.reading)
    return tuple(
        (view_of_text if text else values_field)(name)
        for name, text in zip(views.columns, views.texts, strict=True)
    )


VIEWS = StoredKind(ViewsFoundation, _reader, _fields)
