"""Columns: find the distributions of hidden states over words of a view, with error bars.

This takes three sweeps over the rows of the statistics of three views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.svtd import Recovered
from streaming_moments.decompositions.views import (
    RowWhitening,
    SideWhitening,
    contracted,
    frame,
    recovered,
    row_pairs,
    whiten_row_view,
    whiten_sides,
)
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.rows import Rows
from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.numerics.pooled import pooled
from streaming_moments.printing.plural import agreeing
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import TRIPLES, ViewStatistics


@dataclass(frozen=True, eq=False)
class ViewColumns:
    """Hidden states as distributions over the words of the rows view.

    found : distributions and weights of the states
    spectrum : (k,) float64, singular values of the pair counts of the two other views
    turned : number of states whose estimates are mostly negative, because there is little evidence
    documents, n_missing : number of counted records, and number of those that lack a view
    """

    found: Recovered
    spectrum: NDArray[np.float64]
    turned: int
    documents: int
    n_missing: int


def view_columns(
    rows: Rows, sketches: tuple[Basis, Basis], k: int, alpha0: float = 0.0
) -> ViewColumns:
    """Find the distributions of k states over words, and their weights, in three sweeps.

    Raises NotIdentifiable if the statistics identify fewer states; the message says how many.
    """
    first = number_of_records(rows)
    width = [1 + sketch.columns for sketch in sketches]
    summed = rows.summed("pairs", _slice_sums, nbytes=8 * width[0] * width[1])
    sides: SideWhitening = whiten_sides(
        rows.value(summed), frame(sketches[0].matrix), frame(sketches[1].matrix), k, alpha0
    )
    pairs = rows.each("rows of pairs", _row_pairs, sides)
    whitened = rows.once("whitening", _whiten_rows, pairs, sides)
    nbytes = 8 * k * width[0] * width[1]
    sums = rows.summed("whitened slices", _contracted, whitened, nbytes=nbytes)
    found, turned = rows.value(rows.once("rotation", recovered, whitened, sums))
    return ViewColumns(found, sides.spectrum, int(turned.sum()), *first)


def number_of_records(rows: Rows) -> tuple[int, int]:
    """Return the number of counted records, and the number of those that lack a view."""
    found: tuple[int, int] = rows.gathered("records", _records)[0]
    return found


def said_of_turned(turned: int) -> str:
    """Return a warning that `turned` states have negative estimates."""
    which = agreeing(turned, "state has", "states have")
    return f"{which} negative estimates and little evidence: ask for fewer"


def half_rows(rows: Rows, odd: bool) -> Rows:
    """Return rows that hold the statistics of the even or the odd half of the records."""
    return rows.prepared("halves", partial(_half, odd=odd), halves=True)


def half_bars(
    columns: NDArray[np.float64], fit_half: Callable[[bool], NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return (k,) expected L1 errors of states, and (n, k) standard errors of their probabilities.

    `columns` are the states of a fit to all records. Each half of the records is fitted separately,
    and its states are matched with `columns`. Half the difference between the halves estimates the
    error of a fit to all records. For one probability it is a single draw of the error, so its
    square is averaged with a part of the sum over all words, as for topics. Returns None if a half
    identifies fewer states.
    """
    try:
        halves = [like(fit_half(odd), columns) for odd in (False, True)]
    except NotIdentifiable:
        return None
    words = np.abs(halves[0] - halves[1]) / 2
    return words.sum(axis=0), np.sqrt(pooled(words**2, np.maximum(columns, 0.0)))


def like(columns: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Reorder the columns so that each is near to the same column of `others`, by L1 distance.

    Examples
    --------
    >>> like(np.array([[0.9, 0.2], [0.1, 0.8]]), np.array([[0.0, 1.0], [1.0, 0.0]]))
    array([[0.2, 0.9],
           [0.8, 0.1]])
    """
    distances = np.abs(columns[:, :, None] - others[:, None, :]).sum(axis=0)
    own, places = optimize.linear_sum_assignment(distances)
    found = np.empty_like(columns)
    found[:, places] = columns[:, own]
    return found


def _records(statistics: ViewStatistics) -> tuple[int, int]:
    return statistics.totals.n_documents, statistics.totals.without


def _slice_sums(statistics: ViewStatistics) -> NDArray[np.int64]:
    return np.asarray(statistics.sums[TRIPLES].sum(axis=0))


def _row_pairs(statistics: ViewStatistics, sides: SideWhitening) -> NDArray[np.float64]:
    return row_pairs(statistics.sums[TRIPLES], sides)


def _whiten_rows(parts: Sequence[NDArray[np.float64]], sides: SideWhitening) -> RowWhitening:
    # `interleaved` also joins blocks without rows: if a view has fewer words than there are blocks,
    # its last blocks have none
    return whiten_row_view(interleaved(parts), sides)


def _contracted(statistics: ViewStatistics, whitened: RowWhitening) -> NDArray[np.float64]:
    return contracted(statistics.sums[TRIPLES], whitened.W[statistics.block.rows])


def _half(statistics: Any, odd: bool) -> ViewStatistics:
    half: ViewStatistics = statistics.half(odd)
    return half
