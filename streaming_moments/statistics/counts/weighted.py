"""Weighted statistics: sums in which recent documents count for more, in floating point."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form
from streaming_moments.errors import InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram, WeightedLengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.row_block import RowBlock


@dataclass(frozen=True, eq=False)
class WeightedStatistics:
    """Weighted sum of integer statistics, for a block of rows; no integers, so not exact.

    A fit takes it in place of `MomentStatistics`, but nothing can be added to it or taken away.

    Parameters
    ----------
    basis : Basis
        Q.
    block : RowBlock
        Which words' rows.
    length_histogram : WeightedLengths
        Documents by length and weight.
    word_counts, document_frequencies, pair_counts, triple_sketch, codocuments
        As in `MomentStatistics`, float64.
    later : tuple of (int, WeightedLengths)
        Words that came later, as in `RowLengths`.
    weighted_counts, even_pair_counts
        As in `MomentStatistics`, float64.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> basis = Basis(np.array([[1], [-1]], dtype=np.int8), n_words=2)
    >>> part = MomentStatistics.of(CountBatch.from_csr([[2, 1]]), basis)
    >>> WeightedStatistics.of([(1.0, part), (0.5, part)]).word_counts
    array([3. , 1.5])
    """

    basis: Basis
    block: RowBlock
    length_histogram: WeightedLengths
    word_counts: NDArray[np.float64]
    document_frequencies: NDArray[np.float64]
    pair_counts: NDArray[np.float64]
    triple_sketch: NDArray[np.float64]
    codocuments: NDArray[np.float64] | None = None
    later: tuple[tuple[int, WeightedLengths], ...] = ()
    weighted_counts: NDArray[np.float64] | None = None
    even_pair_counts: NDArray[np.float64] | None = None

    __repr__ = short_repr

    __sizeof__ = held_bytes

    @property
    def moment_counts(self) -> NDArray[np.float64]:
        """(r,) of which M1 is made, as in `MomentStatistics`."""
        return self.word_counts if self.weighted_counts is None else self.weighted_counts

    @property
    def row_lengths(self) -> RowLengths[WeightedLengths]:
        """Which documents count a row."""
        return RowLengths(self.length_histogram, self.later)

    @classmethod
    def of(cls, parts: Iterable[tuple[float, MomentStatistics]]) -> WeightedStatistics:
        """Sum of statistics of one row block, each times its weight; holds two of them.

        Raises
        ------
        InvalidInput
            No part.
        ForeignStatistics
            Parts of different bases or rows.
        """
        lengths: list[tuple[float, RowLengths[LengthHistogram]]] = []
        totals: dict[str, NDArray[np.float64]] = {}
        first: tuple[Basis, RowBlock] | None = None
        for weight, part in parts:
            if first is None:
                first = part.basis, part.block
                totals = {name: np.zeros(array.shape) for name, array in part.arrays().items()}
            basis, block = first
            part.require_same(basis, block, "codocuments" in totals, "even_pair_counts" in totals)
            for name, array in part.arrays().items():
                totals[name] += weight * array
            lengths.append((weight, part.row_lengths))
        if first is None:
            raise InvalidInput("no statistics to weigh; give at least one part")
        summed = RowLengths.weighted(lengths)
        basis, block = first
        return cls(basis, block, summed.whole, later=summed.later, **totals)


Statistics = MomentStatistics | WeightedStatistics


def row_constants(
    statistics: Statistics, form: Form
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(r,) float64 each: what sums, pairs and triples of each row of the block are divided by."""
    words = np.arange(statistics.basis.n_words)[statistics.block.rows]
    return statistics.row_lengths.constants(words, form)
