"""Pair counts of a half of the documents, as the likelihood reads them."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.weighted import WeightedStatistics

COUNTS = np.random.default_rng(0).poisson(0.6, (40, 12)) * (np.arange(12) < 9)
BASIS = Basis(np.random.default_rng(1).integers(-9, 10, (10, 3)).astype(np.int8), 12)
# most pairs of words are never seen
RARE = np.random.default_rng(2).poisson(0.03, (60, 90))
OF_RARE = Basis(np.random.default_rng(1).integers(-9, 10, (75, 3)).astype(np.int8), 90)


def held(rows):
    """(r, core) pair counts that are held, with the zeros."""
    counts = np.zeros((rows.scales.size, rows.dense.shape[1]))
    counts[rows.dense_places] = rows.dense
    for row, place in enumerate(rows.sparse_places):
        entries = slice(rows.starts[row], rows.starts[row + 1])
        counts[place, rows.words[entries]] = rows.counts[entries]
    return counts


@pytest.mark.parametrize("block", [RowBlock(), RowBlock(1, 3)])
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize(("counts", "basis"), [(COUNTS, BASIS), (RARE, OF_RARE)])
def test_a_half_is_read_as_if_its_documents_were_alone(block, half, counts, basis):
    batch = CountBatch.from_csr(counts)
    whole, own = MomentStatistics.of(batch, basis, block), counts[batch.odd == half]
    alone = MomentStatistics.of(CountBatch.from_csr(own), basis, block, halves=False)
    assert np.array_equal(held(PairRows.of(alone)), alone.pair_counts)
    found, expected = PairRows.of(whole, half=half), PairRows.of(whole)
    assert np.array_equal(held(found), alone.pair_counts)
    # rows that are held whole are those of all documents
    for name in ("dense_places", "sparse_places", "scales"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert (found.counts > 0).all()
    with pytest.raises(InvalidInput, match="have no halves"):
        PairRows.of(alone, half=half)


WIDE = COUNTS.copy()
WIDE[0, :2] = 4099, 4097  # pairs that float32 rounds
PARTS = "dense", "dense_places", "sparse_places", "starts", "words", "counts", "scales"


@pytest.mark.parametrize("block", [RowBlock(), RowBlock(1, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("counts", "basis"), [(COUNTS, BASIS), (RARE, OF_RARE), (WIDE, BASIS), (0 * COUNTS, BASIS)]
)
def test_the_whole_and_its_halves_are_read_together(block, weighted, counts, basis):
    statistics = MomentStatistics.of(CountBatch.from_csr(counts), basis, block)
    if weighted:
        statistics = WeightedStatistics.of([(0.3, statistics)])
    for leading in (None, 6):
        found = PairRows.with_halves(statistics, leading)
        for half, own in zip((None, 0, 1), found, strict=True):
            expected = PairRows.of(statistics, half=half, leading=leading)
            for name in PARTS:
                assert np.array_equal(getattr(own, name), getattr(expected, name))
    with pytest.raises(InvalidInput, match="have no halves"):
        PairRows.with_halves(replace(statistics, even_pair_counts=None))


def test_a_row_has_the_same_bits_wherever_it_stands():
    rows = PairRows.of(MomentStatistics.of(CountBatch.from_csr(COUNTS), BASIS))
    expected, number = np.full(12, 1 / 12), rows.dense_places.size
    assert number > 4
    for k in (1, 2, 3, 4, 5, 7):
        left, right = np.random.default_rng(k).random((2, 12, k))
        sides = left, right[:10], expected
        ratios, logarithms = rows.ratios(*sides), rows.logarithms(*sides)
        for places in (*(np.roll(np.arange(number), turn) for turn in range(4)), np.arange(3)):
            dense, own = rows.dense[places], rows.dense_places[places]
            moved = replace(rows, dense=dense, dense_places=own)
            assert np.array_equal(moved.ratios(*sides)[own], ratios[own])
            assert np.array_equal(moved.logarithms(*sides)[own], logarithms[own])


def test_logarithms_are_those_of_the_whole_matrix():
    for counts, basis in ((COUNTS, BASIS), (RARE, OF_RARE)):
        statistics = MomentStatistics.of(CountBatch.from_csr(counts), basis)
        expected = np.full(basis.n_words, 1 / basis.n_words)
        # likelihoods of 25 powers of ten
        left = 10.0 ** -np.random.default_rng(0).integers(0, 25, (basis.n_words, 2))
        right = np.random.default_rng(1).random((basis.core, 2)) * [1.0, 0.0]
        means, shares = np.random.default_rng(2).random(basis.n_words), (0.0, 0.25, 1.0)
        found = PairRows.of(statistics).logarithms(left, right, expected, means, shares)
        pairs, likelihoods = statistics.pair_counts, left @ right.T
        independent = np.outer(means, means[: basis.core])
        for place, share in enumerate(shares):
            mixed = (1 - share) * likelihoods + share * independent
            logarithms = (pairs * np.log(mixed)).sum(axis=1)
            np.testing.assert_allclose(found[:, place], logarithms, rtol=1e-6, atol=1e-5)
        assert np.array_equal(found[:, -1], pairs.sum(axis=1))


def test_halves_of_weighted_statistics():
    parts = [MomentStatistics.of(CountBatch.from_csr(part), BASIS) for part in (COUNTS, COUNTS[5:])]
    weighted = WeightedStatistics.of(zip((0.5, 2.0), parts, strict=True))
    even = 0.5 * parts[0].even_pair_counts + 2.0 * parts[1].even_pair_counts
    assert np.array_equal(weighted.even_pair_counts, even)
    odd = PairRows.of(weighted, np.float64, half=1)
    assert np.array_equal(held(odd), weighted.pair_counts - even)
