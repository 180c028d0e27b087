"""Joined batches: the entries of one row block of several batches, as those of one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.statistics.counts.kernels import row_kernels
from streaming_moments.statistics.counts.projection import (
    LARGEST_FLOAT_SUM,
    ProjectedBatch,
    fits_cells,
)
from streaming_moments.statistics.row_block import RowBlock


def joined(
    batches: Iterable[ProjectedBatch], block: RowBlock, most_bytes: int
) -> Iterator[ProjectedBatch]:
    """The same documents in fewer batches, which hold the entries of a block's words alone.

    The kernels read and write each row of their sums once for a batch, which of a few thousand
    documents takes as long as counting them.

    Parameters
    ----------
    batches : iterable of ProjectedBatch
        All of one basis.
    block : RowBlock
        Whose words are kept; the word counts are of all words.
    most_bytes : int
        Batches are joined while theirs stay below it; a larger one comes as it is.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> one = ProjectedBatch.of(CountBatch.from_csr([[2, 1, 0], [0, 1, 1]]), basis)
    >>> [both] = joined([one, one], RowBlock(1, 3), most_bytes=10_000)
    >>> both.starts.tolist(), both.documents.tolist(), both.values.tolist()
    ([0, 0, 4, 4], [0, 1, 2, 3], [1, 1, 1, 1])
    """
    waiting: list[ProjectedBatch] = []
    size = _Size()
    for batch in batches:
        larger = size + _Size.of(batch)
        if waiting and not larger.joinable(most_bytes):
            yield _join(waiting, size, block)
            waiting, larger = [], _Size.of(batch)
        waiting.append(batch)
        size = larger
    if waiting:
        yield _join(waiting, size, block)


@dataclass(frozen=True)
class _Size:
    """What tells whether batches can be one: their bytes, and bounds of their sums."""

    nbytes: int = 0
    triple_bound: float = 0.0
    word_counts: NDArray[np.int64] | int = 0
    largest: int = 0
    packed: bool = True

    @classmethod
    def of(cls, batch: ProjectedBatch) -> _Size:
        bounds = (batch.triple_bound, batch.word_counts, batch.largest)
        return cls(batch.nbytes, *bounds, batch.batch is None)

    def __add__(self, other: _Size) -> _Size:
        return _Size(
            self.nbytes + other.nbytes,
            self.triple_bound + other.triple_bound,
            self.word_counts + other.word_counts,
            max(self.largest, other.largest),
            self.packed and other.packed,
        )

    def joinable(self, most_bytes: int) -> bool:
        return (
            self.packed
            and self.nbytes <= most_bytes
            and self.triple_bound < LARGEST_FLOAT_SUM
            and fits_cells(np.asarray(self.word_counts), self.largest)
        )


def _join(batches: Sequence[ProjectedBatch], size: _Size, block: RowBlock) -> ProjectedBatch:
    if len(batches) == 1:
        return batches[0]
    runs = np.zeros(batches[0].basis.n_words, dtype=np.int64)
    for batch in batches:
        runs[block.rows] += np.diff(batch.starts)[block.rows]
    starts = np.concatenate([[0], np.cumsum(runs)])
    documents = np.empty(starts[-1], dtype=np.int32)
    values = np.empty(starts[-1], dtype=np.int32)
    free, before = starts[:-1].copy(), 0
    for batch in batches:
        by_word = (batch.starts, batch.documents, batch.values)
        row_kernels.append_runs(block.index, block.step, *by_word, before, free, documents, values)
        before += batch.lengths.size
    ends = np.cumsum([0, *(batch.packed.size for batch in batches)])
    core_starts = [
        batch.core_starts[:-1] + end for batch, end in zip(batches, ends[:-1], strict=True)
    ]
    return ProjectedBatch(
        basis=batches[0].basis,
        lengths=np.concatenate([batch.lengths for batch in batches]),
        word_counts=np.asarray(size.word_counts),
        starts=starts,
        documents=documents,
        values=values,
        projections=np.concatenate([batch.projections for batch in batches]),
        long=np.concatenate([batch.long for batch in batches]),
        triple_bound=size.triple_bound,
        largest=size.largest,
        core_starts=np.concatenate([*core_starts, np.full((1, 2), ends[-1])]),
        packed=np.concatenate([batch.packed for batch in batches]),
        batch=None,
    )
