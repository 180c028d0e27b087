"""What is to be planned: a corpus, a store for it, and the refit that follows."""

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
    """Shards in numbers.

    Parameters
    ----------
    nbytes : int
        As stored.
    shards : int
        How many.
    largest : int
        Bytes of the largest.
    """

    nbytes: int
    shards: int
    largest: int

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> CorpusSize:
        """Of shards as `list_shards` gives them."""
        sizes = [shard.size for shard in shards]
        return cls(sum(sizes), len(sizes), max(sizes))


@dataclass(frozen=True)
class Job:
    """What is to be planned.

    Parameters
    ----------
    corpus : CorpusSize
        The shards.
    foundation : Foundation
        Of the store.
    row_blocks : int
        Blocks its rows are divided in.
    n_topics : int
        k of the refit.
    pilot_documents : int
        Passages that create samples.
    room : int
        Documents like those of the corpus that the store can hold.
    model : type
        Of the refit.
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
        """Whether documents are counted, and no other kind."""
        return bool(self.foundation.by_length)

    @property
    def basis(self) -> Basis:
        """Q, with n, of documents."""
        basis: Basis = self.foundation.basis
        return basis

    @property
    def layout(self) -> SegmentLayout:
        """How the statistics are cut."""
        return SegmentLayout(self.foundation, self.row_blocks)
