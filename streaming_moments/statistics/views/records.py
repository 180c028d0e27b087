"""Batches of records with three views, and the same batches prepared for addition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch, concatenate
from streaming_moments.statistics.counts.kernels import row_kernels
from streaming_moments.statistics.halves import count_keys, odd_half
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views import kernels
from streaming_moments.statistics.views.statistics import (
    EVEN,
    LARGEST_FLOAT_SUM,
    LARGEST_SUM,
    PEAK,
    TRIPLES,
    ViewTotals,
)

LEFT, RIGHT = "left_rows", "right_rows"


@dataclass(frozen=True, eq=False)
class ViewBatch:
    """Counts of the same records in three views.

    Parameters
    ----------
    rows, left, right : CountBatch
        (records, n) counts of each view over its own vocabulary. A record without a view has no
        entry in that view. If `rows` has halves, these are the halves of the records; otherwise the
        words of all views decide.

    Raises
    ------
    InvalidInput
        The views have different numbers of records.

    Examples
    --------
    >>> views = [CountBatch.from_csr(one) for one in ([[1, 0]], [[0, 1]], [[2, 1]])]
    >>> ViewBatch(*views).triples
    array([3])
    """

    rows: CountBatch
    left: CountBatch
    right: CountBatch

    __repr__ = short_repr

    def __post_init__(self) -> None:
        sizes = [view.documents for view in self.views]
        if len(set(sizes)) > 1:
            raise InvalidInput(f"the views have {sizes} records; give each record in all three")

    @property
    def views(self) -> tuple[CountBatch, CountBatch, CountBatch]:
        """All three views."""
        return self.rows, self.left, self.right

    @property
    def documents(self) -> int:
        """Number of records."""
        return self.rows.documents

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each record in all views together, (records,) int64."""
        return np.asarray(sum(view.lengths for view in self.views), dtype=np.int64)

    @cached_property
    def triples(self) -> NDArray[np.int64]:
        """Number of ways to choose one word from each view of a record, (records,) int64."""
        return np.asarray(self.rows.lengths * self.left.lengths * self.right.lengths)

    @cached_property
    def odd(self) -> NDArray[np.bool_]:
        """Whether each record is in the odd half, (records,) bool."""
        if self.rows.halves is not None:
            return self.rows.halves
        keys, first = np.zeros(self.documents, dtype=np.uint64), 0
        for view in self.views:
            # number the words of all views consecutively, so that words of two views differ
            keys += count_keys(view.indptr, view.words, view.counts, first, view.n_words)
            first += view.n_words
        return odd_half(keys)

    def halved(self, odd: NDArray[np.bool_] | None) -> ViewBatch:
        """Return the same records, with `odd` as the mask of the odd half.

        With None, the words of a record decide its half.
        """
        return replace(self, rows=replace(self.rows, halves=odd))

    def select(self, start: int, stop: int) -> ViewBatch:
        """Return records `start..stop-1`, which share memory with this batch."""
        return ViewBatch(*(view.select(start, stop) for view in self.views))


def join_views(batches: Sequence[ViewBatch]) -> ViewBatch:
    """Return one batch with the records of all batches in order, with their halves."""
    whole = ViewBatch(
        *(concatenate(views) for views in zip(*(one.views for one in batches), strict=True))
    )
    return whole.halved(np.concatenate([one.odd for one in batches]))


@dataclass(frozen=True, eq=False)
class PreparedRecords:
    """Records with a word in each view, and their sketches.

    The totals also count all other records, which `batch` does not include.
    """

    batch: ViewBatch
    bases: tuple[Basis, Basis, Basis]
    totals: ViewTotals

    @classmethod
    def of(
        cls, batch: ViewBatch, bases: tuple[Basis, Basis, Basis], halves: bool
    ) -> PreparedRecords:
        """Prepare a batch for addition.

        Raises BoundExceeded if the sums of a single record could exceed 2^62, and ForeignStatistics
        if a view and its basis have different vocabularies.
        """
        for view, basis in zip(batch.views, bases, strict=True):
            if (view.n_words, view.vocabulary) != (basis.n_words, basis.vocabulary):
                raise ForeignStatistics(
                    f"a view and its basis have different vocabularies, of {view.n_words} and "
                    f"{basis.n_words} words; count the records with the vocabularies of the "
                    "foundation"
                )
        sizes = [view.lengths.astype(np.float64) for view in batch.views]
        large = np.flatnonzero(PEAK * sizes[0] * sizes[1] * sizes[2] >= LARGEST_SUM)
        if large.size:
            raise BoundExceeded(
                f"record {large[0]} of the batch has {[int(one[large[0]]) for one in sizes]} words "
                "in its views, whose triples could exceed 2^62; cut it into several records"
            )
        triples = batch.triples
        held, even = triples > 0, ~batch.odd
        totals = ViewTotals(
            batch.documents,
            int(batch.lengths.sum()),
            sum(triples.tolist()),
            int((~held).sum()),
            int(even.sum()) if halves else 0,
            sum(triples[even].tolist()) if halves else 0,
        )
        kept = batch if held.all() else _only(batch, held)
        return cls(kept, bases, totals)

    @property
    def nbytes(self) -> int:
        """Bytes of the counts, and of the sketches that are computed from them."""
        sketches = 8 * sum(2 + basis.columns for basis in self.bases) * self.batch.documents
        return 2 * sum(view.nbytes for view in self.batch.views) + sketches

    @property
    def bound(self) -> float:
        """Largest amount that the batch adds to any entry of the row arrays."""
        return float(self.totals.bound)

    def add(self, arrays: Arrays, block: RowBlock) -> None:
        """Add the records to the row arrays of a block."""
        exact = self.bound < LARGEST_FLOAT_SUM
        place = block.index, block.step
        triples, entries = self._sketches, self._entries
        kind = np.float64 if exact else np.int64
        wide = triples[1].astype(kind), triples[2].astype(kind)
        given: list[Any] = [*entries[0], *wide, *place, *_both(arrays, TRIPLES)]
        kernels.add_records(*given)
        for name, view in ((LEFT, 1), (RIGHT, 2)):
            given = [*entries[view], triples[0], *place, *_both(arrays, name)]
            kernels.add_sketches(*given)

    @cached_property
    def _entries(self) -> list[tuple[Any, ...]]:
        odd = self.batch.odd
        return [
            row_kernels.transpose(view.indptr, view.words, view.counts, odd, view.n_words)
            for view in self.batch.views
        ]

    @cached_property
    def _sketches(self) -> list[NDArray[np.int64]]:
        """Rows `[c; Q' x]` for each view, (records, 1 + s) int64; x are counts, c is their sum."""
        return [
            np.asarray(view.to_csr() @ with_constant(basis))
            for view, basis in zip(self.batch.views, self.bases, strict=True)
        ]


def with_constant(basis: Basis) -> NDArray[np.int64]:
    """Return, for each word, the number 1 and the word's row of Q: (n, 1 + s) int64.

    Words outside the core have zeros instead of a row of Q.
    """
    rows = np.zeros((basis.n_words, 1 + basis.columns), dtype=np.int64)
    rows[:, 0] = 1
    rows[: basis.core, 1:] = basis.matrix
    return rows


def joined_records(prepared: Sequence[PreparedRecords]) -> PreparedRecords:
    """Join the records of some batches to one batch."""
    head = prepared[0]
    if len(prepared) == 1:
        return head
    totals = ViewTotals()
    for one in prepared:
        totals = totals + one.totals
    return replace(head, batch=join_views([one.batch for one in prepared]), totals=totals)


def _only(batch: ViewBatch, held: NDArray[np.bool_]) -> ViewBatch:
    views = []
    for view in batch.views:
        csr = view.to_csr()[held]
        counts = csr.data.astype(np.int32)
        views.append(
            CountBatch(
                csr.indptr.astype(np.int64),
                csr.indices.astype(np.int32),
                counts,
                view.n_words,
                view.vocabulary,
            )
        )
    return ViewBatch(*views).halved(batch.odd[held])


def _both(arrays: Arrays, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the array of this name, and that of the even half, which may have no rows."""
    whole = arrays[name]
    return whole, arrays.get(EVEN + name, whole[:0])
