"""Sweeps: read the counts of pairs and triples of the columns of a table from statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.latent_trees.parameters import Triple
from streaming_moments.statistics.counts.tables.columns import TableColumns
from streaming_moments.statistics.counts.weighted import Statistics
from streaming_moments.statistics.row_block import RowBlock


def pair_rows(statistics: Statistics, n_words: int) -> NDArray[np.float64]:
    """Return pair counts of the categories in this block, and the number of rows with each.

    The result is (categories in this block, n + 1); the number of rows is the last column.
    `n_words` is the number n of categories in the tree; words that were added to the vocabulary
    later are left out.
    """
    rows = statistics.block.size(n_words)
    pairs = statistics.pair_counts[:rows, :n_words].astype(np.float64)
    return np.hstack([pairs, statistics.moment_counts[:rows, None].astype(np.float64)])


def even_pairs(statistics: Statistics) -> tuple[RowBlock, NDArray[Any] | None]:
    """Return the row block, and its pair counts in the even half of the rows of the table."""
    return statistics.block, statistics.even_pair_counts


def even_rows(half: tuple[RowBlock, NDArray[Any]], n_words: int) -> NDArray[np.float64]:
    """Select the pair counts of the first `n_words` words, which are the categories of the tree."""
    block, pairs = half
    return np.asarray(pairs[: block.size(n_words), :n_words], dtype=np.float64)


def triple_rows(
    statistics: Statistics, table: TableColumns, wanted: Sequence[Triple]
) -> dict[Triple, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return the counts that this block has of each of the triples of columns in `wanted`.

    These are the counts for the categories of the first column whose rows are in the block. For
    each triple, the indices of these categories are returned before the counts.
    """
    block: RowBlock = statistics.block
    words = np.arange(table.n_words)[block.rows]
    found = {}
    for views in wanted:
        first, left, right = (table.words(view) for view in views)
        mine = np.flatnonzero((words >= first.start) & (words < first.stop))
        sketch = statistics.triple_sketch[np.ix_(mine, _packed(left, right, table.n_words))]
        shape = mine.size, left.stop - left.start, right.stop - right.start
        found[views] = (words[mine] - first.start, sketch.astype(np.float64).reshape(shape))
    return found


def _packed(left: slice, right: slice, order: int) -> NDArray[np.int64]:
    """Return the indices, in a packed upper triangle, of all pairs of a left and a right word."""
    one, other = np.meshgrid(np.arange(order)[left], np.arange(order)[right], indexing="ij")
    low, high = np.minimum(one, other), np.maximum(one, other)
    return np.asarray(low * order - low * (low - 1) // 2 + high - low, dtype=np.int64).ravel()
