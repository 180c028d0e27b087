"""Input of a plan: a corpus, a store for it, and the refit that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streaming_moments.models.topics import TopicModel
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.storage.log.layout import SegmentLayout
from streaming_moments.storage.shards import Shard


@dataclass(frozen=True)
class CorpusSize:
    """Size of a corpus of shards.

    nbytes : stored bytes
    shards : number of shards
    largest : bytes of the largest shard
    """

    nbytes: int
    shards: int
    largest: int

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> CorpusSize:
        """Return the size of a corpus that consists of the shards of `list_shards`."""
        sizes = [shard.size for shard in shards]
        return cls(sum(sizes), len(sizes), max(sizes))


@dataclass(frozen=True)
class Job:
    """Corpus, store and refit to plan.

    Parameters
    ----------
    corpus : CorpusSize
        Size of the shards.
    foundation : Foundation
        Foundation of the store.
    row_blocks : int
        Number of row blocks.
    n_topics : int
        Number of topics of the refit.
    pilot_documents : int
        Number of passages that `create` samples.
    room : int
        Number of documents that the store can hold, if all are like those of the corpus.
    model : type
        Model of the refit.
    """

    corpus: CorpusSize
    foundation: Any
    row_blocks: int
    n_topics: int
    pilot_documents: int
    room: int = 0
    model: Any = TopicModel

    @property
    def of_documents(self) -> bool:
        """Whether the store counts documents, not records of another kind."""
        return bool(self.foundation.by_length)

    @property
    def basis(self) -> Basis:
        """The basis of a store of documents, the matrix Q."""
        basis: Basis = self.foundation.basis
        return basis

    @property
    def layout(self) -> SegmentLayout:
        """Division of the statistics into row blocks."""
        return SegmentLayout(self.foundation, self.row_blocks)
