"""Weighted statistics: floating point sums in which recent documents have larger weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import Form
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram, WeightedLengths
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.counts.statistics import MomentStatistics, WordArrays
from streaming_moments.statistics.row_block import RowBlock


@dataclass(frozen=True, eq=False, repr=False)
class WeightedStatistics(WordArrays[WeightedLengths, np.float64]):
    """Weighted sum of integer statistics for a block of rows; in floating point, so not exact.

    A fit accepts it instead of `MomentStatistics`, but it cannot be added or subtracted.

    Parameters
    ----------
    basis : Basis
        Basis of the statistics that are summed.
    block : RowBlock
        Row block of the statistics that are summed.
    length_histogram : WeightedLengths
        Documents by length and weight.
    word_counts, document_frequencies, pair_counts, triple_sketch, codocuments
        As in `MomentStatistics`, float64.
    later : tuple of (int, WeightedLengths)
        Words added later, as in `RowLengths`.
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

    @classmethod
    def of(cls, parts: Iterable[tuple[float, MomentStatistics]]) -> WeightedStatistics:
        """Return the weighted sum of parts, which are pairs of a weight and statistics of a block.

        At most two parts are in memory at a time.

        Raises
        ------
        InvalidInput
            There is no part.
        ForeignStatistics
            Parts have different bases or rows.
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
    """Return (r,) float64 C1, C2 and C3, by which the sums of each row of a block are divided."""
    words = np.arange(statistics.basis.n_words)[statistics.block.rows]
    return statistics.row_lengths.constants(words, form)
