"""Intake: what a document of a store of each kind is, as it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.service.config import LimitsSection
from streaming_moments.pipelines.service.countable import Countable
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.symbols.sequences import SequencesForm
from streaming_moments.storage.counting.vectors import VectorsForm
from streaming_moments.storage.counting.views import ViewsForm
from streaming_moments.storage.dates import NO_PATTERN
from streaming_moments.storage.inbox.fields import (
    RecordField,
    counts_field,
    end_field,
    ids_field,
    number_field,
    symbols_field,
    text_field,
    value_field,
    values_field,
    vector_field,
    view_of_text,
)
from streaming_moments.storage.inbox.records import RecordShape
from streaming_moments.storage.store.store import MomentStore

Fields = tuple[RecordField, ...]


def _of_counts(store: MomentStore) -> Fields:
    form = store.form
    if form.ids_column is not None:
        counts = (counts_field(form.counts_column),) if form.counts_column is not None else ()
        return (ids_field(form.ids_column), *counts)
    if form.categories:
        return tuple(map(value_field, form.categories))
    if store.policy is None:
        raise InvalidInput(
            f"{store.url} counts token ids of LDA-C, and the service seals JSON Lines, which that "
            "store does not read; create a store with --ids-column and --counts-column, which "
            "reads both"
        )
    return (text_field(form.text_column),)


def _of_views(store: MomentStore) -> Fields:
    views = ViewsForm.from_json(store.reading)
    return tuple(
        (view_of_text if text else values_field)(name)
        for name, text in zip(views.columns, views.texts, strict=True)
    )


def _of_sequences(store: MomentStore) -> Fields:
    sequences = SequencesForm.from_json(store.reading)
    if sequences.named:
        raise InvalidInput(
            f"{store.url} counts sequences that go on from record to record "
            f"({', '.join(sequences.columns)}), and what comes by the request comes in any order; "
            "count them by `streaming-moments update`, or create a store of whole sequences"
        )
    if sequences.columns:
        return tuple(map(symbols_field, sequences.columns))
    return (text_field(store.form.text_column),)


def _of_vectors(store: MomentStore) -> Fields:
    columns = VectorsForm.from_json(store.reading).columns
    if len(columns) == 1:
        return (vector_field(columns[0], store.foundation.dimension),)
    return tuple(map(number_field, columns))


def _of_edges(store: MomentStore) -> Fields:
    return tuple(map(end_field, EdgeColumns(**store.reading).columns))


INTAKES: Mapping[str, Callable[[MomentStore], Fields]] = MappingProxyType(
    {
        CountsFoundation.kind: _of_counts,
        ViewsFoundation.kind: _of_views,
        SequencesFoundation.kind: _of_sequences,
        VectorsFoundation.kind: _of_vectors,
        EdgesFoundation.kind: _of_edges,
    }
)


def shape_of(store: MomentStore, limits: LimitsSection) -> RecordShape:
    """Return the fields of a document of a store.

    InvalidInput if the store reads shards other than JSON Lines, or days by a pattern of its own,
    or if its records cannot be sent one by one.
    """
    form = store.form
    if form.kind not in (None, "jsonl"):
        raise InvalidInput(
            f"{store.url} was created with --format {form.kind}, and the service seals JSON Lines; "
            "create a store without it"
        )
    if store.kind not in INTAKES:
        raise InvalidInput(
            f"{store.url} counts {store.kind}, which the service does not take; count them by "
            "`streaming-moments update`"
        )
    dates = store.dates
    if dates.pattern not in (None, NO_PATTERN):
        raise InvalidInput(
            f"{store.url} finds days in URLs by {dates.pattern!r}, and the service names shards by "
            "2026-11-23; create a store without --date-pattern"
        )
    counted, judge = INTAKES[store.kind](store), Countable(store)
    days, light = limits.days, judge.light
    return RecordShape(counted, dates.column, limits.document, days, judge.why_not, light)


def takes_texts(store: MomentStore) -> bool:
    """Whether documents are texts of which words are counted."""
    if store.kind != CountsFoundation.kind or store.policy is None:
        return False
    return store.form.ids_column is None and not store.form.categories


@dataclass(frozen=True, eq=False)
class Intake:
    """The documents that a store takes, until its lineage changes. Make one with `of`.

    `shape` has the fields of a document, and judges whether a long one can be counted.
    """

    shape: RecordShape
    takes_texts: bool

    @classmethod
    def of(cls, store: MomentStore, limits: LimitsSection) -> Intake:
        """The documents that a store takes; errors as `shape_of`."""
        return cls(shape_of(store, limits), takes_texts(store))
