"""Answering: what each model says of documents that are sent, a line of one registry each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import fsspec
import numpy as np

from streaming_moments.models.base import Model
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.doors import row_of
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.inference import posteriors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, log_sums
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.models.views.hidden_markov import HiddenMarkovModel
from streaming_moments.models.views.multi_view import MultiViewMixture
from streaming_moments.pipelines.service.answers import DocumentRead
from streaming_moments.pipelines.service.lines import as_shard
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.storage.counting.graphs.edges import EdgeColumns
from streaming_moments.storage.counting.named import read_named
from streaming_moments.storage.formats import DEFAULT_LIMITS
from streaming_moments.storage.kinds.base import ShardReader
from streaming_moments.storage.kinds.registry import reader_of
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore

FOREIGN = 0.2  # share of known words below which a document says little of its topics
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class Answering:
    """A model, and the reader of the store that counts what it knows. Make one with `of`.

    Parameters
    ----------
    store : MomentStore
        At a version that counts the words of the model.
    model : Model
        The model.
    reader : ShardReader
        Of the store.
    """

    store: MomentStore
    model: Any
    reader: ShardReader

    @classmethod
    def of(cls, store: MomentStore, model: Model) -> Answering:
        """Of a model; errors as `reader_of`."""
        return cls(store, model, reader_of(store, DEFAULT_LIMITS))

    def read(self, lines: bytes) -> list[DocumentRead]:
        """What the model says of documents, each a line as it would be in a shard.

        Raises
        ------
        InvalidInput
            A model that says nothing of documents.
        ShardError
            The lines cannot be read, which is a fault of who has checked them.
        """
        answer = row_of(ANSWERS, self.model.name, "service")
        with as_shard(lines) as shard:
            return list(answer(self, shard))


def _topics(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    reader: Any = asked.reader
    for read in read_named(shard, reader.form, reader.index, None, DEFAULT_LIMITS, None):
        batch, outside = read.counted.batch, read.counted.outside
        if not asked.model.vocabulary:
            # made of arrays, it names no vocabulary
            batch = CountBatch(batch.indptr, batch.words, batch.counts, batch.n_words)
        rows = asked.model.transform(batch)
        for row, known, other in zip(_rounded(rows), batch.lengths.tolist(), outside, strict=True):
            words = known + int(other)
            yield DocumentRead(
                proportions=row, words=words, known=known, foreign=known < FOREIGN * words
            )


def _states_of_records(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    for read in asked.reader.read(shard):
        rows = asked.model.transform(read.batch)
        for row, known in zip(_rounded(rows), read.batch.lengths.tolist(), strict=True):
            yield DocumentRead(proportions=row, known=known)


def _decoded(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    found: list[DocumentRead] = []
    for read in asked.reader.read(shard):
        batch: Any = read.batch
        posterior, states = asked.model.posterior(batch), asked.model.decode(batch)[1]
        own = batch.own
        sure = posterior[np.arange(states.size), states][own].round(_DIGITS)
        likely = asked.model.log_likelihoods(batch)
        ends = np.cumsum(batch.lengths)[:-1]
        parts = zip(
            batch.begins,
            np.split(states[own], ends),
            np.split(sure, ends),
            likely.tolist(),
            strict=True,
        )
        for begins, own_states, own_sure, one in parts:
            part = tuple(own_states.tolist()), tuple(own_sure.tolist())
            if begins:
                found.append(
                    DocumentRead(states=part[0], probabilities=part[1], log_likelihood=one)
                )
                continue
            # a long sequence comes in pieces
            last = found.pop()
            found.append(
                DocumentRead(
                    states=(last.states or ()) + part[0],
                    probabilities=(last.probabilities or ()) + part[1],
                    log_likelihood=(last.log_likelihood or 0.0) + one,
                )
            )
    yield from found


def _completed(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    model: LatentTree = asked.model
    names, categories = model.table.names, model.table.categories
    for read in asked.reader.read(shard):
        codes = model.codes(read.batch)
        filled, sure = model.tree.completed(codes)
        likely = model.tree.log_probabilities(codes)
        for row, own, one in zip(filled.tolist(), _rounded(sure), likely.tolist(), strict=True):
            told = {
                name: known[place]
                for name, known, place in zip(names, categories, row, strict=True)
            }
            yield DocumentRead(completed=told, probabilities=own, log_likelihood=one)


def _components(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    for read in asked.reader.read(shard):
        densities = asked.model.log_densities(read.batch.values)
        rows, logs = posteriors(densities), log_sums(densities)
        for row, one in zip(_rounded(rows), logs.tolist(), strict=True):
            yield DocumentRead(proportions=row, log_likelihood=one)


def _factors(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    for read in asked.reader.read(shard):
        for row in asked.model.values(read.batch.values).tolist():
            yield DocumentRead(factors=tuple(row))


def _members(asked: Answering, shard: Shard) -> Iterator[DocumentRead]:
    """Memberships of both ends of each edge; nothing of a node that the store does not know."""
    places, rows = asked.store.foundation.nodes.index, asked.model.memberships
    ends = EdgeColumns(**asked.store.reading).columns
    for line in fsspec.filesystem("memory").cat_file(shard.url).splitlines():
        edge = json.loads(line)
        names = [str(edge[end]) for end in ends]
        told = {
            name: tuple(rows[places[name]].round(_DIGITS).tolist()) if name in places else None
            for name in names
        }
        yield DocumentRead(memberships=told)


ANSWERS: Mapping[str, Callable[[Answering, Shard], Iterator[DocumentRead]]] = MappingProxyType(
    {
        TopicModel.name: _topics,
        PoissonMixture.name: _topics,
        IndependentIntensities.name: _topics,
        Communities.name: _topics,
        LatentTree.name: _completed,
        MultiViewMixture.name: _states_of_records,
        HiddenMarkovModel.name: _decoded,
        GaussianMixture.name: _components,
        IndependentFactors.name: _factors,
        Blockmodel.name: _members,
    }
)


def _rounded(rows: Any) -> list[tuple[float, ...]]:
    return [tuple(row) for row in rows.round(_DIGITS).tolist()]
