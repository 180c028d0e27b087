"""Readers: what reads the shards of a store, by the kind of its statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.sequences.foundation import SequencesFoundation
from streaming_moments.statistics.vectors.foundation import VectorsFoundation
from streaming_moments.statistics.views.foundation import ViewsFoundation
from streaming_moments.storage.contents import ShardContent
from streaming_moments.storage.counting.graphs.edge_batches import EdgeReader
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.reading import CountReader, ReadBatch, index_of
from streaming_moments.storage.counting.symbols.sequences import SequenceReader, SequencesForm
from streaming_moments.storage.counting.vectors import VectorReader, VectorsForm
from streaming_moments.storage.counting.views import ViewReader, ViewsForm
from streaming_moments.storage.formats import START, Position, ReadLimits
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.snapshot import Snapshot


class ShardReader(Protocol):
    """Reads shards of one store, batch by batch; it goes to the workers once."""

    def read(
        self, shard: Shard, start: Position = START, content: ShardContent | None = None
    ) -> Iterator[ReadBatch[Any]]:
        """Records of a shard from a position on; at least one batch, or a ShardError.

        With `content` nothing but that is read; anything else is a ShardError.
        """


def _count_reader(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None
) -> ShardReader:
    index = index_of(store.vocabulary, store.policy)
    return CountReader(store.form, index, limits, storage_options)


def _view_reader(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None
) -> ShardReader:
    views = ViewsForm.from_json(store.reading)
    return ViewReader.of(store.form, views, store.foundation, limits, storage_options)


def _sequence_reader(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None
) -> ShardReader:
    sequences, alphabet = SequencesForm.from_json(store.reading), store.foundation.alphabet
    joins = store.foundation.joins
    return SequenceReader.of(store.form, sequences, alphabet, limits, storage_options, joins)


def _vector_reader(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None
) -> ShardReader:
    vectors, width = VectorsForm.from_json(store.reading), store.foundation.dimension
    return VectorReader(store.form, vectors, width, limits, storage_options)


def _edge_reader(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None
) -> ShardReader:
    columns, nodes = EdgeColumns(**store.reading), store.foundation.nodes
    return EdgeReader.of(store.form, columns, nodes, limits, storage_options)


READERS: Mapping[
    str, Callable[[Snapshot, ReadLimits, Mapping[str, object] | None], ShardReader]
] = MappingProxyType(
    {
        CountsFoundation.kind: _count_reader,
        ViewsFoundation.kind: _view_reader,
        SequencesFoundation.kind: _sequence_reader,
        VectorsFoundation.kind: _vector_reader,
        EdgesFoundation.kind: _edge_reader,
    }
)


def reader_of(
    store: Snapshot, limits: ReadLimits, storage_options: Mapping[str, object] | None = None
) -> ShardReader:
    """Build the reader of the shards of a store."""
    return READERS[store.kind](store, limits, storage_options)


def may_grow(store: Snapshot) -> bool:
    """Whether what comes to a counted file is records of its own.

    The rows that come to a long table may go on with the sequence that it ended with: then they are
    joined, but in stores of before sequences were. Edges that come may be there already.
    """
    if store.kind == EdgesFoundation.kind:
        return False
    if store.kind != SequencesFoundation.kind or store.foundation.joins:
        return True
    return len(SequencesForm.from_json(store.reading).columns) < 3
