"""Count the token ids of documents over a vocabulary of ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.read_only import read_only
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.storage.counting import id_kernels
from streaming_moments.storage.counting.counting import CountedPassages
from streaming_moments.storage.formats import Holds, IdChunk


@dataclass(frozen=True, eq=False)
class IdIndex:
    """Finds token ids in a vocabulary. Make one with `of`, once for many chunks of documents.

    `slots` is a (2^b, 2) int64 hash table, see `id_kernels.index_ids`.
    """

    holds: ClassVar[Holds] = "ids"

    vocabulary: Vocabulary
    slots: NDArray[np.int64]

    def count(self, chunk: IdChunk) -> tuple[CountBatch, int]:
        """Count documents as `count_ids` does."""
        return count_ids(chunk, self)

    def counted(self, chunk: IdChunk) -> CountedPassages:
        """Count documents as `count_ids` does; also return the number of unknown tokens in each."""
        batch, _ = count_ids(chunk, self)
        counts = np.ones(chunk.ids.size, np.int64) if chunk.counts is None else chunk.counts
        tokens = np.diff(np.concatenate([[0], np.cumsum(counts)])[chunk.offsets])
        return CountedPassages(batch, tokens - batch.lengths, np.ones(len(chunk), np.int64))

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> IdIndex:
        """Make the index of a vocabulary; raise InvalidInput if it has no token ids."""
        if vocabulary.token_ids is None:
            raise InvalidInput("the vocabulary contains terms; give a vocabulary of token ids")
        ids = np.array(vocabulary.token_ids, dtype=np.int64)
        slots = np.full((1 << (2 * ids.size).bit_length(), 2), id_kernels.NONE, dtype=np.int64)
        id_kernels.index_ids(ids, slots)
        return cls(vocabulary, slots)


def count_ids(chunk: IdChunk, index: IdIndex) -> tuple[CountBatch, int]:
    """Count the token ids of documents: (documents, n) counts, and the number of unknown tokens.

    Examples
    --------
    >>> vocabulary = Vocabulary(("9", "7"), core=1, token_ids=(9, 7))
    >>> chunk = IdChunk(np.array([0, 2, 4]), np.array([7, 9, 9, 8]), np.array([1, 2, 3, 5]))
    >>> batch, outside = count_ids(chunk, IdIndex.of(vocabulary))
    >>> batch.to_csr().toarray().tolist(), outside
    ([[2, 1], [3, 0]], 5)
    """
    vocabulary = index.vocabulary
    columns = id_kernels.places_of(read_only(chunk.ids), index.slots)
    batch = CountBatch.from_rows(
        chunk.offsets, columns, chunk.counts, vocabulary.n_words, vocabulary.fingerprint
    )
    tokens = chunk.ids.size if chunk.counts is None else int(chunk.counts.sum())
    return batch, tokens - batch.tokens
