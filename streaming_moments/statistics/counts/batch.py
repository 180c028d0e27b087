"""CountBatch: a canonical sparse matrix of documents by words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.errors import ForeignStatistics, InvalidInput
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.numerics.runs import run_sums
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.kernels import row_kernels
from streaming_moments.statistics.halves import count_keys, mostly_repeated, odd_half
from streaming_moments.statistics.ranges import require_range

_LARGEST_COUNT = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class CountBatch:
    """Word counts of some documents in canonical compressed rows.

    Make one with `from_csr`; the constructor trusts its arrays and freezes them.
    Within a document the words rise strictly and the counts are positive.

    Parameters
    ----------
    indptr : (documents + 1,) int64
        Start of each document's entries.
    words : (entries,) int32
        Index of the word of each entry.
    counts : (entries,) int32
        How often the word of each entry occurs in its document, at least 1.
    n_words : int
        Number of words n of the vocabulary.
    vocabulary : str, optional
        Fingerprint of the vocabulary; empty for matrices without one.
    halves : (documents,) bool, optional
        Mask of the documents in the odd half; by default a hash of their counts decides, see
        `odd_documents`.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[2, 0, 1], [0, 0, 0]])
    >>> batch.documents, batch.lengths, batch.select(1, 2).odd
    (2, array([3, 0]), array([False]))
    """

    indptr: NDArray[np.int64]
    words: NDArray[np.int32]
    counts: NDArray[np.int32]
    n_words: int
    vocabulary: str = ""
    halves: NDArray[np.bool_] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        for array in (self.indptr, self.words, self.counts):
            array.setflags(write=False)

    @classmethod
    def from_csr(cls, matrix: object, vocabulary: str = "") -> CountBatch:
        """Check and copy a matrix of counts.

        Parameters
        ----------
        matrix : (documents, n) sparse or array_like
            Whole numbers >= 0 of any dtype; repeated entries of a sparse matrix are added.
        vocabulary : str, optional
            Fingerprint of the vocabulary its columns belong to.

        Raises
        ------
        InvalidInput
            A count is negative, fractional, not finite or too large; the message names the first.
        """
        csr = sp.csr_array(matrix) if sp.issparse(matrix) else _dense_to_csr(matrix)
        if csr is matrix or (sp.issparse(matrix) and np.shares_memory(csr.data, _data(matrix))):
            csr = csr.copy()
        _refuse_bad_counts(csr)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        _refuse_large_counts(csr.data)
        return cls(
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.int32),
            csr.data.astype(np.int32),
            int(csr.shape[1]),
            vocabulary,
        )

    @classmethod
    def from_entries(
        cls,
        documents: ArrayLike,
        words: ArrayLike,
        counts: ArrayLike | None,
        shape: tuple[int, int],
        vocabulary: str = "",
    ) -> CountBatch:
        """Make a batch of (document, word, count) entries in any order; sum repeated entries.

        Parameters
        ----------
        documents, words : (entries,) integers
            Document and word of each entry, as indices within `shape`.
        counts : (entries,) integers or None
            How often the word occurs; None counts each entry once, as for a list of tokens.
        shape : (documents, n)
            Number of documents and of words.
        vocabulary : str, optional
            Fingerprint of the vocabulary.
        """
        document_ids = np.asarray(documents, dtype=np.int64)
        word_ids = np.asarray(words, dtype=np.int64)
        places = document_ids * shape[1] + word_ids
        values = None if counts is None else np.asarray(counts, dtype=np.int64)
        if values is None:
            unique, added = np.unique(places, return_counts=True)
        else:
            unique, inverse = np.unique(places, return_inverse=True)
            added = np.zeros(unique.size, dtype=np.int64)
            np.add.at(added, inverse, values)
        _refuse_large_counts(added)
        unique, added = unique[added != 0], added[added != 0]
        rows = unique // max(shape[1], 1)
        indptr = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=indptr[1:])
        return cls(
            indptr,
            (unique - rows * shape[1]).astype(np.int32),
            added.astype(np.int32),
            shape[1],
            vocabulary,
        )

    @classmethod
    def from_rows(
        cls,
        indptr: ArrayLike,
        words: ArrayLike,
        counts: ArrayLike | None,
        n_words: int,
        vocabulary: str = "",
    ) -> CountBatch:
        """Make a batch of entries that are ordered by document; sum repeated entries.

        Parameters
        ----------
        indptr : (documents + 1,) integers
            Start of each document's entries.
        words : (entries,) integers
            Word of each entry, below n. Words can be in any order and repeated. Entries with word
            -1 are skipped.
        counts : (entries,) integers or None
            How often the word of each entry occurs, at least 1; None counts each entry once.
        n_words : int
            Number of words n.
        vocabulary : str, optional
            Fingerprint of the vocabulary.

        Raises
        ------
        InvalidInput
            The sum of repeated entries exceeds int32.

        Examples
        --------
        >>> CountBatch.from_rows([0, 3, 4], [1, 0, 1, -1], None, 2).to_csr().toarray().tolist()
        [[1, 2], [0, 0]]
        """
        starts, places = (np.asarray(array, dtype=np.int64) for array in (indptr, words))
        values = np.ones_like(places) if counts is None else np.asarray(counts, dtype=np.int64)
        rows, kept, sums = row_kernels.add_up_rows(starts, places, values, n_words)
        _refuse_large_counts(sums)
        # copy the words, so that the memory for skipped entries is freed
        return cls(rows, kept.copy(), sums.astype(np.int32), n_words, vocabulary)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return int(self.indptr.size - 1)

    @property
    def held(self) -> int:
        """Number of documents; `select` and `take` refer to them by number."""
        return self.documents

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each document in vocabulary tokens, (documents,) int64."""
        return run_sums(self.indptr, self.counts)

    @cached_property
    def odd(self) -> NDArray[np.bool_]:
        """Mask of the documents in the odd half, (documents,); by default their content decides."""
        return odd_documents(self) if self.halves is None else self.halves

    @property
    def tokens(self) -> int:
        """Number of vocabulary tokens."""
        return int(self.counts.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes of `indptr`, `words` and `counts`."""
        return int(self.indptr.nbytes + self.words.nbytes + self.counts.nbytes)

    def to_csr(self) -> sp.csr_array:
        """Return a copy of the batch as a (documents, n) int64 sparse array."""
        data = (self.counts.astype(np.int64), self.words.copy(), self.indptr.copy())
        return sp.csr_array(data, shape=(self.documents, self.n_words))

    def select(self, start: int, stop: int) -> CountBatch:
        """Return documents `start..stop-1`, which share memory with this batch.

        Raises InvalidInput if the batch does not have these documents.
        """
        require_range(start, stop, self.documents)
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return CountBatch(
            self.indptr[start : stop + 1] - first,
            self.words[first:last],
            self.counts[first:last],
            self.n_words,
            self.vocabulary,
            None if self.halves is None else self.halves[start:stop],
        )

    def take(self, places: NDArray[np.int64]) -> CountBatch:
        """Return a copy of the documents at these positions, in the order of `places`.

        Examples
        --------
        >>> CountBatch.from_csr([[1, 0], [0, 2], [3, 0]]).take(np.array([2, 1])).words
        array([0, 1], dtype=int32)
        """
        sizes = np.diff(self.indptr)[places]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        shifts = np.repeat(self.indptr[:-1][places] - indptr[:-1], sizes)
        entries = np.arange(indptr[-1]) + shifts
        return CountBatch(
            indptr,
            self.words[entries],
            self.counts[entries],
            self.n_words,
            self.vocabulary,
            None if self.halves is None else self.halves[places],
        )


def odd_documents(
    batch: CountBatch,
    passages: NDArray[np.int64] | None = None,
    n_words: int | None = None,
) -> NDArray[np.bool_]:
    """Return the (rows,) mask of the odd half, by a hash of the counts of each document.

    passages : (documents,) int64, number of rows of each document; all rows of a document are in
        the same half. By default, each row is a document.
    n_words : only the counts of this many first words decide the half; by default those of all
        words. Words that were added to a vocabulary later do not decide.

    Examples
    --------
    >>> batch = CountBatch.from_csr([[1, 2], [2, 1], [0, 3], [1, 2]])
    >>> odd_documents(batch).tolist(), odd_documents(batch, np.array([1, 2, 1])).tolist()
    ([True, False, True, True], [True, False, False, True])
    """
    known = batch.n_words if n_words is None else n_words
    if passages is None or passages.size == batch.documents:
        return odd_half(count_keys(batch.indptr, batch.words, batch.counts, 0, known))
    starts = batch.indptr[np.concatenate([[0], np.cumsum(passages)])]
    indptr, words, counts = row_kernels.add_up_rows(
        starts, batch.words.astype(np.int64), batch.counts.astype(np.int64), batch.n_words
    )
    return np.repeat(odd_half(count_keys(indptr, words, counts, 0, known)), passages)


def documents_repeated(batch: CountBatch) -> bool:
    """Whether fewer than half of the documents with words are distinct."""
    keys = count_keys(batch.indptr, batch.words, batch.counts, 0, batch.n_words)
    return mostly_repeated(keys[np.diff(batch.indptr) > 0])


def concatenate(batches: Sequence[CountBatch]) -> CountBatch:
    """Return one batch with the documents of all batches, in order.

    Raises
    ------
    ForeignStatistics
        The batches have different vocabularies.
    InvalidInput
        There is no batch.

    Examples
    --------
    >>> one = CountBatch.from_csr([[1, 2]])
    >>> concatenate([one, one]).documents
    2
    """
    if not batches:
        raise InvalidInput("there are no batches to concatenate; give at least one")
    for batch in batches[1:]:
        require_same_words(batches[0], batch)
    shifts = np.cumsum([0] + [int(batch.indptr[-1]) for batch in batches])
    indptr = [batch.indptr[1:] + shift for batch, shift in zip(batches, shifts[:-1], strict=True)]
    return CountBatch(
        np.concatenate([np.zeros(1, dtype=np.int64), *indptr]),
        np.concatenate([batch.words for batch in batches]),
        np.concatenate([batch.counts for batch in batches]),
        batches[0].n_words,
        batches[0].vocabulary,
        _joined_halves(batches),
    )


def _joined_halves(batches: Sequence[CountBatch]) -> NDArray[np.bool_] | None:
    if all(batch.halves is None for batch in batches):
        return None
    return np.concatenate([batch.odd for batch in batches])


def require_batch(batch: object) -> None:
    """Raise InvalidInput unless this is a CountBatch; the message names the call that makes one."""
    if not isinstance(batch, CountBatch):
        raise InvalidInput(
            f"the documents are of type {type(batch).__name__}; make a batch of a matrix of counts "
            "by CountBatch.from_csr(X)"
        )


def require_same_words(one: CountBatch, other: CountBatch) -> None:
    """Refuse two batches with different vocabularies."""
    if (one.n_words, one.vocabulary) != (other.n_words, other.vocabulary):
        raise ForeignStatistics(
            f"one batch has vocabulary {one.vocabulary[:12] or '(none)'} with {one.n_words} words, "
            f"and another {other.vocabulary[:12] or '(none)'} with {other.n_words}; count both "
            "with one vocabulary"
        )


def _dense_to_csr(matrix: object) -> sp.csr_array:
    dense = np.asarray(matrix)
    if dense.ndim != 2 or dense.dtype.kind not in "biuf":
        raise InvalidInput(
            f"counts must be a (documents, words) matrix of numbers, got shape {dense.shape} "
            f"of dtype {dense.dtype}"
        )
    return sp.csr_array(dense)


def _data(matrix: object) -> NDArray[np.generic]:
    data = getattr(matrix, "data", None)
    return data if isinstance(data, np.ndarray) else np.empty(0)


def _refuse_large_counts(counts: NDArray[Any]) -> None:
    if counts.size and counts.max() > _LARGEST_COUNT:
        raise InvalidInput(f"a count is above {_LARGEST_COUNT}; split the document in passages")


def _refuse_bad_counts(csr: sp.csr_array) -> None:
    values = csr.data
    good = (
        np.isfinite(values) & (values >= 0) & (values == np.floor(values))
        if values.dtype.kind == "f"
        else values >= 0
    )
    if good.all():
        return
    place = int(np.argmin(good))
    document = int(np.searchsorted(csr.indptr, place, side="right") - 1)
    raise InvalidInput(
        f"document {document} counts word {int(csr.indices[place])} {values[place]} times; "
        "counts must be whole numbers >= 0"
    )
