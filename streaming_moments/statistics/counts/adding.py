"""Adding: adds projected batches to the row arrays of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, SumExceeded, short
from streaming_moments.statistics.base import Arrays, subtract_by_adding
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.kernels import pair_kernels, triple_kernels
from streaming_moments.statistics.counts.lengths.room import LARGEST_TOTAL
from streaming_moments.statistics.counts.projection import ProjectedBatch
from streaming_moments.statistics.row_block import RowBlock


@dataclass(eq=False)
class BlockSums:
    """The `Sums` of word counts: row arrays of a block, to which documents are added.

    Each row has a cell for each core word. The 64 bits of a *cell* hold three sums about the two
    words of the row and the cell: the products of their counts in the odd half of the documents,
    those in the even half, and the number of documents with both words. So one addition replaces
    three, each to an array of its own. The cells are stored in the array of pair counts, so most
    rows use no more than a third of the memory of three arrays. Before a sum in a cell of a row
    could overflow, the cells of the row are split into the three arrays. Later documents are added
    to the arrays.

    `arrays` are the int64 row arrays of the block by name, as in `MomentStatistics`. They are all
    zeros at first, and belong to this object.

    Examples
    --------
    >>> from streaming_moments import CountBatch, MomentStatistics
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> one = ProjectedBatch.of(CountBatch.from_csr([[2, 1, 0], [0, 1, 1]]), basis)
    >>> zero = MomentStatistics.zero(basis).arrays()
    >>> sums = BlockSums(basis, RowBlock(), {name: one.copy() for name, one in zero.items()})
    >>> sums.add([one, one])
    >>> sums.rows(slice(2))["pair_counts"].tolist(), sums.opened()["word_counts"].tolist()
    ([[4, 4, 0], [4, 0, 2]], [4, 4, 2])
    """

    basis: Basis
    block: RowBlock
    arrays: Arrays
    _fields: pair_kernels.CellFields = field(init=False)
    _closed: NDArray[np.bool_] = field(init=False)  # whether the pairs of each row are in cells
    _gained: NDArray[np.int64] = field(init=False)  # upper bound of the sums of products in cells

    def __post_init__(self) -> None:
        rows = len(self.arrays["pair_counts"])
        self._fields = pair_kernels.CellFields(
            "even_pair_counts" in self.arrays, "codocuments" in self.arrays
        )
        self._closed = np.ones(rows, dtype=np.bool_)
        self._gained = np.zeros(rows, dtype=np.int64)

    def add(self, batches: Iterable[ProjectedBatch]) -> None:
        """Add batches, which `joined` has made as large as memory allows.

        The caller ensures that the current bound plus the bounds of the batches stays below 2^62.
        """
        arrays, block = self.arrays, self.block
        for projected in of_basis(self.basis, batches):
            for name, sums in arrays.items():
                if sums.ndim == 1:
                    np.add(sums, getattr(projected, name)[block.rows], out=sums)
            self._add_pairs(projected)
            steps = [triple_kernels.add_triples]
            if projected.long.any():
                steps.append(triple_kernels.add_long_triples)
            for step in steps:
                step(
                    block.index,
                    block.step,
                    projected.starts,
                    projected.documents,
                    projected.values,
                    projected.projections,
                    projected.long,
                    arrays["triple_sketch"],
                )

    def subtract(self, batches: Iterable[ProjectedBatch]) -> None:
        """Subtract batches that were added earlier; raises the errors of `add`."""
        subtract_by_adding(self.opened(), self.add, batches)

    def rows(self, rows: slice) -> dict[str, NDArray[np.int64]]:
        """Return some rows of all arrays for reading: views, or new arrays if rows are in cells."""
        found = {name: array[rows] for name, array in self.arrays.items()}
        closed = self._closed[rows]
        if closed.any():
            cells = found["pair_counts"]
            for name in found.keys() & {"pair_counts", "even_pair_counts", "codocuments"}:
                held = found[name]
                found[name], opened = np.empty_like(held), ~closed[: len(held)]
                found[name][opened] = held[opened]
            self._split(cells, closed, found)
        return found

    def opened(self) -> Arrays:
        """Split all cells into their three sums, and return the arrays, not copies."""
        self._open(self._closed)
        return self.arrays

    def _add_pairs(self, projected: ProjectedBatch) -> None:
        arrays, block = self.arrays, self.block
        if projected.batch is None:
            gains = projected.largest_products(block)
            most, documents = self._fields.largest
            full = (gains > most - self._gained) | (arrays["document_frequencies"] > documents)
            self._open(self._closed & full)
            self._add_cells(projected)
            self._gained[self._closed] += gains[self._closed]
        else:
            self.opened()
        if not self._closed.all():
            projected.add_pairs(
                block,
                arrays["pair_counts"],
                arrays.get("codocuments"),
                arrays.get("even_pair_counts"),
                chosen=~self._closed,
            )

    def _add_cells(self, projected: ProjectedBatch) -> None:
        fields, cells = self._fields, self.arrays["pair_counts"].view(np.uint64)
        pair_kernels.add_to_cells(
            self.block.index,
            self.block.step,
            projected.starts,
            projected.odd_starts,
            projected.documents,
            projected.values,
            projected.core_starts,
            projected.packed,
            fields.bits,
            fields.halves,
            fields.codocuments,
            self._closed,
            cells,
        )

    def _split(self, cells: NDArray[np.int64], rows: NDArray[np.bool_], into: Arrays) -> None:
        none = np.zeros((0, cells.shape[1]), dtype=np.int64)
        found = (into.get(name, none) for name in ("even_pair_counts", "codocuments"))
        pair_kernels.split_cells(
            cells.view(np.uint64), self._fields.bits, rows, into["pair_counts"], *found
        )

    def _open(self, rows: NDArray[np.bool_]) -> None:
        # if cells have only one field, they already are the pair counts: do not split them
        if self._fields.halves or self._fields.codocuments:
            # skip rows without documents: writing to them would allocate memory
            held = rows & (self.arrays["document_frequencies"] > 0)
            self._split(self.arrays["pair_counts"], held, self.arrays)
        self._closed = self._closed & ~rows


def of_basis(basis: Basis, batches: Iterable[ProjectedBatch]) -> Iterator[ProjectedBatch]:
    """Yield the batches; raise ForeignStatistics for a batch of another basis."""
    for projected in batches:
        if projected.basis != basis:
            raise ForeignStatistics(foreign("basis", projected.basis, basis))
        yield projected


def refuse_overflow(bound: float) -> None:
    """Raise SumExceeded if the bound of sums is 2^62 or more, because they could then overflow."""
    if bound >= LARGEST_TOTAL:
        raise SumExceeded(
            f"a sum of the triple sketch or of the pair counts may reach {bound:.3g}, above 2^62",
            "cut the documents into shorter passages ({create.passage_words}), or open "
            "another store",
        )


def foreign(what: str, one: Basis, other: Basis) -> str:
    """Return the message for two bases that cannot be combined."""
    return (
        f"{what} {short(one.fingerprint)} (vocabulary {short(one.vocabulary)}) and {what} "
        f"{short(other.fingerprint)} (vocabulary {short(other.vocabulary)}) differ; "
        "only statistics of one basis can be combined"
    )
