"""MomentStatistics: additive integer state to which all models of documents are fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.html_table import html_table
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import adds_own
from streaming_moments.statistics.counts.adding import (
    BlockSums,
    foreign,
    of_basis,
    refuse_overflow,
)
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch, require_batch
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.row_lengths import L, RowLengths
from streaming_moments.statistics.counts.projection import ProjectedBatch, joined
from streaming_moments.statistics.row_block import RowBlock

Number = TypeVar("Number", np.int64, np.float64)
SIGNED = frozenset({"triple_sketch"})  # names of arrays whose entries may be below zero


@dataclass(frozen=True, eq=False)
class WordArrays(Generic[L, Number]):
    """Arrays with one row for each word of a row block: whole numbers or weighted sums.

    `MomentStatistics` defines each array; `statistic_shapes` has its shape, and whether it exists.
    """

    basis: Basis
    block: RowBlock
    length_histogram: L
    word_counts: NDArray[Number]
    document_frequencies: NDArray[Number]
    pair_counts: NDArray[Number]
    triple_sketch: NDArray[Number]
    codocuments: NDArray[Number] | None = None
    later: tuple[tuple[int, L], ...] = ()
    weighted_counts: NDArray[Number] | None = None
    even_pair_counts: NDArray[Number] | None = None

    __repr__ = short_repr
    __sizeof__ = held_bytes

    @property
    def shown_facts(self) -> list[str]:
        """Texts for `repr`: numbers of documents and words, size of the core, and basis columns."""
        basis, rows = self.basis, self.word_counts.size
        part = f"{rows:,} of {of_number(basis.n_words, 'word')}"
        return [
            of_number(self.length_histogram.n_documents, "document"),
            of_number(rows, "word") if rows == basis.n_words else part,
            f"core {basis.core:,}",
            f"basis of {of_number(basis.columns, 'column')}",
        ]

    @property
    def moment_counts(self) -> NDArray[Number]:
        """(r,) `sum w x_i` for M1: the word counts if documents are pooled."""
        return self.word_counts if self.weighted_counts is None else self.weighted_counts

    @property
    def row_lengths(self) -> RowLengths[L]:
        """Lengths of the documents that are counted in each row."""
        return RowLengths(self.length_histogram, self.later)


@adds_own
@dataclass(frozen=True, eq=False, repr=False)
class MomentStatistics(WordArrays[LengthHistogram, np.int64]):
    """Sufficient statistics of the first three moments for a block of rows, all int64.

    A commutative group: `zero` is the identity, `+` and `-` are exact, so any order and any
    partition of the documents gives the same bits. With x the counts of a document, `y = Q' x`, and
    w its length weight, the arrays are:

    Parameters
    ----------
    basis : Basis
        Q and the length weights, with the fingerprint of the vocabulary.
    block : RowBlock
        Row block of r words, r_core of them core words.
    length_histogram : LengthHistogram
        Number of documents of each length; all blocks of the same documents have the same.
    word_counts : (r,) int64
        `sum x_i`, in tokens.
    document_frequencies : (r,) int64
        `sum [x_i > 0]`, in documents.
    pair_counts : (r, core) int64
        `P_ih = sum w (x_i x_h - [i = h] x_i)`: ordered pairs of distinct positions.
    triple_sketch : (r, s (s + 1) / 2) int64
        `T_i = sum w x_i y y'`, packed upper triangle.
    codocuments : (r_core, core) int64 or None
        `sum [x_i > 0][x_h > 0]`, in documents; None if not gathered.
    later : tuple of (int, LengthHistogram)
        Words added later, as in `RowLengths`: first row, and lengths of the documents counted in
        it.
    weighted_counts : (r,) int64 or None
        `sum w x_i`; None if documents are pooled, because it then equals `word_counts`.
    even_pair_counts : (r, core) int64 or None
        `pair_counts` of the even half of the documents; None if not gathered. `pair_counts` minus
        this array is that of the odd half; see `CountBatch.odd`.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[2, 1, 0], [0, 1, 1]])
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> statistics = MomentStatistics.of(batch, basis)
    >>> statistics.pair_counts
    array([[2, 2, 0],
           [2, 0, 1],
           [0, 1, 0]])
    >>> statistics + MomentStatistics.zero(basis) == statistics
    True
    """

    def __post_init__(self) -> None:
        shapes = statistic_shapes(self.basis, self.block, *self.optional)
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is None:
                raise InvalidInput(f"documents are weighted by length, so {name} is needed as well")
            if array.shape != shape or array.dtype != np.int64:
                raise InvalidInput(
                    f"{name} must be {shape} of int64, got {array.shape} of {array.dtype}"
                )
            array.setflags(write=False)
        if self.weighted_counts is not None and "weighted_counts" not in shapes:
            raise InvalidInput(
                "documents are pooled, so weighted_counts would equal word_counts; leave it out"
            )

    def _repr_html_(self) -> str:
        rows = [(name, " x ".join(map(str, one.shape))) for name, one in self.arrays().items()]
        said = f"statistics of {self.n_documents:,} documents"
        return html_table(said, ["array of int64", "shape"], rows)

    @classmethod
    def zero(
        cls,
        basis: Basis,
        block: RowBlock = RowBlock(),
        codocuments: bool = True,
        halves: bool = True,
    ) -> MomentStatistics:
        """Return empty statistics, the identity of `+`."""
        return cls.of_projected([], basis, block, codocuments, halves)

    @classmethod
    def of(
        cls,
        batch: CountBatch,
        basis: Basis,
        block: RowBlock = RowBlock(),
        codocuments: bool = True,
        halves: bool = True,
    ) -> MomentStatistics:
        """Gather the statistics of a batch of documents.

        Parameters
        ----------
        batch : CountBatch
            (documents, n) counts on the basis's vocabulary.
        basis : Basis
            Basis, with the length weights.
        block : RowBlock, optional
            Rows to gather; all by default.
        codocuments : bool, optional
            Whether to gather co-document counts, which coherences need.
        halves : bool, optional
            Whether to gather the pair counts of half of the documents, for error bars and held-out
            likelihood.

        Raises
        ------
        InvalidInput
            `batch` is not a CountBatch.
        ForeignStatistics
            Batch and basis have different vocabularies.
        BoundExceeded
            A sum would exceed 2^62: use shorter passages, or another store for later documents.
        """
        require_batch(batch)
        projected = [ProjectedBatch.of(batch, basis)]
        return cls.of_projected(projected, basis, block, codocuments, halves)

    @classmethod
    def of_projected(
        cls,
        batches: Iterable[ProjectedBatch],
        basis: Basis,
        block: RowBlock = RowBlock(),
        codocuments: bool = True,
        halves: bool = True,
    ) -> MomentStatistics:
        """Add the statistics of several batches to the arrays of one block.

        Batches are joined while they take fewer bytes than these arrays.
        """
        arrays = zero_arrays(basis, block, codocuments, halves)
        histogram, bound = LengthHistogram.zero(basis.weights), 0.0

        def noted() -> Iterator[ProjectedBatch]:
            nonlocal histogram, bound
            for projected in of_basis(basis, batches):
                histogram = histogram + projected.totals.whole
                bound += projected.triple_bound
                # also check C2, the bound of the pair counts: if terms of y cancel, it is larger
                # than the bound of the triples
                refuse_overflow(max(bound, histogram.C2))
                yield projected

        sums_bytes = sum(array.nbytes for array in arrays.values())
        sums = BlockSums(basis, block, arrays)
        sums.add(joined(noted(), sums_bytes))
        return cls(basis, block, histogram, later=(), **sums.opened())

    def __add__(self, other: MomentStatistics) -> MomentStatistics:
        self.require_same(other.basis, other.block, *other.optional)
        refuse_overflow(float(self._largest) + float(other._largest))
        return self._with(self.row_lengths + other.row_lengths, other, np.add)

    def __sub__(self, other: MomentStatistics) -> MomentStatistics:
        self.require_same(other.basis, other.block, *other.optional)
        left = self._with(self.row_lengths - other.row_lengths, other, np.subtract)
        left.require_non_negative()
        return left

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MomentStatistics):
            return NotImplemented
        if (self.basis, self.block) != (other.basis, other.block):
            return False
        if self.row_lengths != other.row_lengths:
            return False
        if self.optional != other.optional:
            return False
        mine, theirs = self.arrays(), other.arrays()
        return all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    @property
    def optional(self) -> tuple[bool, bool]:
        """Whether co-document counts are gathered, and whether pair counts of halves are."""
        return self.codocuments is not None, self.even_pair_counts is not None

    @property
    def totals(self) -> RowLengths[LengthHistogram]:
        """Totals over all documents: all row blocks of the same documents have the same totals."""
        return self.row_lengths

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.length_histogram.n_documents

    @property
    def nbytes(self) -> int:
        """Bytes of the int64 arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return the row arrays by name, with the optional arrays that were gathered."""
        names = statistic_shapes(self.basis, self.block, *self.optional)
        return {name: getattr(self, name) for name in names}

    def require_non_negative(self) -> None:
        """Raise InvalidInput if a count is negative.

        Raises
        ------
        InvalidInput
            Subtracted documents were never added; the message names the arrays.
        """
        negative = [
            f"{name} ({int((array < 0).sum())} counts below zero)"
            for name, array in self.arrays().items()
            if name not in SIGNED and array.size and array.min() < 0
        ]
        if self.even_pair_counts is not None and (self.pair_counts < self.even_pair_counts).any():
            negative.append("pair_counts (of the odd half below zero)")
        if self._diagonal.size and self._diagonal.min() < 0:
            negative.append("triple_sketch (squares below zero)")
        if negative:
            raise InvalidInput(
                f"documents were subtracted that were never added: {', '.join(negative)}; "
                "subtract only added documents"
            )

    @property
    def _diagonal(self) -> NDArray[np.int64]:
        """(r, s) int64, the diagonals of T_i, which are sums of `w x_i` times squares of y."""
        columns = self.basis.columns
        places = np.cumsum([0, *range(columns, 1, -1)])
        diagonal: NDArray[np.int64] = self.triple_sketch[:, places]
        return diagonal

    @cached_property
    def _largest(self) -> int:
        # |T_ab| <= sqrt(T_aa T_bb), so the diagonals bound the sketch; C2 bounds the pair counts
        diagonal = self._diagonal
        squares = int(diagonal.max()) if diagonal.size else 0
        return max(squares, self.length_histogram.C2)

    def require_same(self, basis: Basis, block: RowBlock, codocuments: bool, halves: bool) -> None:
        """Raise ForeignStatistics for another basis, other rows or other optional arrays.

        Raises
        ------
        ForeignStatistics
            Something differs; the message says what.
        """
        if self.basis != basis:
            raise ForeignStatistics(foreign("basis", self.basis, basis))
        if self.block != block:
            raise ForeignStatistics(
                f"rows {self.block} and rows {block} cannot be combined; "
                "add statistics of the same rows"
            )
        kinds = (("co-document counts", "codocuments"), ("halves", "halves"))
        given = (codocuments, halves)
        for (what, name), own, other in zip(kinds, self.optional, given, strict=True):
            if own != other:
                raise ForeignStatistics(
                    f"one of the statistics has {what}, but the other does not; "
                    f"gather both with {name}=True or both without"
                )

    def _with(
        self, lengths: RowLengths[LengthHistogram], other: MomentStatistics, combine: np.ufunc
    ) -> MomentStatistics:
        theirs = other.arrays()
        arrays = {name: combine(mine, theirs[name]) for name, mine in self.arrays().items()}
        return replace(self, length_histogram=lengths.whole, later=lengths.later, **arrays)


def statistic_shapes(
    basis: Basis, block: RowBlock, codocuments: bool, halves: bool, n_words: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each int64 row array of `MomentStatistics` by name.

    With `n_words`, the shapes are for only that many first words. Arrays with one number for each
    word are sums of arrays of the same name in `ProjectedBatch`.

    Examples
    --------
    >>> basis = Basis(np.eye(4, 2, dtype=np.int8), 6)
    >>> statistic_shapes(basis, RowBlock(1, 2), codocuments=True, halves=True)["pair_counts"]
    (3, 4)
    """
    rows = block.size(basis.n_words if n_words is None else n_words)
    shapes: dict[str, tuple[int, ...]] = {
        "word_counts": (rows,),
        "document_frequencies": (rows,),
        "pair_counts": (rows, basis.core),
        "triple_sketch": (rows, basis.packed),
    }
    if not basis.weights.is_pooled:
        shapes["weighted_counts"] = (rows,)
    if codocuments:
        shapes["codocuments"] = (block.size(basis.core), basis.core)
    if halves:
        shapes["even_pair_counts"] = shapes["pair_counts"]
    return shapes


def zero_arrays(
    basis: Basis, block: RowBlock, codocuments: bool, halves: bool
) -> dict[str, NDArray[np.int64]]:
    """Return arrays of zeros with the `statistic_shapes`."""
    shapes = statistic_shapes(basis, block, codocuments, halves)
    return {name: np.zeros(shape, dtype=np.int64) for name, shape in shapes.items()}


def merge_blocks(blocks: Sequence[MomentStatistics]) -> MomentStatistics:
    """Join the blocks `0..step-1` of the same documents to statistics of all rows.

    Raises
    ------
    ForeignStatistics
        Blocks are missing, or have different documents or bases.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[2, 1, 0], [0, 1, 1]])
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> halves = [MomentStatistics.of(batch, basis, RowBlock(i, 2)) for i in range(2)]
    >>> merge_blocks(halves) == MomentStatistics.of(batch, basis)
    True
    """
    ordered = sorted(blocks, key=lambda part: part.block.index)
    step = ordered[0].block.step if ordered else 0
    if not ordered or [part.block for part in ordered] != [RowBlock(i, step) for i in range(step)]:
        raise ForeignStatistics(
            f"row blocks {[(part.block.index, part.block.step) for part in ordered]} "
            "are not a partition of all rows; give each block of one partition once"
        )
    head = ordered[0]
    for part in ordered[1:]:
        if part.basis != head.basis:
            raise ForeignStatistics(foreign("basis", head.basis, part.basis))
        if part.row_lengths != head.row_lengths:
            raise ForeignStatistics(
                "the row blocks have different documents; give row blocks of the same documents"
            )
    shapes = statistic_shapes(head.basis, RowBlock(), *head.optional)
    arrays = {name: np.empty(shape, dtype=np.int64) for name, shape in shapes.items()}
    for part in ordered:
        for name, array in part.arrays().items():
            arrays[name][part.block.rows] = array
    return MomentStatistics(
        head.basis, RowBlock(), head.length_histogram, later=head.later, **arrays
    )
