"""Batches of numeric rows, and the same batches prepared for addition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.halves import odd_half, row_keys
from streaming_moments.statistics.ranges import require_range
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.vectors.statistics import VectorTotals
from streaming_moments.statistics.vectors.sums import sums_of
from streaming_moments.statistics.views.statistics import EVEN, LARGEST_SUM


@dataclass(frozen=True, eq=False)
class VectorBatch:
    """Numeric rows, and the number of records that are not numeric.

    Parameters
    ----------
    values : (N, d)
        Finite numbers of any type of up to 64 bits.
    odd : (N,) bool, optional
        Mask of the rows in the odd half; by default, the integers of a row on the grid decide.
    without : int
        Number of other records, which do not have d finite numbers.

    Raises
    ------
    InvalidInput
        The arrays do not match, or are not numeric.

    Examples
    --------
    >>> batch = VectorBatch.of(np.array([[1.0, 2.0], [np.nan, 0.0]]))
    >>> batch.values, batch.without
    (array([[1., 2.]]), 1)
    """

    values: NDArray[Any]
    odd: NDArray[np.bool_] | None = None
    without: int = 0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.dtype.kind not in "biuf":
            raise InvalidInput(
                f"vectors are (N, d) numbers, got {self.values.shape} of {self.values.dtype}"
            )
        if self.odd is not None and self.odd.shape != self.values.shape[:1]:
            raise InvalidInput(
                f"there are {len(self.values)} rows, but the halves have shape {self.odd.shape}; "
                "give one truth value for each row"
            )

    @classmethod
    def of(cls, values: NDArray[Any], odd: NDArray[np.bool_] | None = None) -> VectorBatch:
        """Make a batch of the rows with only finite numbers; `without` counts the other rows."""
        sound = np.isfinite(values).all(axis=1)
        if sound.all():
            return cls(values, odd)
        kept = None if odd is None else odd[sound]
        return cls(values[sound], kept, int((~sound).sum()))

    @property
    def documents(self) -> int:
        """Number of records."""
        return len(self.values) + self.without

    @property
    def held(self) -> int:
        """Number of numeric rows; `select` and `take` refer to them by number."""
        return len(self.values)

    def take(self, places: NDArray[np.int64]) -> VectorBatch:
        """Return a copy of the rows at these positions, in the order of `places`."""
        odd = None if self.odd is None else self.odd[places]
        return VectorBatch(self.values[places], odd)

    def select(self, start: int, stop: int) -> VectorBatch:
        """Return rows `start..stop-1`, which share memory with this batch."""
        require_range(start, stop, self.held)
        odd = None if self.odd is None else self.odd[start:stop]
        return VectorBatch(self.values[start:stop], odd)


def join_vectors(batches: Sequence[VectorBatch]) -> VectorBatch:
    """Return one batch with the rows of all batches in order, without `odd` and `without`."""
    return VectorBatch(np.concatenate([one.values for one in batches]))


@dataclass(frozen=True, eq=False)
class PreparedVectors:
    """Rows of the grid with their sketches.

    rows : (N, d) int16, rows x of the grid
    sketches : (N, s) int32, their sketches y
    norms : (N,) int64, their squared norms x.x
    odd : (N,) bool, whether each row is in the odd half
    totals : totals of the records
    """

    foundation: Any
    rows: NDArray[np.int16]
    sketches: NDArray[np.int32]
    norms: NDArray[np.int64]
    odd: NDArray[np.bool_]
    totals: VectorTotals

    @classmethod
    def of(cls, batch: VectorBatch, foundation: Any) -> PreparedVectors:
        """Prepare a batch for addition; raises ForeignStatistics for another number of columns."""
        if batch.values.shape[1] != foundation.dimension:
            raise ForeignStatistics(
                f"rows have {batch.values.shape[1]} numbers, but the foundation has "
                f"{foundation.dimension}; give rows of that width, or make a foundation from these"
            )
        rows, norms, clipped = foundation.grid.quantised(batch.values)
        sketches = foundation.sketched(rows)
        gains = foundation.gains(sketches.astype(np.int64), norms)
        # if int64 could overflow, sum Python's integers, which cannot
        fits = foundation.largest_gain * len(gains) < LARGEST_SUM
        largest = int(gains.sum()) if fits else sum(gains.tolist())
        odd = _odd_rows(rows) if batch.odd is None else batch.odd
        even = int((~odd).sum()) if foundation.halves else 0
        totals = VectorTotals(batch.documents, len(rows), clipped, even, largest)
        return cls(foundation, rows, sketches, norms, odd, totals)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        held = (self.rows, self.sketches, self.norms, self.odd)
        return sum(array.nbytes for array in held)

    @property
    def bound(self) -> float:
        """Largest amount that these rows add to any entry of the row arrays."""
        return float(self.totals.bound)

    @cached_property
    def summed(self) -> SummedVectors:
        """Sums of the rows."""
        if not self.foundation.halves:
            return SummedVectors(self.foundation, self._sums(slice(None)), self.totals)
        even, whole = self._sums(np.flatnonzero(~self.odd)), self._sums(np.flatnonzero(self.odd))
        for name, array in whole.items():
            array += even[name]
        halves = {EVEN + name: array for name, array in even.items()}
        return SummedVectors(self.foundation, whole | halves, self.totals)

    def add(self, arrays: Arrays, block: RowBlock) -> None:
        """Add the rows to the row arrays of a block."""
        self.summed.add(arrays, block)

    def _sums(self, part: Any) -> dict[str, NDArray[np.int64]]:
        base = self.foundation
        return sums_of(
            self.rows[part],
            self.sketches[part],
            self.norms[part],
            base.largest_gain,
            base.squares,
            base.fourth,
        )


@dataclass(frozen=True, eq=False)
class SummedVectors:
    """Sums of some rows, as flat int64 arrays by name, which can be added to sums of a block."""

    foundation: Any
    sums: dict[str, NDArray[np.int64]]
    totals: VectorTotals

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.sums.values())

    @property
    def bound(self) -> float:
        """Largest amount that these rows add to any entry of the row arrays."""
        return float(self.totals.bound)

    def add(self, arrays: Arrays, block: RowBlock) -> None:
        """Add the rows to the row arrays of a block."""
        for name, flat in self.sums.items():
            width = arrays[name].shape[1]
            for place, row in enumerate(arrays[name]):
                start = (place * block.step + block.index) * width
                held = flat[start : start + width]
                row[: held.size] += held


def joined_vectors(prepared: Sequence[PreparedVectors]) -> SummedVectors:
    """Sum the rows of some batches together; the result does not keep the rows in memory."""
    head = prepared[0]
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in prepared])
        for name in ("rows", "sketches", "norms", "odd")
    }
    totals = VectorTotals()
    for one in prepared:
        totals = totals + one.totals
    return PreparedVectors(head.foundation, totals=totals, **arrays).summed


def _odd_rows(rows: NDArray[np.int16]) -> NDArray[np.bool_]:
    """Return whether each row of the grid is in the odd half, (N,)."""
    starts = np.arange(len(rows) + 1, dtype=np.int64) * rows.shape[1]
    return odd_half(row_keys(starts, rows.ravel()))
