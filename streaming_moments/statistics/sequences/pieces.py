"""Pieces: parts of named sequences, so that the parts in different shards can be joined.

A piece stores its place in the sequence and the two symbols at each end, because windows across the
seam between two pieces contain no other symbols. The windows across seams are computed from the
pieces of a version, so they are not stored. Pieces are added and subtracted like counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import PiecesOverlap
from streaming_moments.statistics.base import Arrays, adds_own
from streaming_moments.statistics.views.statistics import ViewTotals

# value for a symbol that a short piece does not have; -1 is a symbol outside the alphabet
ABSENT = -2
_TABLE = "pieces"
# Columns of the table of pieces. KEY: hash of the name. BEGIN and END: first and last place of the
# piece in its sequence. NUMBERED: whether places are numbers. LENGTH: number of symbols. EDGES:
# first two and last two symbols. NAME: beginning of the name. _SIGN: how often the piece was added.
KEY, BEGIN, END = slice(0, 2), slice(2, 4), slice(4, 6)
NUMBERED, LENGTH = 6, 7
EDGES, NAME = slice(8, 12), slice(12, 15)
_SIGN = 15
# Bytes that a piece takes while pieces are sorted and joined. Measured: 5.5 times the 128 bytes of
# its row.
JOINING_BYTES = 6 * 128
_NAME_BYTES = 24
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of sequences: a commutative group under `+`.

    Places in a sequence are pairs of integers in lexicographic order. If places are consecutive
    numbers, a piece is joined to the piece that begins at the number after its last place. If
    places only give an order, a piece is joined to the next one. `chunks` are (pieces, 16) int64
    rows in any order; each row says how often its piece was added.

    Examples
    --------
    >>> one = Pieces.of(["a"], np.array([[0, 0, 3, 0]]), True, np.array([4]), [[0, 1, 1, 0]])
    >>> two = Pieces.of(["a"], np.array([[4, 0, 4, 0]]), True, np.array([1]), [[2, -2, -2, -2]])
    >>> len(one + two), (one + two).joined.tolist(), one + two - one == two
    (2, [False, True], True)
    """

    chunks: tuple[NDArray[np.int64], ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        places: NDArray[np.int64],
        numbered: bool,
        lengths: NDArray[np.int64],
        edges: NDArray[np.int64] | Sequence[Sequence[int]],
    ) -> Self:
        """Make m pieces of the sequences with these names.

        places : (m, 4) int64, first and last place of each piece, two integers each
        numbered : whether places are consecutive numbers
        lengths : (m,) int64, number of symbols of each piece
        edges : (m, 4) int64, the first two symbols of each piece, and the last two if it has three
            symbols or more; `ABSENT` where a piece has no such symbol
        """
        if not names:
            return cls()
        texts = [name.encode() for name in names]
        table = np.empty((len(names), 16), dtype=np.int64)
        table[:, KEY] = keys_of(names)
        table[:, BEGIN.start : END.stop] = places
        table[:, NUMBERED] = numbered
        table[:, LENGTH] = lengths
        table[:, EDGES] = edges
        table[:, NAME] = np.array(texts, dtype=f"S{_NAME_BYTES}").view("<i8").reshape(-1, 3)
        table[:, _SIGN] = 1
        return cls((table,))

    def __len__(self) -> int:
        return len(self.table)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows of pieces, including rows that subtract a piece."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def __add__(self, other: Self) -> Self:
        return type(self)((*self.chunks, *other.chunks))

    def __sub__(self, other: Self) -> Self:
        away = []
        for chunk in other.chunks:
            away.append(chunk.copy())
            away[-1][:, _SIGN] *= -1
        return type(self)((*self.chunks, *away))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pieces) and np.array_equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        return {"chunks": self.chunks}

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """All chunks added up: (pieces, 16) int64, a row for each piece, by sequence and place."""
        if not self.chunks:
            return np.empty((0, 16), dtype=np.int64)
        rows = np.concatenate(self.chunks)
        rows = rows[np.lexsort(rows[:, _SIGN - 1 :: -1].T)]
        first = np.ones(len(rows), np.bool_)
        first[1:] = (rows[1:, :_SIGN] != rows[:-1, :_SIGN]).any(axis=1)
        starts = np.flatnonzero(first)
        signs = np.add.reduceat(rows[:, _SIGN], starts)
        rows = rows[starts]
        rows[:, _SIGN] = signs
        return np.asarray(rows[signs != 0])

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """Return the array from which pieces can be restored, by name; no array without pieces."""
        return {_TABLE: self.table} if len(self) else {}

    @classmethod
    def of_tables(cls, tables: Arrays) -> Self:
        """Restore pieces from `tables`."""
        return cls((tables[_TABLE],)) if _TABLE in tables else cls()

    @property
    def follows(self) -> NDArray[np.bool_]:
        """Whether each piece belongs to the same sequence as the previous piece, (pieces,) bool."""
        found = np.zeros(len(self), np.bool_)
        found[1:] = (self.table[1:, KEY] == self.table[:-1, KEY]).all(axis=1)
        return found

    @property
    def joined(self) -> NDArray[np.bool_]:
        """Whether each piece begins directly where the piece before it ends, (pieces,) bool."""
        found, table = self.follows, self.table
        ends, begins = table[:-1, END], table[1:, BEGIN]
        next_one = (begins[:, 0] - ends[:, 0] == 1) & (begins[:, 1] == 0) & (ends[:, 1] == 0)
        found[1:] &= (table[:-1, NUMBERED] == 0) | next_one
        return found

    @property
    def lacking(self) -> bool:
        """Whether a piece was subtracted more often than it was added."""
        return bool((self.table[:, _SIGN] < 0).any())

    def gaps(self) -> list[str]:
        """Describe each gap, where a piece does not begin where the previous piece ends."""
        return [self._seam(place) for place in np.flatnonzero(self.follows & ~self.joined).tolist()]

    def require_apart(self) -> None:
        """Raise PiecesOverlap if two pieces cover the same place of a sequence."""
        table = self.table
        twice = table[:, _SIGN] > 1
        ends, begins = table[:-1, END], table[1:, BEGIN]
        later = (begins[:, 0] > ends[:, 0]) | (begins[:, 0] == ends[:, 0]) & (
            begins[:, 1] > ends[:, 1]
        )
        overlaps = self.follows
        overlaps[1:] &= ~later
        found = [f"{self._named(place)} twice" for place in np.flatnonzero(twice).tolist()]
        found += [self._seam(place) for place in np.flatnonzero(overlaps).tolist()]
        if found:
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            raise PiecesOverlap(
                f"pieces of a sequence overlap: {'; '.join(found[:_SHOWN])}{more}: none of them is "
                "counted; leave out shards whose content is already counted, `forget` the counted "
                "ones, or give different sequences different names"
            )

    def _seam(self, place: int) -> str:
        return f"{self._named(place - 1)} and {_span(self.table[place])}"

    def _named(self, place: int) -> str:
        row = self.table[place]
        text = np.ascontiguousarray(row[NAME]).astype("<i8").tobytes().rstrip(b"\0")
        name = text.decode(errors="ignore")
        more = "..." if len(text) == _NAME_BYTES else ""
        return f"{name + more!r} {_span(row)}"


@adds_own
@dataclass(frozen=True)
class SequenceTotals(ViewTotals):
    """Totals of sequences; `pieces` has a row for each piece of a named sequence."""

    pieces: Pieces = field(default_factory=Pieces)

    def tables(self) -> dict[str, NDArray[np.int64]]:
        """Return the array of all numbers, and that of the pieces if there are any."""
        return {**super().tables(), **self.pieces.tables()}

    @classmethod
    def of_tables(cls, tables: Arrays) -> Self:
        """Restore totals from `tables`; without tables all numbers are 0."""
        return replace(super().of_tables(tables), pieces=Pieces.of_tables(tables))

    @property
    def below_zero(self) -> list[str]:
        """Names of totals that are negative, because more was subtracted than added."""
        return super().below_zero + (["pieces"] if self.pieces.lacking else [])

    @property
    def _numbers(self) -> list[int]:
        return super()._numbers[:-1]  # all numbers except the pieces

    def __add__(self, other: Self) -> Self:
        return replace(super().__add__(other), pieces=self.pieces + other.pieces)

    def __sub__(self, other: Self) -> Self:
        return replace(super().__sub__(other), pieces=self.pieces - other.pieces)


def keys_of(names: Sequence[str]) -> NDArray[np.int64]:
    """Hash each name to 128 bits, (names, 2) int64; an odd first number means the odd half.

    Examples
    --------
    >>> keys_of(["a", "b", "a"])[:, 0] & 1
    array([1, 0, 1])
    """
    digests = b"".join(hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(digests, dtype="<i8").reshape(-1, 2).astype(np.int64)


def edges_of(
    offsets: NDArray[np.int64], symbols: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first two and last two symbols of each piece, (pieces, 2); `ABSENT` if missing."""
    sizes = np.diff(offsets)
    first = np.full((sizes.size, 2), ABSENT, dtype=np.int64)
    last = first.copy()
    for place in range(2):
        held = sizes > place
        first[held, place] = symbols[offsets[:-1][held] + place]
        last[held, 1 - place] = symbols[offsets[1:][held] - 1 - place]
    return first, last


def _span(row: NDArray[np.int64]) -> str:
    return f"from {_place(row[BEGIN])} to {_place(row[END])}"


def _place(pair: NDArray[np.int64]) -> str:
    whole, part = pair.tolist()
    if abs(whole) == 1 << 62:
        return "anywhere"
    return f"{whole}" if not part else f"{whole}+{part}"
