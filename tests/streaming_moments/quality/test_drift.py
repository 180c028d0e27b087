"""Drift: distances by row blocks against those of whole matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments import MomentStatistics
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.quality.drift import Drift, DriftBounds, outside_share
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.pair_distance import PairRows, pair_distance
from streaming_moments.statistics.row_block import RowBlock

WORDS, CORE = 7, 5
BASIS = Basis(np.eye(CORE, 3, dtype=np.int8), WORDS)


def counted(rng, blocks):
    batch = CountBatch.from_csr(rng.poisson(1.0, (6, WORDS)))
    return [
        PairRows.of(MomentStatistics.of(batch, BASIS, RowBlock(i, blocks))) for i in range(blocks)
    ], MomentStatistics.of(batch, BASIS).pair_counts[:CORE]


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
@settings(max_examples=40)
def test_the_distance_by_row_blocks_is_that_of_the_whole_core(seed, blocks):
    rng = np.random.default_rng(seed)
    (one, P), (two, R) = counted(rng, blocks), counted(rng, blocks)
    totals = sum(part.total for part in one), sum(part.total for part in two)
    assert totals == (P.sum(), R.sum())
    found = pair_distance(zip(one, two, strict=True), *totals)
    assert found == pytest.approx(np.abs(P / P.sum() - R / R.sum()).sum() / 2)
    assert pair_distance(zip(one, one, strict=True), totals[0], totals[0]) == 0


def test_states_that_cannot_be_compared_are_refused():
    rng = np.random.default_rng(0)
    one, P = counted(rng, 2)
    total = int(P.sum())
    with pytest.raises(ForeignStatistics, match="have different words"):
        pair_distance([(one[0], one[1])], total, total)
    other = PairRows("other", 0, 2, one[0].pairs)
    with pytest.raises(ForeignStatistics, match="bases"):
        pair_distance([(one[0], other)], total, total)
    with pytest.raises(NotIdentifiable, match="0 and"):
        pair_distance([], 0, total)
    with pytest.raises(InvalidInput, match="more pairs"):
        pair_distance([(one[0], one[0])], 1, 1)


def test_each_bound_that_is_passed_is_named_and_what_is_unknown_is_not():
    bounds = DriftBounds(0.5, 0.3, 100, 0.2)
    assert bounds.passed_by(Drift(0.5, 0.3, 100, 0.2)) == ()
    assert bounds.passed_by(Drift(None, None, 100, None)) == ()
    assert len(bounds.passed_by(Drift(0.4, 0.4, 99, 0.3))) == 4
    assert DriftBounds().passed_by(Drift(0.0, 1.0, 0.0, 1.0)) == ()


def test_no_tokens_have_no_share_outside():
    assert outside_share(0, 0) is None
    assert outside_share(0, 3) == 1
