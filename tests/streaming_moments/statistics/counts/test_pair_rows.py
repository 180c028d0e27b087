"""Pair counts of a half of the documents, as the likelihood reads them."""

import numpy as np
import pytest

from streaming_moments import Basis, CountBatch, MomentStatistics, RowBlock
from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.counts import pair_rows
from streaming_moments.statistics.counts.pair_rows import PairRows
from streaming_moments.statistics.counts.weighted import WeightedStatistics

COUNTS = np.random.default_rng(0).poisson(0.6, (40, 12)) * (np.arange(12) < 9)
BASIS = Basis(np.random.default_rng(1).integers(-9, 10, (10, 3)).astype(np.int8), 12)


@pytest.mark.parametrize("block", [RowBlock(), RowBlock(1, 3)])
@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("rows", [16, 5])
def test_a_half_is_read_as_if_its_documents_were_alone(block, half, rows, monkeypatch):
    monkeypatch.setattr(pair_rows, "_ROWS", rows)
    batch = CountBatch.from_csr(COUNTS)
    whole, own = MomentStatistics.of(batch, BASIS, block), COUNTS[batch.odd == half]
    alone = MomentStatistics.of(CountBatch.from_csr(own), BASIS, block, halves=False)
    found, expected = PairRows.of(whole, half=half), PairRows.of(alone)
    for name in ("dense", "dense_places", "sparse_places", "starts", "words", "counts"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert np.array_equal(found.scales, PairRows.of(whole).scales)
    with pytest.raises(InvalidInput, match="have no halves"):
        PairRows.of(alone, half=half)


def test_halves_of_weighted_statistics():
    parts = [MomentStatistics.of(CountBatch.from_csr(part), BASIS) for part in (COUNTS, COUNTS[5:])]
    weighted = WeightedStatistics.of(zip((0.5, 2.0), parts, strict=True))
    even = 0.5 * parts[0].even_pair_counts + 2.0 * parts[1].even_pair_counts
    assert np.array_equal(weighted.even_pair_counts, even)
    odd = PairRows.of(weighted, np.float64, half=1)
    held = np.zeros((12, 10))
    held[odd.dense_places] = odd.dense
    for row, place in enumerate(odd.sparse_places):
        entries = slice(odd.starts[row], odd.starts[row + 1])
        held[place, odd.words[entries]] = odd.counts[entries]
    assert np.array_equal(held, weighted.pair_counts - even)
