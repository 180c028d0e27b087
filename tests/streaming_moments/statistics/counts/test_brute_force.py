"""The statistics and the whitened slices against sums over word positions."""

import itertools
from collections import Counter

import numpy as np
import pytest
from brute_halves import odd_document

from streaming_moments.decompositions.forms import form_of
from streaming_moments.numerics.packing import unpack
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights
from streaming_moments.statistics.counts.pair_rows import half_pairs
from streaming_moments.statistics.counts.slices import rotated_diagonals, whitened_slices
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.counts.whitening import CoreMoments, whiten
from streaming_moments.statistics.row_block import RowBlock

N_WORDS, CORE, COLUMNS = 7, 5, 3


@pytest.fixture(params=range(4))
def documents(request):
    """Documents as lists of words, one empty and one of a single word among them."""
    rng = np.random.default_rng(request.param)
    return [[], [1]] + [
        rng.integers(0, N_WORDS, size=size).tolist() for size in rng.integers(2, 9, 14)
    ]


@pytest.fixture(
    params=[POOLED, LengthWeights(np.array([9, 9, 8, 7, 5, 4, 3, 2, 1]))],
    ids=["pooled", "weighted"],
)
def weights(request):
    return request.param


@pytest.fixture
def statistics(documents, weights):
    rng = np.random.default_rng(len(documents))
    batch = CountBatch.from_entries(
        np.repeat(np.arange(len(documents)), [len(words) for words in documents]),
        np.array([word for words in documents for word in words], dtype=np.int64),
        None,
        (len(documents), N_WORDS),
    )
    matrix = rng.integers(-127, 128, size=(CORE, COLUMNS)).astype(np.int8)
    return MomentStatistics.of(batch, Basis(matrix, N_WORDS, weights=weights))


def weight_of(words, weights):
    return int(weights.table[min(len(words), len(weights.table) - 1)])


def raw_third_counts(documents, weights):
    total = np.zeros((N_WORDS,) * 3, dtype=np.int64)
    for words in filter(None, documents):
        x = np.bincount(np.array(words), minlength=N_WORDS)
        total += weight_of(words, weights) * np.einsum("i,j,k->ijk", x, x, x)
    return total


def distinct_position_counts(documents, order, weights):
    """How often words stand at `order` distinct positions of a document, by enumeration.

    Each document as often as it counts.
    """
    total = np.zeros((N_WORDS,) * order, dtype=np.int64)
    for words in documents:
        for positions in itertools.permutations(range(len(words)), order):
            total[tuple(words[position] for position in positions)] += weight_of(words, weights)
    return total


def test_pair_counts_are_ordered_pairs_of_distinct_positions(documents, statistics, weights):
    counts = distinct_position_counts(documents, 2, weights)
    assert np.array_equal(statistics.pair_counts, counts[:, :CORE])
    halves: tuple[list, list] = ([], [])
    for document in documents:
        halves[odd_document(Counter(document))].append(document)
    assert all(halves)
    even, odd = (distinct_position_counts(half, 2, weights) for half in halves)
    assert np.array_equal(statistics.even_pair_counts, even[:, :CORE])
    assert np.array_equal(half_pairs(statistics, 1), odd[:, :CORE])


def test_normalising_constants_are_the_numbers_of_positions(documents, statistics, weights):
    histogram = statistics.length_histogram
    for order, constant in ((1, histogram.C1), (2, histogram.C2), (3, histogram.C3)):
        assert constant == distinct_position_counts(documents, order, weights).sum()
    squares = sum(
        (weight_of(w, weights) * len(w) * (len(w) - 1) * (len(w) - 2)) ** 2 for w in documents
    )
    assert histogram.n_tokens == sum(map(len, documents))
    assert histogram.weight == sum(weight_of(w, weights) for w in documents)
    assert pytest.approx(squares / histogram.C3**2) == histogram.W3


def test_triple_sketch_is_the_projected_third_counts(documents, statistics, weights):
    Q = statistics.basis.matrix.astype(np.int64)
    raw = raw_third_counts(documents, weights)[:, :CORE, :CORE]
    expected = np.einsum("ijk,ja,kb->iab", raw, Q, Q)
    assert np.array_equal(unpack(statistics.triple_sketch, COLUMNS), expected)


def test_word_and_document_frequencies(documents, statistics, weights):
    counts = distinct_position_counts(documents, 1, weights)
    assert np.array_equal(statistics.moment_counts, counts)
    assert (statistics.weighted_counts is None) == weights.is_pooled
    assert statistics.word_counts.tolist() == [
        sum(words.count(word) for words in documents) for word in range(N_WORDS)
    ]
    assert statistics.document_frequencies.tolist() == [
        sum(word in words for words in documents) for word in range(N_WORDS)
    ]
    assert statistics.codocuments.tolist() == [
        [sum(a in words and b in words for words in documents) for b in range(CORE)]
        for a in range(CORE)
    ]


def test_documents_too_long_for_float64_are_counted_in_int64():
    counts = np.array([[30_000, 1, 0], [1, 2, 3], [0, 40_000, 20_001]], dtype=np.int64)
    Q = np.array([[127, -3], [90, 127], [-1, 55]], dtype=np.int8)
    statistics = MomentStatistics.of(CountBatch.from_csr(counts), Basis(Q, 3))
    y = counts.astype(object) @ Q.astype(object)
    for word in range(3):
        exact = sum(int(counts[d, word]) * np.outer(y[d], y[d]) for d in range(3))
        assert unpack(statistics.triple_sketch, 2)[word].tolist() == exact.tolist()
    assert int(abs(statistics.triple_sketch).max()) > 2**53  # float64 would have rounded


@pytest.mark.parametrize("alpha0", [0.0, 0.7])
@pytest.mark.parametrize("block", [RowBlock(), RowBlock(1, 3)])
def test_whitened_slices_are_the_whitened_third_moment(
    documents, statistics, weights, alpha0, block
):
    core = CoreMoments(
        statistics.pair_counts[:CORE], statistics.moment_counts[:CORE], statistics.length_histogram
    )
    # as many topics as this tiny corpus has positive eigenvalues
    whitening = whiten(core, statistics.basis, 2, form_of(alpha0))
    M1, M2, M3 = (
        counts / counts.sum()
        for counts in (distinct_position_counts(documents, o, weights) for o in (1, 2, 3))
    )
    if alpha0:
        a, b, c = M3.shape[0], alpha0 / (alpha0 + 2), 2 * alpha0**2 / ((alpha0 + 1) * (alpha0 + 2))
        crossed = (
            np.einsum("ij,k->ijk", M2, M1)
            + np.einsum("ik,j->ijk", M2, M1)
            + np.einsum("jk,i->ijk", M2, M1)
        )
        M3 = (alpha0 + 2) / 2 * (M3 - b * crossed + c * np.einsum("i,j,k->ijk", M1, M1, M1))
        assert a == N_WORDS
    W = np.zeros((N_WORDS, 2))
    W[:CORE] = whitening.vectors
    expected = np.einsum("ijk,ja,kb->iab", M3, W, W)[block.rows]
    part = MomentStatistics(
        statistics.basis,
        block,
        statistics.length_histogram,
        statistics.word_counts[block.rows].copy(),
        statistics.document_frequencies[block.rows].copy(),
        statistics.pair_counts[block.rows].copy(),
        statistics.triple_sketch[block.rows].copy(),
        statistics.codocuments[block.rows].copy(),
        weighted_counts=None if weights.is_pooled else statistics.moment_counts[block.rows].copy(),
    )
    slices = np.concatenate(list(whitened_slices(part, whitening)))
    np.testing.assert_allclose(unpack(slices, 2), expected, atol=1e-11 * abs(expected).max())
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]
    diagonals = np.einsum("ja,ijk,ka->ia", rotation, expected, rotation)
    np.testing.assert_allclose(
        rotated_diagonals(part, whitening, rotation), diagonals, atol=1e-11 * abs(expected).max()
    )
