"""Answer a request that contains documents: `Model.read` applies a model to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

import fsspec
import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns
from streaming_moments.models.base import Model
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.registry import MODELS, row_of
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.jobs.outputs.shard_outputs import FOREIGN_BELOW
from streaming_moments.pipelines.service.schemas import DocumentRead
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.storage.counting.counting import CountedPassages
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.named import read_named
from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.kinds.base import ShardReader
from streaming_moments.storage.kinds.registry import reader_of
from streaming_moments.storage.proportions import said_of_documents
from streaming_moments.storage.shards import Shard, as_shard
from streaming_moments.storage.store.store import MomentStore

DIGITS = 6
_SHARES = frozenset({"proportions", "probabilities"})


@dataclass(frozen=True, eq=False)
class Answering:
    """A model, and the reader that converts sent documents to the input of the model.

    Make one with `of`.

    store : store at a version that has the vocabulary of the model
    """

    store: MomentStore
    model: Any
    reader: ShardReader

    @classmethod
    def of(cls, store: MomentStore, model: Model) -> Answering:
        """Prepare to answer with a model; raises what `reader_of` raises."""
        return cls(store, model, reader_of(store, DEFAULT_LIMITS))

    def read(self, lines: bytes) -> list[DocumentRead]:
        """Return the answers of the model for documents; each line is a document.

        Raises InvalidInput if the model has no answers for documents. Raises ShardError if the
        lines cannot be read, although they were validated.
        """
        answer = row_of(ANSWERS, self.model.name, "service")
        with as_shard(lines) as shard:
            return list(answer(self, shard))


def answers_of(said: Columns) -> Iterator[DocumentRead]:
    """Make an answer for each row of `said`; ignore columns for which an answer has no field."""
    names = {one.name: one.name for one in fields(DocumentRead)} | {"known": "length"}
    columns = {
        field: said[name].plain(DIGITS if name in _SHARES else None)
        for field, name in names.items()
        if name in said
    }
    for row in zip(*columns.values(), strict=True):
        yield DocumentRead(**dict(zip(columns, row, strict=True)))


def said_of_texts(model: TopicModel, counted: CountedPassages) -> Columns:
    """Apply a model to texts.

    Also returns the number of words of each text, and whether the text is foreign, which means that
    few of its words are in the vocabulary of the model.
    """
    batch = counted.batch
    if not model.vocabulary:
        # a model that was made from arrays has no vocabulary, so its input must not have one either
        batch = CountBatch(batch.indptr, batch.words, batch.counts, batch.n_words)
    said = said_of_documents(counted, model.read(batch), FOREIGN_BELOW)
    return Columns.of(**said, words=said["length"].array + said["unknown"].array)


def _records(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    for read in asked.reader.read(shard):
        yield from answers_of(asked.model.read(read.batch))


def _texts(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    reader: Any = asked.reader
    for read in read_named(shard, reader.form, reader.index, None, DEFAULT_LIMITS, None):
        yield from answers_of(said_of_texts(asked.model, read.counted))


def _sequences(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    """Make an answer for each sequence; join the pieces into which the reader splits long ones."""
    batches = [read.batch for read in asked.reader.read(shard)]
    pieces = [asked.model.read(batch) for batch in batches]
    sequence = np.cumsum(np.concatenate([batch.begins for batch in batches])) - 1

    def added(numbers: list[NDArray[Any]]) -> NDArray[Any]:
        joined = np.concatenate(numbers)
        sums = np.zeros(sequence[-1] + 1, joined.dtype)
        np.add.at(sums, sequence, joined)
        return sums

    def whole(name: str) -> Column:
        sizes = added([np.diff(one[name].offsets) for one in pieces])
        array = np.concatenate([one[name].array for one in pieces])
        return Column(array, offsets=np.concatenate([[0], np.cumsum(sizes)]))

    likely = added([one["log_likelihood"].array for one in pieces])
    lists = {name: whole(name) for name in ("states", "probabilities")}
    yield from answers_of(Columns.of(log_likelihood=likely, **lists))


def _edges(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    """Yield the memberships of both ends of each edge; null for a node that the store lacks."""
    places = asked.store.foundation.nodes.index
    ends = EdgeColumns(**asked.store.reading).columns
    edges = map(json.loads, fsspec.filesystem("memory").cat_file(shard.url).splitlines())
    for edge in edges:
        pair = [str(edge[end]) for end in ends]
        nodes = np.array([places.get(name, -1) for name in pair])
        said = asked.model.read(nodes)["memberships"].plain(DIGITS)
        yield DocumentRead(memberships=dict(zip(pair, said, strict=True)))


# How each model answers. Most models use `_records`; the others split or join the sent documents.
ANSWERS: Mapping[str, Callable[[Answering, Shard], Iterator[DocumentRead]]] = MappingProxyType(
    {
        **dict.fromkeys(MODELS, _records),
        TopicModel.name: _texts,
        PoissonMixture.name: _texts,
        IndependentIntensities.name: _texts,
        Communities.name: _texts,
        HiddenMarkovModel.name: _sequences,
        Blockmodel.name: _edges,
    }
)
