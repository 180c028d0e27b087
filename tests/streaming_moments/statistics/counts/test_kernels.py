"""Each kernel against its NumPy line."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.errors import BoundExceeded
from streaming_moments.models.reading import topic_reading
from streaming_moments.numerics import jacobi
from streaming_moments.numerics.packing import pack
from streaming_moments.numerics.runs import run_sums
from streaming_moments.statistics.counts.kernels import (
    pair_kernels,
    row_kernels,
    triple_kernels,
    wide_pairs,
)
from streaming_moments.statistics.counts.lengths.weights import LengthWeights
from streaming_moments.statistics.counts.projection import ProjectedBatch


@pytest.fixture(
    params=[
        (1, 5, 4, 2, 1),
        (40, 30, 20, 3, 60),
        (3000, 12, 12, 6, 1),
        (300, 20, 20, 17, 9),
        (120, 40, 38, 36, 1),
    ]
)
def batch_and_basis(request):
    documents, n_words, core, columns, largest = request.param
    rng = np.random.default_rng(documents)
    counts = rng.poisson(rng.gamma(0.3, 2.0, size=(documents, n_words)))
    Q = rng.integers(-127, 128, size=(core, columns)).astype(np.int8)
    weights = LengthWeights(rng.integers(1, largest + 1, size=30))
    batch = replace(CountBatch.from_csr(counts), halves=rng.random(documents) < 0.5)
    return batch, Basis(Q, n_words, weights=weights)


@pytest.fixture
def batch(batch_and_basis):
    return batch_and_basis[0]


@pytest.fixture
def projected(batch_and_basis):
    return ProjectedBatch.of(*batch_and_basis)


@pytest.fixture
def weighted(batch, projected):
    """(documents, n) counts, each document as often as it counts."""
    return batch.to_csr().toarray() * projected.basis.weights.at(batch.lengths)[:, None]


BLOCKS = [RowBlock(), RowBlock(0, 3), RowBlock(2, 3)]


def test_sums_of_runs(batch, projected, weighted):
    X = batch.to_csr().toarray()
    assert np.array_equal(run_sums(batch.indptr, batch.counts), X.sum(axis=1))
    assert np.array_equal(projected.word_counts, X.sum(axis=0))
    assert np.array_equal(projected.weighted_counts, weighted.sum(axis=0))
    assert np.array_equal(projected.lengths, X.sum(axis=1))


@given(st.lists(st.lists(st.tuples(st.integers(-1, 5), st.integers(1, 9)), max_size=12)))
def test_rows_added_up(rows):
    entries = np.array([entry for row in rows for entry in row], dtype=np.int64).reshape(-1, 2)
    indptr = np.cumsum([0, *map(len, rows)])
    words, counts = entries[:, 0].copy(), entries[:, 1].copy()
    starts, kept, sums = row_kernels.add_up_rows(indptr, words, counts, 6)
    known = words >= 0
    kept_before = np.concatenate([[0], np.cumsum(known)])[indptr]
    expected = sp.csr_array((counts[known], words[known], kept_before), shape=(len(rows), 6))
    expected.sum_duplicates()
    assert np.array_equal(starts, expected.indptr)
    assert np.array_equal(kept, expected.indices)
    assert np.array_equal(sums, expected.data)


def test_transpose(batch, projected, weighted):
    order = np.argsort(batch.odd, kind="stable")
    expected = batch.to_csr()[order].tocsc()
    starts, odd_starts, documents, values = row_kernels.transpose(
        batch.indptr, batch.words, batch.counts, batch.odd, batch.n_words
    )
    assert np.array_equal(starts, expected.indptr)
    assert np.array_equal(
        odd_starts - starts[:-1], np.diff(batch.to_csr()[~batch.odd].tocsc().indptr)
    )
    assert np.array_equal(documents, order[expected.indices])
    assert np.array_equal(values, expected.data)
    expected = sp.csr_array(weighted)[order].tocsc()
    assert np.array_equal(projected.starts, expected.indptr)
    assert np.array_equal(projected.odd_starts, odd_starts)
    assert np.array_equal(projected.documents, order[expected.indices])
    assert np.array_equal(projected.values, expected.data)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_project(batch, projected, dtype):
    basis = projected.basis
    y = batch.to_csr().toarray()[:, : basis.core] @ basis.matrix.astype(np.int64)
    found, bounds = np.full(y.shape, np.nan, np.float32), np.full(y.shape[0], np.nan)
    total = np.ones(basis.columns, dtype=dtype)
    entries = (batch.indptr, batch.words, batch.counts, batch.lengths)
    row_kernels.project(*entries, basis.matrix, total, found, bounds)
    assert np.array_equal(found, y)
    assert np.array_equal(bounds, batch.lengths * np.abs(y).max(axis=1) ** 2)
    assert np.array_equal(projected.projections, y)
    heavy = projected.basis.weights.at(batch.lengths) * bounds
    assert projected.triple_bound == pytest.approx(heavy.sum(), rel=1e-12)


def test_sums_of_the_longest_documents_do_not_wrap_around():
    # y = 2^32, which is 0 in 32 bits
    batch = CountBatch.from_csr(np.array([[2**26]]))
    with pytest.raises(BoundExceeded, match="above 2\\^62"):
        ProjectedBatch.of(batch, Basis(np.array([[64]], dtype=np.int8), 1))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("long", ["none", "some", "all"])
def test_triples(projected, weighted, block, long):
    X = weighted
    y = projected.projections.astype(np.int64)
    chosen = {"none": 0, "some": 3, "all": 1}[long]
    flags = np.zeros(len(X), dtype=bool)
    if chosen:
        flags[::chosen] = True
    expected = pack(np.einsum("di,da,db->iab", X, y, y))[block.rows]
    found = np.zeros(expected.shape, dtype=np.int64)
    arguments = (block.index, block.step, projected.starts, projected.documents, projected.values)
    triple_kernels.add_triples(*arguments, projected.projections, flags, found)
    triple_kernels.add_long_triples(*arguments, projected.projections, flags, found)
    assert np.array_equal(found, expected)


def test_the_largest_projections_are_whole_numbers_still():
    # near the longest document accepted: y above 2^22 of either sign
    basis = Basis(np.array([[127, -126], [126, 127]], dtype=np.int8), 2)
    counts = np.array([[60_001, 1_000], [1, 9], [3, 2]])
    projected = ProjectedBatch.of(CountBatch.from_csr(counts), basis)
    y = counts @ basis.matrix.astype(np.int64)
    assert np.abs(y).max() > 2**22
    assert projected.long.any()
    assert np.array_equal(projected.projections, y)
    found = MomentStatistics.of(CountBatch.from_csr(counts), basis).triple_sketch
    assert found.tolist() == [
        [
            sum(int(x[i]) * int(v[a]) * int(v[b]) for x, v in zip(counts, y, strict=True))
            for a, b in ((0, 0), (0, 1), (1, 1))
        ]
        for i in range(2)
    ]


@pytest.mark.parametrize("block", BLOCKS)
def test_pairs_and_codocuments(batch, projected, weighted, block):
    core = projected.basis.core
    X = batch.to_csr().toarray()
    pairs = (weighted.T @ X - np.diag(weighted.sum(axis=0)))[block.rows, :core]
    together = ((X > 0).T.astype(np.int64) @ (X > 0))[:core, :core][block.rows]
    found, co = np.zeros_like(pairs), np.zeros_like(together)
    rows, by_word = (block.index, block.step), (projected.documents, projected.values)
    runs, entries = (projected.starts[:-1], projected.starts[1:]), (batch.indptr, batch.words)
    wide_pairs.add_pairs(*rows, *runs, *by_word, *entries, batch.counts, found)
    wide_pairs.add_codocuments(*rows, projected.starts, projected.documents, *entries, co)
    assert np.array_equal(found, pairs)
    assert np.array_equal(co, together)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("gathered", [True, False])
@pytest.mark.parametrize("halves", [True, False])
def test_pairs_together(batch, projected, weighted, block, gathered, halves):
    core = projected.basis.core
    X = batch.to_csr().toarray()
    pairs = (weighted.T @ X - np.diag(weighted.sum(axis=0)))[block.rows, :core]
    of_even = weighted * ~batch.odd[:, None]
    even_pairs = (of_even.T @ X - np.diag(of_even.sum(axis=0)))[block.rows, :core]
    together = ((X > 0).T.astype(np.int64) @ (X > 0))[:core, :core][block.rows]
    found, even, co = np.ones_like(pairs), np.ones_like(pairs), np.ones_like(together)
    assert projected.batch is None
    chosen = np.random.default_rng(0).random(len(pairs)) < 0.6
    documents = (block.index, block.step, projected.starts, projected.odd_starts)
    documents += (projected.documents, projected.values, projected.core_starts, projected.packed)
    gathering = (even if halves else even[:0], co if gathered else co[:0])
    bits = len(X).bit_length()
    wide_pairs.add_pairs_together(*documents, bits, chosen, found, *gathering)
    rows, core_rows = chosen[:, None], chosen[: len(co), None]
    assert np.array_equal(found - 1, pairs * rows)
    assert np.array_equal(even - 1, even_pairs * (rows * halves))
    assert np.array_equal(co - 1, together * (core_rows * gathered))
    fields, cells = (
        pair_kernels.CellFields(halves, gathered),
        np.zeros(pairs.shape, dtype=np.uint64),
    )
    told = (fields.bits, halves, gathered)
    for _ in range(2):
        pair_kernels.add_to_cells(*documents, *told, ~chosen, cells)
    assert not cells[chosen].any()
    pair_kernels.split_cells(cells, fields.bits, ~chosen, found, *gathering)
    assert np.array_equal(found, np.where(rows, pairs + 1, 2 * pairs))
    assert np.array_equal(
        even, np.where(rows | (not halves), even_pairs * halves + 1, 2 * even_pairs)
    )
    assert np.array_equal(
        co, np.where(core_rows | (not gathered), together * gathered + 1, 2 * together)
    )


def test_counts_too_large_to_pack_are_counted_all_the_same():
    Q = np.array([[1], [-1], [2]], dtype=np.int8)
    for count, weight, documents in ((2**16, 1, 4), (2**15, 2**15, 1500)):
        counts = np.array([[count, count - 3, 0]] * documents + [[0, 1, 1]])
        in_turn = np.arange(len(counts)) % 2 == 1
        batch = replace(CountBatch.from_csr(counts), halves=in_turn)
        basis = Basis(Q, 3, weights=LengthWeights(np.array([weight])))
        assert ProjectedBatch.of(batch, basis).batch is batch
        statistics = MomentStatistics.of(batch, basis)
        assert np.array_equal(
            statistics.pair_counts, weight * (counts.T @ counts - np.diag(counts.sum(axis=0)))
        )
        even = counts[::2]
        assert np.array_equal(
            statistics.even_pair_counts, weight * (even.T @ even - np.diag(even.sum(axis=0)))
        )
        assert np.array_equal(statistics.codocuments, (counts > 0).T @ (counts > 0).astype(int))


def test_joint_diagonalisation_finds_the_common_eigenvectors():
    rng = np.random.default_rng(0)
    O = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    values = rng.standard_normal((9, 6))
    matrices = np.einsum("ij,mj,kj->mik", O, values, O)
    rotation = np.eye(6)
    sweeps = jacobi.diagonalize_jointly(matrices, rotation, 1e-12, 100)
    assert sweeps < 20
    np.testing.assert_allclose(np.abs(rotation.T @ O).max(axis=0), 1.0, atol=1e-10)
    off = matrices - np.einsum("mii,ij->mij", matrices, np.eye(6))
    assert np.abs(off).max() < 1e-9


def test_proportions_maximise_the_posterior():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.ones(8), size=3).T
    weights = np.array([0.5, 0.3, 0.2])
    counts = rng.poisson(2.0, size=(5, 8))
    batch = CountBatch.from_csr(counts)
    found = np.empty((5, 3))
    topic_reading.proportions(
        batch.indptr, batch.words, batch.counts, topics, weights, 1.5, 2000, found
    )

    def objective(theta):
        return (counts * np.log(theta @ topics.T)).sum(axis=1) + np.log(theta) @ (1.5 * weights)

    best = objective(found)
    for _ in range(200):
        step = found + 0.01 * rng.standard_normal(found.shape) * found
        step /= step.sum(axis=1, keepdims=True)
        assert (objective(step) <= best + 1e-9).all()


def test_a_gram_product(batch_and_basis):
    batch, basis = batch_and_basis
    vectors = np.random.default_rng(0).standard_normal((basis.core, 3))
    total = np.ones((basis.core, 3))
    weights = basis.weights.at(batch.lengths)
    row_kernels.add_gram_product(
        batch.indptr, batch.words, batch.counts, weights, vectors, np.empty(3), total
    )
    counts = batch.to_csr().toarray()[:, : basis.core]
    expected = 1 + counts.T @ (weights[:, None] * (counts @ vectors))
    np.testing.assert_allclose(total, expected, rtol=1e-10, atol=1e-8)
