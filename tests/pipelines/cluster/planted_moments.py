"""Statistics of many topics without documents: exact moments, rounded to counts."""

from dataclasses import dataclass

import numpy as np

from streaming_moments import Basis, LengthHistogram, MomentStatistics, RowBlock
from streaming_moments.numerics.packing import pack
from streaming_moments.statistics.counts.foundation import CountsFoundation
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.storage.log.layout import SegmentLayout


@dataclass(frozen=True)
class Planted:
    """Row blocks of exact moments of many topics, made when they are read."""

    topics: int = 256
    row_blocks: int = 4
    version: int = 1
    halves: bool = False

    @property
    def basis(self):
        return Basis(np.eye(self.topics, dtype=np.int8), self.topics)

    def row_lengths(self):
        return RowLengths(LengthHistogram.of(np.full(10_000, 1000)))

    @property
    def layout(self):
        return SegmentLayout(CountsFoundation(self.basis, False, halves=False), self.row_blocks)

    def load_blocks(self, indices, halves=False):
        return [self.load_block(index, halves) for index in indices]

    def load_block(self, index, halves=False):
        block, lengths = RowBlock(index, self.row_blocks), self.row_lengths().whole
        rng = np.random.default_rng(1)
        columns = rng.gamma(0.1, size=(self.topics, self.topics)) + 20 * np.eye(self.topics)
        columns /= columns.sum(axis=0)
        rows = columns[block.rows] / self.topics
        squares = pack(columns.T[:, :, None] * columns.T[:, None, :])
        totals = zip(
            (rows.sum(axis=1), rows @ columns.T, rows @ squares),
            (lengths.C1, lengths.C2, lengths.C3),
            strict=True,
        )
        counts, *more = (np.rint(one * total).astype(np.int64) for one, total in totals)
        return MomentStatistics(self.basis, block, lengths, counts, counts, *more, None)
