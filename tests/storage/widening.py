"""Widening: statistics of an earlier, smaller vocabulary as statistics of a grown one."""

from __future__ import annotations

import numpy as np

from streaming_moments.errors import ForeignStatistics, short
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.statistics import MomentStatistics, statistic_shapes


def widened(statistics: MomentStatistics, basis: Basis) -> MomentStatistics:
    """Convert the statistics of documents to a vocabulary with more words outside the core.

    The rows of the new words are zero, and no document counts them, as `later` records.

    Parameters
    ----------
    statistics : MomentStatistics
        Statistics on a basis of n words.
    basis : Basis
        Basis with the same matrix and at least n words, the first n of them the same.

    Raises
    ------
    ForeignStatistics
        The basis has another matrix, or fewer words.

    Examples
    --------
    >>> from streaming_moments.statistics.counts.batch import CountBatch
    >>> small = Basis(np.array([[1], [-1]], dtype=np.int8), n_words=2)
    >>> before = MomentStatistics.of(CountBatch.from_csr([[2, 1]]), small)
    >>> large = small.with_words(3, "")
    >>> after = MomentStatistics.of(CountBatch.from_csr([[1, 0, 2]]), large)
    >>> both = widened(before, large) + after
    >>> both.word_counts, both.row_lengths.at(1).C1, both.row_lengths.at(2).C1
    (array([3, 1, 2]), 6, 3)
    """
    own = statistics.basis
    if basis.n_words < own.n_words or not np.array_equal(basis.matrix, own.matrix):
        raise ForeignStatistics(
            f"statistics of basis {short(own.fingerprint)} ({own.n_words} words) are none of basis "
            f"{short(basis.fingerprint)} ({basis.n_words} words): it has another matrix or fewer "
            "words; give one that was made by adding words"
        )
    block, mine = statistics.block, statistics.arrays()
    arrays = {}
    for name, shape in statistic_shapes(basis, block, *statistics.optional).items():
        arrays[name] = np.zeros(shape, dtype=np.int64)
        arrays[name][: len(mine[name])] = mine[name]
    lengths = statistics.row_lengths
    if basis.n_words > own.n_words:
        lengths = lengths.until(own.n_words)
    return MomentStatistics(
        basis, block, statistics.length_histogram, later=lengths.later, **arrays
    )
