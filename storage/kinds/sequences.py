"""Sequences: texts or lists of symbols, whole or in pieces that continue in other shards."""

from __future__ import annotations

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.storage.counting.symbols.sequences import SequenceReader, SequencesForm
from streaming_moments.storage.formats import ReadLimits
from streaming_moments.storage.inbox.fields import RecordField, symbols_field, text_field
from streaming_moments.storage.kinds.base import ShardReader, StorageOptions, StoredKind
from streaming_moments.storage.store.snapshot import Snapshot


def _reader(store: Snapshot, limits: ReadLimits, storage_options: StorageOptions) -> ShardReader:
    sequences, own = SequencesForm.from_json(store.reading), store.foundation
    return SequenceReader.of(
        store.form,
        sequences,
        own.alphabet,
        limits,
        storage_options,
        joins=own.joins,
        by_content=own.by_content,
    )


def _fields(store: Snapshot) -> tuple[RecordField, ...]:
    sequences = SequencesForm.from_json(store.reading)
    if sequences.named:
        raise InvalidInput(
            f"{store.url} counts sequences that continue from record to record "
            f"({', '.join(sequences.columns)}), but requests arrive in any order; count the "
            "sequences with `streaming-moments update`, or create a store of whole sequences"
        )
    if sequences.columns:
        return tuple(map(symbols_field, sequences.columns))
    return (text_field(store.form.text_column),)


def _may_grow(store: Snapshot) -> bool:
    """Whether records may be appended to a counted file of a store.

    If several rows make one sequence, appended rows can continue the last sequence. Stores join
    such pieces, except old stores, which do not join sequences.
    """
    return bool(store.foundation.joins) or len(SequencesForm.from_json(store.reading).columns) < 3


SEQUENCES = StoredKind(SequencesFoundation, _reader, _fields, may_grow=_may_grow)
