"""Counts: documents of words, of token ids or of categories."""

from __future__ import annotations

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.storage.counting.reading import CountReader, DocumentHalves, index_of
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import (
    RecordField,
    counts_field,
    ids_field,
    text_field,
    value_field,
)
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    index, counts = index_of(store.vocabulary, store.policy), store.counts
    halves = DocumentHalves(counts.halves_by_content, counts.first_words)
    return CountReader(store.form, index, limits, storage_options, halves)


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    form = store.form
    if form.ids_column is not None:
        counts = (counts_field(form.counts_column),) if form.counts_column is not None else ()
        return (ids_field(form.ids_column), *counts)
    if form.categories:
        return tuple(map(value_field, form.categories))
    if store.policy is None:
        raise InvalidInput(
            f"{store.url} counts token ids of LDA-C, and cannot read the JSON Lines that the "
            "service writes; create a store with --ids-column and --counts-column, which reads "
            "both"
        )
    return (text_field(form.text_column),)


def _columns(store: Snapshot) -> tuple[str, ...]:
    return store.form.categories


def _takes_texts(store: Snapshot) -> bool:
    form = store.form
    return store.policy is not None and form.ids_column is None and not form.categories


COUNTS = StoredKind(CountsFoundation, _reader, _fields, _columns, takes_texts=_takes_texts)
