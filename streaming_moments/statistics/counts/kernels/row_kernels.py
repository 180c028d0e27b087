"""Numba kernels of the statistics: serial, without the interpreter lock, cached on disk.

Each kernel adds to arrays of the caller. Its docstring has an equivalent NumPy line, with which a
test compares the kernel. Rows are those of a `RowBlock`: words `first, first + step, ...`. No
kernel is `parallel`, as Dask runs kernels concurrently in threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.numerics.kernel import kernel
from streaming_moments.numerics.read_only import read_only


def add_up_rows(
    indptr: NDArray[np.int64], words: NDArray[np.int64], counts: NDArray[np.int64], n_words: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sum entries of equal words, like `scipy.sparse.csr_array.sum_duplicates`, and drop word -1.

    Counts are at least 1. Returns `(rows + 1,)` starts of the rows, and words and sums of the
    entries. The sums of a row are computed in an array with a cell for each word. The entries of a
    row are sorted only if its words are not increasing.
    """
    starts = np.zeros(indptr.size, dtype=np.int64)
    kept = np.empty(words.size, dtype=np.int32)
    sums = np.empty(words.size, dtype=np.int64)
    totals = np.zeros(n_words, dtype=np.int64)
    _add_up_rows(read_only(indptr), read_only(words), read_only(counts), totals, starts, kept, sums)
    return starts, kept[: starts[-1]], sums[: starts[-1]]


@kernel()
def _add_up_rows(
    indptr: NDArray[np.int64],
    words: NDArray[np.int64],
    counts: NDArray[np.int64],
    totals: NDArray[np.int64],
    starts: NDArray[np.int64],
    kept: NDArray[np.int32],
    sums: NDArray[np.int64],
) -> None:
    free = 0
    for row in range(indptr.size - 1):
        begin = free
        rising = True
        for entry in range(indptr[row], indptr[row + 1]):
            word = words[entry]
            if word < 0:
                continue
            if totals[word] == 0:
                rising = rising and (free == begin or word > kept[free - 1])
                kept[free] = word
                free += 1
            totals[word] += counts[entry]
        # use Shell's sort, because compiling numba's sort takes as long as compiling six kernels
        gap = 0 if rising else 1
        while 0 < gap < (free - begin) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for entry in range(begin + gap, free):
                value, place = kept[entry], entry
                while place >= begin + gap and kept[place - gap] > value:
                    kept[place] = kept[place - gap]
                    place -= gap
                kept[place] = value
            gap //= 3
        for place in range(begin, free):
            sums[place] = totals[kept[place]]
            totals[kept[place]] = 0
        starts[row + 1] = free


def transpose(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    odd: NDArray[np.bool_],
    n_words: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the compressed columns of a batch, like `scipy.sparse.csr_array.tocsc`.

    The kernel uses counting sort. It returns `(n + 1,)` starts of the entries of each word, `(n,)`
    starts of the word's entries in the odd half, and the document and count of each entry.
    Documents increase within each half of a word.
    """
    free = np.zeros((n_words, 2), dtype=np.int64)
    starts, odd_starts = np.zeros(n_words + 1, dtype=np.int64), np.zeros(n_words, dtype=np.int64)
    documents, values = np.empty(words.size, dtype=np.int32), np.empty(words.size, dtype=np.int32)
    _transpose(
        read_only(indptr),
        read_only(words),
        read_only(counts),
        read_only(odd),
        free,
        starts,
        odd_starts,
        documents,
        values,
    )
    return starts, odd_starts, documents, values


@kernel()
def _transpose(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    odd: NDArray[np.bool_],
    free: NDArray[np.int64],
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
) -> None:
    for document in range(indptr.size - 1):
        half = np.int64(odd[document])
        for entry in range(indptr[document], indptr[document + 1]):
            free[words[entry], half] += 1
    for word in range(odd_starts.size):
        begin = starts[word]
        middle = begin + free[word, 0]
        starts[word + 1] = middle + free[word, 1]
        odd_starts[word] = middle
        free[word, 0] = begin
        free[word, 1] = middle
    for document in range(indptr.size - 1):
        half = np.int64(odd[document])
        for entry in range(indptr[document], indptr[document + 1]):
            place = free[words[entry], half]
            documents[place] = document
            values[place] = counts[entry]
            free[words[entry], half] = place + 1


@kernel()
def append_runs(
    starts: NDArray[np.int64],
    odd_starts: NDArray[np.int64],
    documents: NDArray[np.int32],
    values: NDArray[np.int32],
    before: int,
    free: NDArray[np.int64],
    odd_free: NDArray[np.int64],
    all_documents: NDArray[np.int32],
    all_values: NDArray[np.int32],
) -> None:
    """Append the entries of each word to its entries in a larger batch, at the free positions.

    For the m entries of word i in the even half, `all_documents[free[i]:][:m] =
    documents[starts[i]:][:m] + before` and `free[i] += m`, where `before` is the number of
    documents appended earlier. Values are copied unchanged. The odd half is handled likewise.
    """
    for word in range(free.size):
        for half in range(2):
            begin, end, place = starts[word], odd_starts[word], free[word]
            if half:
                begin, end, place = end, starts[word + 1], odd_free[word]
            for entry in range(begin, end):
                all_documents[place] = documents[entry] + before
                all_values[place] = values[entry]
                place += 1
            if half:
                odd_free[word] = place
            else:
                free[word] = place


@kernel()
def project(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    tokens: NDArray[np.int64],
    basis: NDArray[np.int8],
    total: NDArray[Any],
    projections: NDArray[np.float32],
    bounds: NDArray[np.float64],
) -> None:
    """`projections[:] = X[:, :core] @ basis` and `bounds[:] = tokens * max|projections|^2`.

    `projections` is (documents, s) float32, and `bounds` (documents,) float64. Both are exact if
    the sums fit in the type of the work space `total`, (s,). With int32 the kernel takes half the
    time of int64. Indices are unsigned, so that Numba does not check for negative ones.
    """
    core, columns = basis.shape
    for document in range(indptr.size - 1):
        for column in range(columns):
            total[column] = 0
        for entry in range(np.uint64(indptr[document]), np.uint64(indptr[document + 1])):
            if words[entry] >= core:
                break
            word, count = np.uint64(words[entry]), counts[entry]
            for column in range(np.uint64(columns)):
                total[column] += count * basis[word, column]
        peak = total.dtype.type(0)
        for column in range(columns):
            peak = max(peak, abs(total[column]))
            projections[document, column] = total[column]
        bounds[document] = tokens[document] * np.float64(peak) * np.float64(peak)


@kernel()
def add_gram_product(
    indptr: NDArray[np.int64],
    words: NDArray[np.int32],
    counts: NDArray[np.int32],
    weights: NDArray[np.int64],
    vectors: NDArray[np.float64],
    sums: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """`total += X[:, :core]' V (X[:, :core] @ vectors)`, both (core, m) float64.

    V is the diagonal matrix of the documents' weights; `sums`, (m,), is work space. The kernel
    handles one document at a time, so that its entries are read once for all m columns.
    """
    core, columns = vectors.shape
    for document in range(indptr.size - 1):
        for column in range(columns):
            sums[column] = 0
        begin, end = np.uint64(indptr[document]), np.uint64(indptr[document + 1])
        for entry in range(begin, end):
            if words[entry] >= core:
                break
            word, count = np.uint64(words[entry]), counts[entry]
            for column in range(np.uint64(columns)):
                sums[column] += count * vectors[word, column]
        for column in range(columns):
            sums[column] *= weights[document]
        for entry in range(begin, end):
            if words[entry] >= core:
                break
            word, count = np.uint64(words[entry]), counts[entry]
            for column in range(np.uint64(columns)):
                total[word, column] += count * sums[column]
