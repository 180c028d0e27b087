"""Joined batches hold the documents they held before."""

import numpy as np
import pytest
from brute_halves import odd_document
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.projection import ProjectedBatch, joined

N_WORDS, CORE = 7, 5
WEIGHTS = LengthWeights(np.array([7, 7, 5, 3, 3, 2, 1]))
BASIS = Basis(
    np.random.default_rng(0).integers(-127, 128, size=(CORE, 3)).astype(np.int8),
    N_WORDS,
    weights=WEIGHTS,
)
ENDLESS = 10**9

documents = st.lists(st.integers(0, 3), min_size=N_WORDS, max_size=N_WORDS)
corpora = st.lists(st.lists(documents, min_size=1, max_size=4), min_size=1, max_size=6)
blocks = st.sampled_from([RowBlock(), RowBlock(0, 3), RowBlock(2, 3), RowBlock(6, 7)])


def project(counts, basis=BASIS):
    return ProjectedBatch.of(CountBatch.from_csr(np.asarray(counts)), basis)


def by_word(batch):
    """(documents, n) counts, each document as often as it counts, by the entries of each word."""
    counts = np.zeros((batch.lengths.size, N_WORDS), dtype=int)
    for word in range(N_WORDS):
        entries = slice(batch.starts[word], batch.starts[word + 1])
        counts[batch.documents[entries], word] = batch.values[entries]
    return counts


def even_by_word(batch):
    """(documents, n) counts of the even half, each document as often as it counts."""
    counts = np.zeros((batch.lengths.size, N_WORDS), dtype=int)
    for word in range(N_WORDS):
        entries = slice(batch.starts[word], batch.odd_starts[word])
        counts[batch.documents[entries], word] = batch.values[entries]
    return counts


def by_document(batch):
    """(documents, core) counts by the packed entries of each document."""
    counts = np.zeros((batch.lengths.size, CORE), dtype=int)
    for document, ((once, more), (stop, _)) in enumerate(
        zip(batch.core_starts[:-1], batch.core_starts[1:], strict=True)
    ):
        counts[document, batch.packed[once:more]] = 1
        counts[document, batch.packed[more:stop:2]] = batch.packed[more + 1 : stop : 2]
    return counts


@given(corpora, st.sampled_from([0, 600, ENDLESS]))
def test_joined_batches_hold_the_same_documents(corpus, most_bytes):
    batches = [project(counts) for counts in corpus]
    found = list(joined(batches, most_bytes))
    assert sum(batch.nbytes for batch in found) <= sum(batch.nbytes for batch in batches)
    X = np.concatenate([np.array(counts) for counts in corpus])
    rows = np.concatenate([by_word(batch) for batch in found])
    V = X * WEIGHTS.at(X.sum(axis=1))[:, None]
    assert np.array_equal(rows, V)
    even = np.array([not odd_document(dict(enumerate(row))) for row in X.tolist()])
    rows = np.concatenate([even_by_word(batch) for batch in found])
    assert np.array_equal(rows, V * even[:, None])
    assert np.array_equal(sum(batch.weighted_counts for batch in found), V.sum(axis=0))
    assert np.array_equal(np.concatenate([by_document(batch) for batch in found]), X[:, :CORE])
    assert np.array_equal(np.concatenate([batch.lengths for batch in found]), X.sum(axis=1))
    assert np.array_equal(sum(batch.word_counts for batch in found), X.sum(axis=0))
    y = np.concatenate([batch.projections for batch in found])
    assert np.array_equal(y, X[:, :CORE] @ BASIS.matrix.astype(int))
    if most_bytes == ENDLESS:
        assert len(found) == 1
    if most_bytes == 0:
        assert len(found) == len(batches)


@given(corpora, blocks)
def test_statistics_do_not_depend_on_the_cut(corpus, block):
    batches = [CountBatch.from_csr(np.asarray(counts)) for counts in corpus]
    whole = ProjectedBatch.of(concatenate(batches), BASIS)
    together = MomentStatistics.of_projected([whole], BASIS, block)
    assert MomentStatistics.of_projected(map(project, corpus), BASIS, block) == together


@pytest.mark.parametrize(
    ("counts", "weight", "number"),
    [
        pytest.param(
            [[60_000, 0, 0, 0, 0, 0, 1]] * 150, 30_000, 3, id="products of a word reach 2^55"
        ),
        pytest.param([[2**16, 1, 0, 0, 0, 0, 1]], 1, 6, id="a count has no 16 bits"),
        pytest.param([[12_000] * N_WORDS] * 10, 1, 3, id="triples reach 2^52"),
        pytest.param([[1000] * N_WORDS] * 10, 2000, 3, id="weighted triples reach 2^52"),
    ],
)
def test_sums_that_would_pass_their_bounds_are_not_joined(counts, weight, number):
    matrix = np.array([[0], [1], [1], [1], [1]], dtype=np.int8)
    basis = Basis(matrix, N_WORDS, weights=LengthWeights(np.array([weight])))
    batches = [project(counts, basis)] * 6
    assert len(list(joined(batches, ENDLESS))) == number
    X = np.array(counts * 6)
    statistics = MomentStatistics.of_projected(batches, basis)
    pairs = weight * (X.T @ X - np.diag(X.sum(axis=0)))[:, :CORE]
    assert np.array_equal(statistics.pair_counts, pairs)
    y = X[:, :CORE] @ basis.matrix.astype(int)
    assert np.array_equal(statistics.triple_sketch, weight * X.T @ (y * y))
