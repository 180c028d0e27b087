"""Symbols of sequences, and their windows of three prepared for addition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.halves import odd_half, row_keys
from streaming_moments.statistics.ranges import require_range
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.sequences.pieces import Pieces, SequenceTotals
from streaming_moments.statistics.views import kernels
from streaming_moments.statistics.views.statistics import EVEN, LARGEST_FLOAT_SUM, TRIPLES

FIRST = "first_counts"
UNKNOWN = -1
# An alphabet has at most this many symbols, so that one integer of 62 bits identifies a window.
MOST_SYMBOLS = 1 << 20


@dataclass(frozen=True, eq=False)
class SymbolBatch:
    """Chunks of sequences, each with the two symbols before it.

    A window is counted with the chunk that has its last symbol, and the first symbol of a sequence
    with the first chunk of the sequence. So each window is counted once, wherever sequences are
    cut. Windows with a symbol outside the alphabet are skipped.

    Parameters
    ----------
    offsets : (chunks + 1,) int64
        Start of the symbols of each chunk, which begin with its context.
    symbols : (symbols,) int32
        Index of each symbol in the alphabet, -1 for unknown symbols.
    context : (chunks,) int8
        Number of leading symbols of a chunk, 0 to 2, that were counted with an earlier chunk.
    begins : (chunks,) bool
        Whether a sequence begins with the chunk.
    odd : (chunks,) bool
        Whether the sequence of the chunk is in the odd half.
    short : int
        Number of sequences that end in the batch and have fewer than three symbols in all.
    pieces : Pieces
        Pieces of sequences that can continue in other shards; each piece counts as a sequence.

    Raises
    ------
    InvalidInput
        The arrays do not match.

    Examples
    --------
    >>> batch = SymbolBatch.of([[0, 1, 0, 2], [1, 1]])
    >>> batch.documents, batch.windows[0].tolist(), batch.short
    (2, [[0, 1, 0], [1, 0, 2]], 1)
    """

    offsets: NDArray[np.int64]
    symbols: NDArray[np.int32]
    context: NDArray[np.int8]
    begins: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    short: int = 0
    pieces: Pieces = field(default_factory=Pieces)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        sizes = np.diff(self.offsets)
        chunks = {sizes.size, self.context.size, self.begins.size, self.odd.size}
        held = len(chunks) == 1 and self.offsets[0] == 0 and self.offsets[-1] == self.symbols.size
        if not held or (sizes < self.context).any() or (self.context[self.begins] > 0).any():
            raise InvalidInput(
                "the arrays do not describe chunks of sequences: a chunk must include its "
                "context, and the first chunk of a sequence must have no context"
            )

    @classmethod
    def of(
        cls,
        sequences: Sequence[Sequence[int] | NDArray[np.int64]],
        odd: NDArray[np.bool_] | None = None,
    ) -> SymbolBatch:
        """Make a batch of whole sequences; by default, their symbols decide their halves."""
        sizes = np.array([len(one) for one in sequences], dtype=np.int64)
        joined = [np.asarray(one, dtype=np.int32) for one in sequences]
        symbols = np.concatenate([np.empty(0, np.int32), *joined])
        return cls.whole(np.concatenate([[0], np.cumsum(sizes)]), symbols, odd)

    @classmethod
    def whole(
        cls,
        offsets: NDArray[np.int64],
        symbols: NDArray[np.int32],
        odd: NDArray[np.bool_] | None = None,
    ) -> SymbolBatch:
        """Make a batch of whole sequences, which are one after another in `symbols`."""
        sizes = np.diff(offsets)
        if odd is None:
            odd = odd_half(row_keys(offsets, symbols))
        context, begins = np.zeros(sizes.size, np.int8), np.ones(sizes.size, np.bool_)
        return cls(offsets, symbols, context, begins, odd, int((sizes < 3).sum()))

    def select(self, start: int, stop: int) -> SymbolBatch:
        """Return chunks `start..stop-1`, without `pieces`, and with 0 as `short`."""
        require_range(start, stop, self.documents)
        begin, end = self.offsets[start], self.offsets[stop]
        own = slice(start, stop)
        return SymbolBatch(
            self.offsets[start : stop + 1] - begin,
            self.symbols[begin:end],
            self.context[own],
            self.begins[own],
            self.odd[own],
        )

    @property
    def documents(self) -> int:
        """Number of chunks."""
        return int(self.begins.size)

    @property
    def sequences(self) -> int:
        """Number of sequences that begin in the batch."""
        return int(self.begins.sum())

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Number of symbols of each chunk without its context, (chunks,) int64."""
        return np.asarray(np.diff(self.offsets) - self.context, dtype=np.int64)

    @cached_property
    def own(self) -> NDArray[np.bool_]:
        """Mask of the symbols that are not the context of their chunk, (symbols,) bool."""
        places = np.arange(self.symbols.size) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        return np.asarray(places >= np.repeat(self.context, np.diff(self.offsets)))

    @property
    def windows(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Symbols of the windows, (windows, 3), and whether each window is in the odd half."""
        sizes = np.diff(self.offsets)
        last = np.arange(self.symbols.size)
        inside = last - np.repeat(self.offsets[:-1], sizes) >= 2
        places = last[inside & self.own]
        found = np.stack([self.symbols[places - back] for back in (2, 1, 0)], axis=1)
        known = (found >= 0).all(axis=1)
        odd = np.repeat(self.odd, sizes)[places]
        return found[known], odd[known]

    @property
    def firsts(self) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """First symbols of sequences, if known, and whether these sequences are in the odd half."""
        begun = self.begins & (np.diff(self.offsets) > 0)
        found = self.symbols[self.offsets[:-1][begun]]
        return found[found >= 0], self.odd[begun][found >= 0]


@dataclass(frozen=True, eq=False)
class PreparedWindows:
    """Distinct windows with their counts, sorted by middle symbol, half, left and right symbol.

    cells, counts : (kinds,) int64, distinct windows and their counts for `kernels.add_windows`
    firsts, odd_firsts : (n,) int64, how many sequences begin with each symbol, in both halves
        together and in the odd half
    sketch : the sketch of the alphabet
    totals : totals of the sequences; symbols outside the alphabet are not tokens
    """

    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    firsts: NDArray[np.int64]
    odd_firsts: NDArray[np.int64]
    sketch: Basis
    totals: SequenceTotals

    @classmethod
    def of(cls, batch: SymbolBatch, sketch: Basis, halves: bool) -> PreparedWindows:
        """Prepare a batch for addition; raises InvalidInput for a symbol outside `-1..n-1`."""
        n = sketch.n_words
        if batch.symbols.size and not -1 <= batch.symbols.min() <= batch.symbols.max() < n:
            raise InvalidInput(
                f"symbols are {batch.symbols.min()} to {batch.symbols.max()}, but the alphabet has "
                f"0 to {n - 1}; give -1 for symbols outside it"
            )
        windows, odd = batch.windows
        left, middle, right = (windows[:, place].astype(np.int64) for place in range(3))
        cells, counts = counted(((middle * 2 + odd) * n + left) * n + right)
        first, odd_first = batch.firsts
        known = int((batch.symbols[batch.own] >= 0).sum())
        totals = SequenceTotals(
            batch.sequences,
            known,
            len(odd),
            batch.short,
            int((batch.begins & ~batch.odd).sum()) if halves else 0,
            int((~odd).sum()) if halves else 0,
            batch.pieces,
        )
        firsts = np.bincount(first, minlength=n).astype(np.int64)
        odd_firsts = np.bincount(first[odd_first], minlength=n).astype(np.int64)
        return cls(cells, counts, firsts, odd_firsts, sketch, totals)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        own = self.cells.nbytes + self.counts.nbytes + 2 * self.firsts.nbytes
        return int(own + self.totals.pieces.nbytes)

    @property
    def bound(self) -> float:
        """Largest amount that the batch adds to any entry of the row arrays."""
        return float(max(self.totals.bound, self.totals.n_documents))

    def add(self, arrays: Arrays, block: RowBlock) -> None:
        """Add the windows and first symbols to the row arrays of a block."""
        kind = np.float64 if self.bound < LARGEST_FLOAT_SUM else np.int64
        sums = arrays[TRIPLES]
        kernels.add_windows(
            self.cells,
            self.counts,
            self._groups,
            self.sketch.n_words,
            self._sketch.astype(kind),
            block.index,
            block.step,
            sums,
            arrays.get(EVEN + TRIPLES, sums[:0]),
        )
        arrays[FIRST][:] += self.firsts[block.rows]
        if EVEN + FIRST in arrays:
            arrays[EVEN + FIRST][:] += (self.firsts - self.odd_firsts)[block.rows]

    @cached_property
    def _groups(self) -> NDArray[np.int64]:
        heads = self.cells // self.sketch.n_words // self.sketch.n_words
        return np.concatenate(
            [np.flatnonzero(np.diff(heads, prepend=-1)), [heads.size]], dtype=np.int64
        )

    @cached_property
    def _sketch(self) -> NDArray[np.int64]:
        """(core + 1, 1 + s) array: for each core symbol the number 1 and the symbol's row of Q.

        The last row is for all symbols outside the core.
        """
        rows = np.zeros((self.sketch.core + 1, 1 + self.sketch.columns), dtype=np.int64)
        rows[:, 0] = 1
        rows[:-1, 1:] = self.sketch.matrix
        return rows


def counted(
    cells: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct integers of `cells`, increasing, with the sum of the counts of each.

    Examples
    --------
    >>> counted(np.array([7, 3, 7]))
    (array([3, 7]), array([1, 2]))
    """
    if counts is None:
        ordered = np.sort(cells)
        first = np.flatnonzero(np.diff(ordered, prepend=-1))
        return ordered[first], np.diff(np.append(first, ordered.size))
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    sums = np.add.reduceat(counts[order], first) if first.size else counts[:0]
    return ordered[first], sums


def joined_windows(prepared: Sequence[PreparedWindows]) -> PreparedWindows:
    """Join the windows of some batches to one batch."""
    head = prepared[0]
    if len(prepared) == 1:
        return head
    cells, counts = counted(
        np.concatenate([one.cells for one in prepared]),
        np.concatenate([one.counts for one in prepared]),
    )
    totals = SequenceTotals()
    for one in prepared:
        totals = totals + one.totals
    firsts = np.sum([one.firsts for one in prepared], axis=0)
    odd_firsts = np.sum([one.odd_firsts for one in prepared], axis=0)
    return PreparedWindows(cells, counts, firsts, odd_firsts, head.sketch, totals)
