"""VectorsFoundation: grid and sketch that define the statistics of dense rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.vectors.rows import (
    PreparedVectors,
    SummedVectors,
    VectorBatch,
    joined_vectors,
)
from streaming_moments.statistics.vectors.statistics import (
    FOURTH,
    VectorStatistics,
    VectorTotals,
    broken_identities,
    sizes_of,
)
from streaming_moments.statistics.vectors.sums import LARGEST_FLOAT_SUM, bytes_beside
from streaming_moments.statistics.views.statistics import (
    EVEN,
    LARGEST_SUM,
    require_bounded,
    require_same_foundation,
)
from streaming_moments.statistics.views.three_views import ViewSums

# Each sum is divided into rows of at most this many bytes. A smaller sum forms a single row,
# because fewer files are read faster.
_ROW_BYTES = 16 << 20
_LARGEST_SHIFT = 40
LARGEST_OF_FOURTH = 64
"""Largest number of columns of a sketch whose fourth moments are counted. The number of fourth
moments grows with the fourth power of the number of columns.
"""
_SINGLE_BITS = 24
_LARGEST_SINGLE = 2.0**_SINGLE_BITS
# number of rows that are converted to floats at a time, so that they fit in the cache
_AT_A_TIME = 1024


@dataclass(frozen=True, eq=False)
class VectorsFoundation:
    """Definition of the statistics of dense rows; a `Foundation`.

    A row is rounded to a point x (d,) of the grid. Its sketch is `y = (Q'x + half) >> shift` (s,),
    where `half` makes the shift round to the nearest integer.

    Parameters
    ----------
    grid : Grid
        Grid to which rows are rounded.
    matrix : (d, s) int8
        Q, with independent columns.
    shift : (s,) uint8
        Bits by which each column is shifted right.
    squares : bool
        Whether `sum x_i x_h^2` is stored, for a variance of each coordinate in each component.
    fourth : bool
        Whether fourth moments of the sketch are stored, for factors without skewness.
    halves : bool
        Whether the sums of half of the rows are stored separately, for error bars.
    by_content : bool
        Whether the integers of a row on the grid decide its half; otherwise its position in the
        shard does, as in stores of earlier formats.

    Raises
    ------
    InvalidInput
        The matrix or shifts do not match the grid, columns are dependent, there are fourth moments
        of more than 64 columns, or a row of the sketch could exceed 2^53.

    Examples
    --------
    >>> grid = Grid(np.zeros(2), step=0.1, radius=1000)
    >>> sketch = np.eye(2, dtype=np.int8)
    >>> foundation = VectorsFoundation(grid, sketch, np.zeros(2, np.uint8), halves=False)
    >>> statistics = foundation.of_vectors(VectorBatch.of(np.array([[0.1, 0.2], [0.3, 0.0]])))
    >>> statistics.flat("first"), statistics.flat("second")
    (array([4, 2]), array([10,  2,  4]))
    """

    grid: Grid
    matrix: NDArray[np.int8]
    shift: NDArray[np.uint8]
    squares: bool = False
    fourth: bool = False
    halves: bool = True
    by_content: bool = True
    kind: ClassVar[str] = "vectors"
    drawn: ClassVar[str] = "grid and sketch"
    can_rebase: ClassVar[bool] = True
    joins: ClassVar[bool] = False
    one_place: ClassVar[bool] = True
    by_length: ClassVar[bool] = False
    adds_words: ClassVar[bool] = False
    told_halves: ClassVar[bool] = False
    since_first: ClassVar[frozenset[str]] = frozenset()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        matrix, shift = self.matrix, self.shift
        if matrix.dtype != np.int8 or matrix.ndim != 2 or len(matrix) != self.dimension:
            raise InvalidInput(
                f"a sketch is a (d, s) matrix of int8 for d = {self.dimension}, got "
                f"{matrix.shape} of {matrix.dtype}"
            )
        if shift.dtype != np.uint8 or shift.shape != matrix.shape[1:]:
            raise InvalidInput(
                f"shifts are ({matrix.shape[1]},) of uint8, got {shift.shape} of {shift.dtype}"
            )
        if shift.max(initial=0) > _LARGEST_SHIFT:
            raise InvalidInput(
                f"a shift has {shift.max()} bits; it must have at most {_LARGEST_SHIFT}"
            )
        if self.fourth and self.columns > LARGEST_OF_FOURTH:
            raise InvalidInput(
                f"fourth moments of {self.columns} columns would be {self.sizes[FOURTH]:,} sums; "
                f"give at most {LARGEST_OF_FOURTH} columns of the sketch, or leave fourth moments "
                "out"
            )
        if not matrix.shape[1] or np.linalg.matrix_rank(matrix.astype(float)) < matrix.shape[1]:
            raise InvalidInput(
                f"the {matrix.shape[1]} columns of the sketch are missing or linearly dependent; "
                "give fewer columns, or a larger pilot"
            )
        if self.largest_gain >= LARGEST_FLOAT_SUM:
            raise InvalidInput(
                f"one row could add {self.largest_gain:.3g} to a sum; shift the sketch by more bits"
            )
        for array in (matrix, shift):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorsFoundation):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the grid, the sketch, and which sums are stored."""
        grid = self.grid
        head = f"vectors {grid.dimension} {grid.step.hex()} {grid.radius} {grid.whole}"
        kept = f" {self.columns} {self.squares} {self.fourth} {self.halves} "
        arrays = (grid.offset, self.matrix, self.shift)
        content = b"".join(array.tobytes("C") for array in arrays)
        return hashlib.sha256((head + kept).encode() + content).hexdigest()

    @property
    def halves_by_content(self) -> bool:
        """Whether sums of one half are stored, and the numbers of a row decide its half."""
        return self.halves and self.by_content

    @property
    def words(self) -> dict[str, Vocabulary]:
        """Empty: rows hold numbers, not words."""
        return {}

    @property
    def dimension(self) -> int:
        """Number d of coordinates of a row."""
        return self.grid.dimension

    @property
    def columns(self) -> int:
        """Number s of columns of the sketch."""
        return int(self.matrix.shape[1])

    @property
    def basis(self) -> NDArray[np.float64]:
        """Matrix `Q 2^-shift`, (d, s), with which y is `basis' x` up to rounding."""
        return np.ldexp(self.matrix.astype(np.float64), -self.shift.astype(np.int64))

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of entries of each sum, by name."""
        return sizes_of(self.dimension, self.columns, self.squares, self.fourth)

    @property
    def joined_bytes(self) -> int:
        """Bytes of the sums of all row blocks, and of the temporary arrays of `joined`."""
        held = 8 * sum(self.sizes.values()) * (1 + self.halves)
        return held + bytes_beside(self.dimension, self.columns, self.squares, self.fourth)

    @property
    def rows(self) -> int:
        """Number of rows into which each sum is divided: one, unless it is too large for a file."""
        return -(-8 * sum(self.sizes.values()) * (1 + self.halves) // _ROW_BYTES)

    @cached_property
    def largest_gain(self) -> int:
        """Largest amount that a row adds to any entry of the row arrays."""
        return largest_gain(self.grid, self.matrix, self.shift, self.squares, self.fourth)

    def gains(self, sketches: NDArray[np.int64], norms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the largest amount that each row adds to any entry of the row arrays, (N,)."""
        most = np.abs(sketches).max(axis=1, initial=0)
        found = np.maximum(np.maximum(norms, most**3), most * norms)
        if self.squares:
            # add 1, because the root is rounded down
            found = np.maximum(found, (np.sqrt(norms).astype(np.int64) + 1) * norms)
        if self.fourth:
            found = np.maximum(found, most**4)
        return np.asarray(found, dtype=np.int64)

    def sketched(self, rows: NDArray[np.int16]) -> NDArray[np.int32]:
        """Return the (N, s) sketches y of rows of the grid."""
        # An entry of Q'x is at most the norm of x times the norm of a column of Q. If this bound is
        # small enough, float32 is exact.
        peak = np.sqrt((self.matrix.astype(np.float64) ** 2).sum(axis=0)).max()
        exact = peak * reach_of(self.grid) < _LARGEST_SINGLE and self.shift.max() < _SINGLE_BITS
        kind: Any = np.float32 if exact else np.float64
        whole: Any = np.int32 if exact else np.int64
        matrix, shift = self.matrix.astype(kind), self.shift.astype(whole)
        half = np.ones_like(shift) << shift >> 1
        sketches = np.empty((len(rows), self.columns), dtype=np.int32)
        for start in range(0, len(rows), _AT_A_TIME):
            part = slice(start, start + _AT_A_TIME)
            wide = (rows[part].astype(kind) @ matrix).astype(whole)
            sketches[part] = (wide + half) >> shift
        return sketches

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (offset, Q, shifts) and attributes (rest of the grid, which sums exist)."""
        arrays: dict[str, NDArray[Any]] = {
            "offset": self.grid.offset,
            "Q": self.matrix,
            "shift": self.shift,
        }
        grid = {"step": self.grid.step, "radius": self.grid.radius, "whole": self.grid.whole}
        kept = {"squares": self.squares, "fourth": self.fourth, "halves_kept": self.halves}
        return arrays, {**grid, **kept}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            The parts do not describe a foundation.
        """
        told = attributes
        radius, whole = int(told["radius"]), bool(told["whole"])
        grid = Grid(arrays["offset"], float(told["step"]), radius, whole)
        kept = [told[name] for name in ("squares", "fourth", "halves_kept")]
        rule = map(bool, [*kept, told.get("by_content", True)])
        return cls(grid, arrays["Q"], arrays["shift"], *rule)

    def names(self) -> dict[str, str]:
        """Return the fingerprint, for the manifest of a segment."""
        return {"basis": self.fingerprint, "vocabulary": ""}

    def shapes(self, block: RowBlock, rows: int | None = None) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, also of those of the even half."""
        held = block.size(self.rows)
        whole = {name: (held, -(-size // self.rows)) for name, size in self.sizes.items()}
        even = {EVEN + name: shape for name, shape in whole.items()} if self.halves else {}
        return {**whole, **even}

    def compresses(self, name: str) -> bool:
        """Return True, because the leading bytes of sums are zeros."""
        return True

    def totals(self, tables: Arrays, rows: int | None = None) -> VectorTotals:
        """Restore totals from `VectorTotals.tables`."""
        return VectorTotals.of_tables(tables)

    def statistics(self, block: RowBlock, totals: VectorTotals, arrays: Arrays) -> VectorStatistics:
        """Return statistics from stored arrays."""
        return VectorStatistics(self, block, totals, arrays)

    def require_own(self, statistics: VectorStatistics) -> None:
        """Refuse statistics of another foundation, with an error of `require_same_foundation`."""
        require_same_foundation(self, statistics)

    def prepared(self, batch: VectorBatch) -> PreparedVectors:
        """Round a batch to the grid and sketch it; raises the errors of `PreparedVectors.of`."""
        return PreparedVectors.of(batch, self)

    def rejection_reason(self, totals: VectorTotals) -> str | None:
        """Return why to reject the records if none of them is numeric, else None."""
        if totals.n_tokens:
            return None
        return (
            f"none of its {totals.n_documents} records has {self.dimension} finite numbers; check "
            "the columns, or create a store from such shards"
        )

    def tokens_below(self, bound: float, most: int) -> int:
        """Return `most`, because the grid limits what any row can add to a sum."""
        return most

    def require_bounded(self, bound: float) -> None:
        """Refuse sums that could exceed 2^62; raises the error of `require_bounded`."""
        require_bounded(bound)

    def room(self, totals: VectorTotals) -> int:
        """Return how many vectors can be counted before an entry of a sum could exceed 2^62.

        The estimate is for vectors like those in `totals`.
        """
        return LARGEST_SUM * totals.n_tokens // max(1, totals.largest)

    def joined(
        self, batches: Iterable[PreparedVectors], most_bytes: int
    ) -> Iterator[SummedVectors]:
        """Yield sums over groups of batches, each with as many batches as fit in `most_bytes`."""
        held: list[PreparedVectors] = []
        size = 0
        for batch in batches:
            if held and size + batch.nbytes > most_bytes:
                yield joined_vectors(held)
                held, size = [], 0
            held.append(batch)
            size += batch.nbytes
        if held:
            yield joined_vectors(held)

    def sums(self, block: RowBlock) -> ViewSums:
        """Return sums of zero for a block of rows, to which records can be added."""
        shapes = self.shapes(block).items()
        return ViewSums(block, {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes})

    def of(
        self, batches: Iterable[PreparedVectors], block: RowBlock = RowBlock()
    ) -> VectorStatistics:
        """Return the statistics of prepared batches; without batches, all sums are 0.

        Raises
        ------
        BoundExceeded
            A sum could exceed 2^62.
        """
        sums, totals = self.sums(block), VectorTotals()
        for batch in batches:
            totals = totals + batch.totals
            require_bounded(totals.bound)
            sums.add([batch])
        return VectorStatistics(self, block, totals, sums.arrays)

    def of_vectors(self, batch: VectorBatch, block: RowBlock = RowBlock()) -> VectorStatistics:
        """Return the statistics of some rows; raises the errors of `prepared`."""
        return self.of([self.prepared(batch)], block)

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: VectorTotals
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield the identities that stored statistics violate."""
        return broken_identities(self, blocks, totals)


def largest_gain(
    grid: Grid, matrix: NDArray[np.int8], shift: NDArray[np.uint8], squares: bool, fourth: bool
) -> int:
    """Return the largest amount that a row of the grid adds to any entry of the row arrays."""
    radius = reach_of(grid)
    basis = np.ldexp(matrix.astype(np.float64), -shift.astype(np.int64))
    most = int(np.sqrt((basis**2).sum(axis=0)).max(initial=0) * radius) + 2
    gains = [radius**2, most**3, most * radius**2]
    return max(gains + [(radius + 1) * radius**2] * squares + [most**4] * fourth)


def reach_of(grid: Grid) -> int:
    """Return the largest norm of a row of the grid, which can exceed the radius by rounding."""
    return grid.radius + isqrt(grid.dimension) + 1
