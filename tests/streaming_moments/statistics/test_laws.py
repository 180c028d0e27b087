"""Every statistic obeys the laws, on random samples, partitions and orders."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments import Basis, CountBatch, LengthHistogram, MomentStatistics, RowBlock
from streaming_moments.errors import BoundExceeded, ForeignStatistics, InvalidInput
from streaming_moments.statistics.counts.batch import concatenate
from streaming_moments.statistics.counts.lengths.weights import POOLED, LengthWeights
from streaming_moments.statistics.counts.pair_rows import half_pairs
from streaming_moments.statistics.counts.statistics import merge_blocks
from streaming_moments.testing.laws import check_laws

N_WORDS = 6


@st.composite
def samples(draw):
    """Two to five parts of a corpus and a permutation of them; parts may be empty."""
    parts = []
    for documents in draw(st.lists(st.integers(0, 4), min_size=2, max_size=5)):
        rows = st.lists(st.integers(0, 5), min_size=N_WORDS, max_size=N_WORDS)
        counts = [draw(rows) for _ in range(documents)]
        parts.append(np.array(counts, dtype=np.int64).reshape(documents, N_WORDS))
    return parts, draw(st.permutations(range(len(parts))))


def length_weights():
    table = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)
    return st.one_of(st.just(POOLED), table.map(lambda own: LengthWeights(np.array(own))))


@st.composite
def bases(draw):
    core = draw(st.integers(2, N_WORDS))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    while True:
        matrix = rng.integers(-127, 128, size=(core, draw(st.integers(1, 2)))).astype(np.int8)
        if np.linalg.matrix_rank(matrix) == matrix.shape[1]:
            return Basis(matrix, N_WORDS, weights=draw(length_weights()))


@given(samples(), length_weights())
def test_length_histogram(sample, weights):
    parts, order = sample
    check_laws(
        LengthHistogram.zero(weights),
        lambda counts: LengthHistogram.of(counts.sum(axis=1), weights),
        np.vstack,
        parts,
        order,
    )


@given(samples(), bases(), st.integers(1, 3), st.booleans(), st.booleans(), st.data())
@settings(max_examples=60)
def test_moment_statistics(sample, basis, step, codocuments, halves, data):
    parts, order = sample
    block = RowBlock(data.draw(st.integers(0, step - 1)), step)

    def halved(counts):
        odd = data.draw(st.lists(st.booleans(), min_size=len(counts), max_size=len(counts)))
        return replace(CountBatch.from_csr(counts), halves=np.array(odd, dtype=bool))

    check_laws(
        MomentStatistics.zero(basis, block, codocuments, halves),
        lambda batch: MomentStatistics.of(batch, basis, block, codocuments, halves),
        concatenate,
        [halved(part) for part in parts],
        order,
    )


@given(samples(), bases(), st.integers(0, 20), st.integers(0, 20))
@settings(max_examples=40)
def test_halves_make_up_the_whole(sample, basis, start, stop):
    counts = np.vstack(sample[0])
    batch = CountBatch.from_csr(counts)
    statistics = MomentStatistics.of(batch, basis)
    for half in range(2):
        alone = MomentStatistics.of(CountBatch.from_csr(counts[batch.odd == half]), basis)
        assert np.array_equal(half_pairs(statistics, half), alone.pair_counts)
    start, stop = sorted((min(start, len(counts)), min(stop, len(counts))))
    cut = [batch.select(0, start), batch.select(start, stop), batch.select(stop, len(counts))]
    parts = (MomentStatistics.of(part, basis) for part in cut)
    assert sum(parts, MomentStatistics.zero(basis)) == statistics


@given(samples(), bases(), st.integers(1, 8))
@settings(max_examples=40)
def test_row_blocks_make_up_the_whole(sample, basis, step):
    batch = CountBatch.from_csr(np.vstack(sample[0]))
    blocks = [MomentStatistics.of(batch, basis, RowBlock(i, step)) for i in range(step)]
    whole = MomentStatistics.of(batch, basis)
    assert merge_blocks(blocks) == whole
    if step > 1:
        with pytest.raises(ForeignStatistics, match="are not a partition of all rows"):
            merge_blocks(blocks[1:])


def statistics_of(counts, matrix, vocabulary=""):
    batch = CountBatch.from_csr(counts, vocabulary)
    basis = Basis(np.array(matrix, dtype=np.int8), batch.n_words, vocabulary)
    return MomentStatistics.of(batch, basis)


def test_equality_sees_every_array():
    one = statistics_of([[1, 2, 3]], [[1], [2]])
    assert one == statistics_of([[1, 2, 3]], [[1], [2]])
    assert one != statistics_of([[1, 2, 3]], [[1], [3]])
    assert one != statistics_of([[1, 3, 2]], [[1], [2]])
    assert one != statistics_of([[1, 2, 3], [0, 0, 0]], [[1], [2]])


def test_statistics_with_and_without_halves_are_not_combined():
    batch = CountBatch.from_csr([[1, 2, 3], [0, 1, 1]])
    basis = Basis(np.array([[1], [2]], dtype=np.int8), batch.n_words)
    batch = replace(batch, halves=np.array([False, True]))
    kept = MomentStatistics.of(batch, basis)
    none = MomentStatistics.of(batch, basis, halves=False)
    assert kept != none
    for combine in (lambda: kept + none, lambda: none - kept):
        with pytest.raises(ForeignStatistics, match="halves=True or both without"):
            combine()
    with pytest.raises(InvalidInput, match="have no halves"):
        half_pairs(none, 0)
    moved = replace(batch.select(0, 1), halves=np.array([True]))
    with pytest.raises(InvalidInput, match="of the odd half below zero"):
        kept - MomentStatistics.of(moved, basis)


def test_foreign_statistics_are_refused_with_both_named():
    one = statistics_of([[1, 2, 3]], [[1], [2]], vocabulary="a" * 64)
    two = statistics_of([[1, 2, 3]], [[1], [2]], vocabulary="b" * 64)
    for combine in (lambda: one + two, lambda: one - two):
        with pytest.raises(ForeignStatistics) as caught:
            combine()
        assert one.basis.fingerprint[:12] in str(caught.value)
        assert two.basis.fingerprint[:12] in str(caught.value)
        assert "aaaaaaaaaaaa" in str(caught.value)
        assert "bbbbbbbbbbbb" in str(caught.value)
    with pytest.raises(ForeignStatistics, match="bbbbbbbbbbbb"):
        MomentStatistics.of(CountBatch.from_csr([[1, 2, 3]], "b" * 64), one.basis)
    plain = MomentStatistics.of(
        CountBatch.from_csr([[1, 2, 3]], "a" * 64), one.basis, codocuments=False
    )
    with pytest.raises(ForeignStatistics, match="co-document"):
        one + plain
    with pytest.raises(ForeignStatistics, match="rows"):
        one + MomentStatistics.zero(one.basis, RowBlock(0, 2))


def test_subtracting_what_was_never_added_is_refused():
    one = statistics_of([[1, 2, 3]], [[1], [2]])
    with pytest.raises(InvalidInput, match="1 document of length 5 was never added, so it cannot"):
        one - statistics_of([[1, 2, 2]], [[1], [2]])
    with pytest.raises(InvalidInput, match="2 documents of length 5 were never added, so they"):
        one - statistics_of([[1, 2, 2]] * 2, [[1], [2]])
    with pytest.raises(InvalidInput, match="word_counts"):
        one - statistics_of([[3, 2, 1]], [[1], [2]])


def test_a_total_that_would_pass_its_bound_is_refused():
    large = statistics_of([[1_000_000, 0, 0]], [[1], [2]])
    with pytest.raises(BoundExceeded, match="document 0 has 3000000 .* cut it into passages"):
        statistics_of([[3_000_000, 0, 0]], [[1], [2]])
    with pytest.raises(BoundExceeded, match="pair counts"):
        # y is 0 in each of these documents: only their pairs are too many
        statistics_of([[2**31 - 1, 2**31 - 1]] * 3, [[1], [-1]])
    fourfold = (large + large) + (large + large)
    with pytest.raises(BoundExceeded, match="2\\^62"):
        fourfold + fourfold


def test_statistics_cannot_be_changed():
    one = statistics_of([[1, 2, 3]], [[1], [2]])
    with pytest.raises(ValueError, match="read-only"):
        one.pair_counts[0, 0] = 1
