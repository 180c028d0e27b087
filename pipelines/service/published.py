"""The published model in memory, which answers requests with documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.service.predict import DIGITS, Answering, said_of_texts
from streaming_moments.pipelines.service.schemas import DocumentRead, TextTopics
from streaming_moments.storage.counting.counting import WordIndex
from streaming_moments.storage.formats import encoded
from streaming_moments.storage.log.commits import ModelReference
from streaming_moments.storage.operations.lineages import store_for, vocabulary_of
from streaming_moments.storage.segments.models import model_called
from streaming_moments.storage.store.store import MomentStore


def answering(store: MomentStore, tag: str) -> str | None:
    """Return the name of the model with a tag; if no model has the tag, of the latest model.

    Returns None if the store has no models.
    """
    if not store.models:
        return None
    return model_called(store.commit, tag if tag in store.commit.tags else None)


@dataclass(frozen=True, eq=False)
class Published:
    """A model, with the tokeniser and the index that convert texts to its input.

    version : version of the store at which the model was loaded
    index : finds the words of the model in texts; None if the model reads no texts
    reference : identifies the model among models of the same name
    answering : applies the model to documents other than texts; None if the model reads texts
    """

    name: str
    version: int
    model: Any
    index: WordIndex | None
    reference: ModelReference
    answering: Answering | None = None

    @classmethod
    def of(cls, store: MomentStore, tag: str) -> Published | None:
        """Load the model that `answering` names; None if the store has no models."""
        name = answering(store, tag)
        if name is None:
            return None
        model = store.load_any_model(name)
        index, other = None, None
        if isinstance(model, TopicModel) and store.policy is not None:
            policy = store_for(store, name, model).policy or store.policy
            index = WordIndex.of(vocabulary_of(store, model), policy.of_whole_texts)
        else:
            other = Answering.of(store_for(store, name, model), model)
        return cls(name, store.version, model, index, store.models[name], other)

    def infer(self, texts: Sequence[str]) -> list[TextTopics]:
        """Infer topics of texts; a text without known words gets the topic shares of the corpus.

        Raises InvalidInput if the model has no topics of texts.
        """
        if self.index is None:
            raise InvalidInput(
                f"model {self.name} is of type {self.model.name} and has no topics of texts; "
                "write its results for shards with `streaming-moments transform`"
            )
        said = said_of_texts(self.model, self.index.counted(encoded(texts)))
        names = "words", "length", "foreign"
        columns = [said["proportions"].plain(DIGITS), *(said[name].plain() for name in names)]
        return [TextTopics(*row) for row in zip(*columns, strict=True)]

    def read(self, lines: bytes) -> list[DocumentRead]:
        """Return the answers of the model for documents other than texts.

        Each of `lines` is a document.
        """
        assert self.answering is not None
        return self.answering.read(lines)

    def words_for(
        self, text: str, proportions: Sequence[float], most: int
    ) -> list[tuple[str, ...]]:
        """Return for each topic those words of a text that are most evidence for it.

        `proportions` are the topic proportions of the text, and `most` limits the words of a topic.

        The count of a word in the text is divided among the topics, in proportion to the share of a
        topic in the text times the probability of the word in the topic.
        """
        if self.index is None:
            return [() for _ in proportions]
        batch = self.index.counted(encoded([text])).batch
        rows = self._topical.topics[batch.words] * np.asarray(proportions)
        parts = batch.counts[:, None] * rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
        terms = self.index.vocabulary.terms
        found = []
        for topic in range(rows.shape[1]):
            order = np.argsort(-parts[:, topic], kind="stable")[:most]
            found.append(
                tuple(terms[batch.words[one]] for one in order if parts[one, topic] >= 0.5)
            )
        return found

    def warm(self) -> None:
        """Compile kernels and fill caches before the first request."""
        if self.index is not None:
            self.infer([" ".join(self.index.vocabulary.terms[:20])])

    @property
    def _topical(self) -> TopicModel:
        if self.index is None:
            raise InvalidInput(f"model {self.name} has no topics")
        model: TopicModel = self.model
        return model
