"""ProjectedBatch: a batch of counts prepared for the kernels, or several batches joined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import BoundExceeded, ForeignStatistics, short
from streaming_moments.numerics.read_only import read_only
from streaming_moments.numerics.runs import run_sums
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.kernels import pair_kernels, row_kernels, wide_pairs
from streaming_moments.statistics.counts.lengths.histogram import LengthHistogram
from streaming_moments.statistics.counts.lengths.room import (
    LARGEST_FLOAT_SUM,
    LARGEST_TOTAL,
    room_for_projection,
)
from streaming_moments.statistics.counts.lengths.row_lengths import RowLengths
from streaming_moments.statistics.halves import odd_by_place
from streaming_moments.statistics.row_block import RowBlock

_LARGEST_PACKED = 2**16


@dataclass(frozen=True, eq=False)
class ProjectedBatch:
    """Documents prepared for the kernels: their counts by word, and their projections.

    The projection of a document is `y = Q' x`, where x are the counts of its core words.
    It is made once for a batch, and all row blocks use it. To save memory and transfer between
    workers, it only stores arrays that the kernels read.

    basis : the basis, with the matrix Q
    lengths : (documents,) int64, length of each document in vocabulary tokens
    word_counts, weighted_counts : (n,) int64, number of tokens of each word, without and with the
        weights of the documents
    starts : (n + 1,) int64, start of each word's entries
    odd_starts : (n,) int64, start of the entries of the odd half, which follow those of the even
        half
    documents, values : (entries,) int32, document of each entry, in the order of words, and its
        count times the weight of the document
    projections : (documents, s) float32 y, whole numbers. They are exact: `w c max|y|^2 < 2^62` and
        `max|y| <= 128 c` imply `max|y| < 2^23`. Reading this array limits the speed of the kernels,
        and float32 has half the bytes of float64.
    long : (documents,) bool, documents whose products could exceed 2^53 and are summed in int64
    triple_bound : upper bound of what the batch adds to an entry of any T_i
    largest : largest count of a word in a document
    core_starts : (documents + 1, 2) int64, starts in `packed` of each document's core words with
        count 1, and of its other core words
    packed : (numbers,) uint16, the words with count 1, and word and count of the others; empty if
        words, counts or sums of products are too large
    batch : the counts of each document, if they are not packed; else None
    """

    basis: Basis
    lengths: NDArray[np.int64]
    word_counts: NDArray[np.int64]
    weighted_counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    odd_starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    values: NDArray[np.int32]
    projections: NDArray[np.float32]
    long: NDArray[np.bool_]
    triple_bound: float
    largest: int
    core_starts: NDArray[np.int64]
    packed: NDArray[np.uint16]
    batch: CountBatch | None

    @classmethod
    def of(cls, batch: CountBatch, basis: Basis) -> ProjectedBatch:
        """Project a batch.

        Raises BoundExceeded if the sums of a single document could exceed 2^62; cut it into
        passages then. Raises ForeignStatistics if batch and basis have different vocabularies.
        """
        if (batch.n_words, batch.vocabulary) != (basis.n_words, basis.vocabulary):
            raise ForeignStatistics(
                f"the batch has vocabulary {short(batch.vocabulary)} ({batch.n_words} words), but "
                f"the basis {short(basis.fingerprint)} has {short(basis.vocabulary)} "
                f"({basis.n_words} words); count the documents with the basis's vocabulary"
            )
        by_place = basis.table is not None and batch.halves is None
        odd = odd_by_place(0, batch.documents) if by_place else batch.odd
        starts, odd_starts, documents, values = row_kernels.transpose(
            batch.indptr, batch.words, batch.counts, odd, batch.n_words
        )
        word_counts = run_sums(starts, values)
        weights, weighted_counts = basis.weights.at(batch.lengths), word_counts
        if not basis.weights.is_pooled:
            values = _weighted(values, weights[documents])
            weighted_counts = run_sums(starts, values)
        projections = np.empty((batch.documents, basis.columns), dtype=np.float32)
        bounds = np.empty(batch.documents)
        total = room_for_projection(batch, basis.columns)
        tokens = weights * batch.lengths
        row_kernels.project(
            batch.indptr,
            batch.words,
            batch.counts,
            tokens,
            read_only(basis.matrix),
            total,
            projections,
            bounds,
        )
        _refuse_endless(batch.lengths, bounds)
        largest = int(batch.counts.max(initial=0))
        packs = basis.core <= _LARGEST_PACKED
        packs = packs and fits_cells(weighted_counts, largest, batch.documents)
        core_starts, packed = (
            pair_kernels.pack_core(batch.indptr, batch.words, batch.counts, basis.core)
            if packs
            else (np.zeros((1, 2), dtype=np.int64), np.zeros(0, dtype=np.uint16))
        )
        return cls(
            basis,
            batch.lengths,
            word_counts,
            weighted_counts,
            starts,
            odd_starts,
            documents,
            values,
            projections,
            _long_documents(bounds),
            float(bounds.sum()),
            largest,
            core_starts,
            packed,
            None if packs else batch,
        )

    @property
    def document_frequencies(self) -> NDArray[np.int64]:
        """Number of documents with each word, (n,) int64."""
        return np.diff(self.starts)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = (
            self.lengths,
            self.word_counts,
            self.weighted_counts,
            self.starts,
            self.odd_starts,
            self.documents,
            self.values,
            self.projections,
            self.long,
            self.core_starts,
            self.packed,
        )
        own = sum(array.nbytes for array in arrays)
        return own if self.batch is None else own + self.batch.nbytes

    @cached_property
    def totals(self) -> RowLengths[LengthHistogram]:
        """Lengths of its documents."""
        return RowLengths(LengthHistogram.of(self.lengths, self.basis.weights))

    @property
    def bound(self) -> float:
        """Largest amount that the batch adds to any entry of the row arrays.

        It is the larger one of two bounds: that of the triples, and C2 for the pairs. C2 is larger
        if terms of y cancel.
        """
        return max(self.triple_bound, float(self.totals.bound))

    def add_pairs(
        self,
        block: RowBlock,
        pair_counts: NDArray[np.int64],
        codocuments: NDArray[np.int64] | None,
        even_pair_counts: NDArray[np.int64] | None = None,
        chosen: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the pairs of the batch to the first r rows of a block, and to optional arrays.

        pair_counts : (r, core) int64, `P += X' V X[:, :core] - diag(sum w x)`, where V is the
            diagonal matrix of the weights w
        codocuments : (r', core) int64 or None, `D += (X > 0)' (X > 0)`, where r' is at most r
        even_pair_counts : (r, core) int64 or None, like `pair_counts`, for documents of the even
            half only
        chosen : (r,) bool, rows to add to, by default all; a batch that is not packed ignores this
            and adds to all rows
        """
        if self.batch is None:
            none = np.zeros((0, pair_counts.shape[1]), dtype=np.int64)
            wide_pairs.add_pairs_together(
                block.index,
                block.step,
                self.starts,
                self.odd_starts,
                self.documents,
                self.values,
                self.core_starts,
                self.packed,
                _count_bits(self.lengths.size),
                np.ones(len(pair_counts), dtype=np.bool_) if chosen is None else chosen,
                pair_counts,
                none if even_pair_counts is None else even_pair_counts,
                none if codocuments is None else codocuments,
            )
            return
        for stops, sums in ((self.starts[1:], pair_counts), (self.odd_starts, even_pair_counts)):
            if sums is not None:
                wide_pairs.add_pairs(
                    block.index,
                    block.step,
                    self.starts[:-1],
                    stops,
                    self.documents,
                    self.values,
                    self.batch.indptr,
                    self.batch.words,
                    self.batch.counts,
                    sums,
                )
        if codocuments is not None:
            wide_pairs.add_codocuments(
                block.index,
                block.step,
                self.starts,
                self.documents,
                self.batch.indptr,
                self.batch.words,
                codocuments,
            )

    def largest_products(self, block: RowBlock) -> NDArray[np.int64]:
        """Return (r,) upper bounds of summed products of two words' counts, for rows of a block."""
        return self.weighted_counts[block.rows] * self.largest


def fits_cells(weighted_counts: NDArray[np.int64], largest: int, documents: int) -> bool:
    """Whether counts fit in 16 bits, and sums of products in the bits that a cell has for them.

    `weighted_counts` is (n,) int64, the weighted count of each word. `largest` is the largest count
    of a word in a document. `documents` is the number of documents in a sum; it takes the other
    bits of a cell.

    Examples
    --------
    >>> fits_cells(np.array([2**41, 3]), 60_000, 64), fits_cells(np.array([2**42, 3]), 60_000, 64)
    (True, False)
    """
    sums = int(weighted_counts.max(initial=0)) * largest
    return largest < _LARGEST_PACKED and sums < 1 << (64 - _count_bits(documents))


def _count_bits(documents: int) -> int:
    """Return how many bits of a cell a number of documents takes."""
    return max(documents.bit_length(), 1)


def _weighted(values: NDArray[np.int32], weights: NDArray[np.int64]) -> NDArray[np.int32]:
    weighted = weights * values
    if weighted.max(initial=0) > np.iinfo(np.int32).max:
        raise BoundExceeded(
            f"a count times the weight of its document is {weighted.max()}, above 2^31",
            "cut long documents into passages ({create.passage_words}), or count them by "
            "{create.length_weights:pooled}",
        )
    return weighted.astype(np.int32)


def _refuse_endless(lengths: NDArray[np.int64], bounds: NDArray[np.float64]) -> None:
    if bounds.size and bounds.max() >= LARGEST_TOTAL:
        document = int(bounds.argmax())
        raise BoundExceeded(
            f"document {document} has {int(lengths[document])} vocabulary tokens, and its "
            f"triples may reach {bounds[document]:.3g}, above 2^62",
            "cut it into passages ({create.passage_words})",
        )


def _long_documents(bounds: NDArray[np.float64]) -> NDArray[np.bool_]:
    long = np.zeros(bounds.size, dtype=np.bool_)
    # compare the rounded sum with half of the limit, because the exact sum is below twice as much
    if bounds.sum() < LARGEST_FLOAT_SUM / 2:
        return long
    order = np.argsort(bounds, kind="stable")
    long[order] = np.cumsum(bounds[order]) >= LARGEST_FLOAT_SUM
    return long


def joined(batches: Iterable[ProjectedBatch], most_bytes: int) -> Iterator[ProjectedBatch]:
    """Join batches to fewer batches of the same documents.

    The kernels read and write each row of their sums once per batch, which takes as long as
    counting a few thousand documents.

    All batches have one basis. They are joined while the result has fewer than `most_bytes`. A
    larger batch stays unchanged.

    Examples
    --------
    >>> from streaming_moments import Basis, CountBatch
    >>> basis = Basis(np.array([[1], [-1], [2]], dtype=np.int8), n_words=3)
    >>> one = ProjectedBatch.of(CountBatch.from_csr([[2, 1, 0], [0, 1, 1]]), basis)
    >>> [both] = joined([one, one], most_bytes=10_000)
    >>> both.starts.tolist(), both.documents.tolist(), both.values.tolist()
    ([0, 2, 6, 8], [0, 2, 0, 1, 2, 3, 1, 3], [2, 2, 1, 1, 1, 1, 1, 1])
    """
    waiting: list[ProjectedBatch] = []
    size = _Size()
    for batch in batches:
        larger = size + _Size.of(batch)
        if waiting and not larger.joinable(most_bytes):
            yield _join(waiting, size)
            waiting, larger = [], _Size.of(batch)
        waiting.append(batch)
        size = larger
    if waiting:
        yield _join(waiting, size)


@dataclass(frozen=True)
class _Size:
    """Size of a batch: bytes and bounds of its sums, which decide whether batches can be joined."""

    nbytes: int = 0
    triple_bound: float = 0.0
    word_counts: NDArray[np.int64] | int = 0
    weighted_counts: NDArray[np.int64] | int = 0
    largest: int = 0
    documents: int = 0
    packed: bool = True

    @classmethod
    def of(cls, batch: ProjectedBatch) -> _Size:
        return cls(
            batch.nbytes,
            batch.triple_bound,
            batch.word_counts,
            batch.weighted_counts,
            batch.largest,
            batch.lengths.size,
            batch.batch is None,
        )

    def __add__(self, other: _Size) -> _Size:
        return _Size(
            self.nbytes + other.nbytes,
            self.triple_bound + other.triple_bound,
            self.word_counts + other.word_counts,
            self.weighted_counts + other.weighted_counts,
            max(self.largest, other.largest),
            self.documents + other.documents,
            self.packed and other.packed,
        )

    def joinable(self, most_bytes: int) -> bool:
        return (
            self.packed
            and self.nbytes <= most_bytes
            and self.triple_bound < LARGEST_FLOAT_SUM
            and fits_cells(np.asarray(self.weighted_counts), self.largest, self.documents)
        )


def _join(batches: Sequence[ProjectedBatch], size: _Size) -> ProjectedBatch:
    if len(batches) == 1:
        return batches[0]
    runs = np.zeros((batches[0].basis.n_words, 2), dtype=np.int64)
    for batch in batches:
        places = np.stack([batch.starts[:-1], batch.odd_starts, batch.starts[1:]], axis=1)
        runs += np.diff(places)
    starts = np.concatenate([[0], np.cumsum(runs.sum(axis=1))])
    odd_starts = starts[:-1] + runs[:, 0]
    documents = np.empty(starts[-1], dtype=np.int32)
    values = np.empty(starts[-1], dtype=np.int32)
    free, odd_free, before = starts[:-1].copy(), odd_starts.copy(), 0
    for batch in batches:
        row_kernels.append_runs(
            batch.starts,
            batch.odd_starts,
            batch.documents,
            batch.values,
            before,
            free,
            odd_free,
            documents,
            values,
        )
        before += batch.lengths.size
    ends = np.cumsum([0, *(batch.packed.size for batch in batches)])
    core_starts = [
        batch.core_starts[:-1] + end for batch, end in zip(batches, ends[:-1], strict=True)
    ]
    return ProjectedBatch(
        basis=batches[0].basis,
        lengths=np.concatenate([batch.lengths for batch in batches]),
        word_counts=np.asarray(size.word_counts),
        weighted_counts=np.asarray(size.weighted_counts),
        starts=starts,
        odd_starts=odd_starts,
        documents=documents,
        values=values,
        projections=np.concatenate([batch.projections for batch in batches]),
        long=np.concatenate([batch.long for batch in batches]),
        triple_bound=size.triple_bound,
        largest=size.largest,
        core_starts=np.concatenate([*core_starts, np.full((1, 2), ends[-1])]),
        packed=np.concatenate([batch.packed for batch in batches]),
        batch=None,
    )
