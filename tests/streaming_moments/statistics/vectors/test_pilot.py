"""Foundations of vectors from a pilot: its grid, radius and sketch."""

import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.statistics.vectors.moments import VectorMoments
from streaming_moments.statistics.vectors.pilot import foundation_of, grid_of
from streaming_moments.statistics.vectors.rows import VectorBatch


def rows_of(seed=0, number=1_000, size=80, shift=3.0):
    rng = np.random.default_rng(seed)
    return shift * rng.normal(size=(5, size))[rng.integers(0, 5, number)] + rng.normal(
        size=(number, size)
    )


def test_a_pilot_gives_a_grid_of_which_a_coordinate_spreads_over_sixteen_steps():
    rows = 7.0 * rows_of() + 100
    foundation = foundation_of(rows)
    assert np.allclose(foundation.grid.offset, np.median(rows, axis=0))
    assert foundation.grid.step == pytest.approx(np.median(rows.std(axis=0)) / 16)
    assert (foundation.columns, foundation.grid.whole) == (50, False)
    prepared = foundation.prepared(VectorBatch.of(rows))
    assert prepared.totals.clipped < 0.01 * len(rows)
    spread = prepared.sketches.std(axis=0)
    assert ((spread > 7.9) & (spread < 16.1)).all()
    assert foundation.room(prepared.totals) > 10**9
    assert foundation_of(rows, seed=1).fingerprint != foundation.fingerprint
    assert foundation_of(rows).fingerprint == foundation.fingerprint


def test_the_sketch_follows_the_means_and_not_the_noisy_coordinates():
    rows = rows_of(number=2_000)
    rng = np.random.default_rng(1)
    noisy = rows.copy()
    noisy[:, :10] += 30 * rng.normal(size=(2_000, 10))
    for given in (rows, noisy):
        foundation = foundation_of(given, columns=9)
        means = 3.0 * np.random.default_rng(0).normal(size=(5, 80))
        spread = means - means.mean(axis=0)
        # what of the differences of means lies in the span of the sketch, where noise is small
        frame = np.linalg.qr(foundation.matrix.astype(float))[0]
        quiet = np.where(np.arange(80) < (10 if given is noisy else 0), 0.0, spread)
        kept = np.linalg.norm(quiet @ frame) / np.linalg.norm(quiet)
        assert kept > 0.95


def test_outliers_are_drawn_in_and_hardly_move_the_moments():
    rows = rows_of(number=4_000, size=60)
    foundation = foundation_of(rows[:2_000])
    spoilt = rows.copy()
    spoilt[::100] += 500.0
    clean, found = (
        VectorMoments.of(foundation.of_vectors(VectorBatch.of(one))) for one in (rows, spoilt)
    )
    assert foundation.prepared(VectorBatch.of(spoilt)).totals.clipped >= 40
    assert np.abs(found.mean - clean.mean).max() < 3
    assert np.linalg.norm(found.covariance - clean.covariance) < 0.2 * np.linalg.norm(
        clean.covariance
    )


def test_long_tails_are_clipped_no_more_than_a_few_outliers():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 30)) * np.exp(rng.normal(0, 0.5, (2000, 1)))
    spoilt = rows.copy()
    spoilt[:20] *= 8
    spoilt[:5] *= 1e5
    for given, least in ((rows, 0), (spoilt, 20)):
        clipped = grid_of(given).quantised(given)[2]
        assert least <= clipped <= 120


@pytest.mark.parametrize("kind", ["binary", "int8"])
def test_whole_numbers_are_kept_as_they_are(kind):
    rng = np.random.default_rng(0)
    top = 1 if kind == "binary" else 40
    rows = rng.integers(0 if kind == "binary" else -top, top + 1, (500, 70)).astype(np.int8)
    foundation = foundation_of(rows)
    assert foundation.grid.whole
    assert foundation.grid.step == 1
    prepared = foundation.prepared(VectorBatch.of(rows))
    assert not prepared.totals.clipped
    back = foundation.grid.values(prepared.rows.astype(float))
    assert np.array_equal(back, rows)


def test_constant_columns_are_no_matter():
    rows = rows_of(size=90)
    rows[:, ::3] = 4.5
    foundation = foundation_of(rows, columns=9)
    found = VectorMoments.of(foundation.of_vectors(VectorBatch.of(rows)))
    assert not found.covariance[::3].any()
    assert np.allclose(foundation.grid.values(found.mean)[::3], 4.5)
    assert foundation.grid.step == pytest.approx(np.median(rows.std(axis=0)[1::3]) / 16, rel=0.2)


def test_coordinates_of_very_different_scales_fit():
    rows = rows_of(size=8) * 10.0 ** np.arange(-4, 4)
    for kept in ({}, {"squares": True, "fourth": True}):
        foundation = foundation_of(rows, **kept)
        totals = foundation.prepared(VectorBatch.of(rows)).totals
        assert foundation.room(totals) > 10**7
        assert totals.clipped < 0.05 * len(rows)


def test_few_numbers_are_their_own_sketch_and_few_directions_have_a_larger_radius():
    rows = np.random.default_rng(0).normal(size=(3_000, 2))
    foundation = foundation_of(rows)
    assert np.array_equal(foundation.matrix, np.eye(2))
    assert foundation.prepared(VectorBatch.of(rows)).totals.clipped < 0.02 * len(rows)
    assert foundation_of(rows[:, :1]).columns == 1
    wide = np.random.default_rng(0).normal(size=(20, 300))
    assert foundation_of(wide, columns=7).columns == 7


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (np.ones((40, 3)), "all 40 rows of the pilot are equal"),
        (np.ones((1, 3)), "2 rows"),
        (np.ones((4, 0)), "2 rows"),
        (np.array([[1.0], [np.nan]]), "NaN"),
    ],
)
def test_a_pilot_that_tells_nothing_is_refused(rows, told):
    with pytest.raises(InvalidInput, match=told):
        foundation_of(rows)
    with pytest.raises(InvalidInput, match="give at least 1"):
        foundation_of(np.eye(3), columns=0)


@pytest.mark.parametrize("times", [1e4, 1e12, 1e250])
def test_a_few_strange_rows_of_a_pilot_do_not_rule_its_grid(times):
    rows = rows_of(size=20)
    spoilt = rows.copy()
    spoilt[3] *= times
    spoilt[7, 2] = -times
    clean, found = foundation_of(rows), foundation_of(spoilt)
    assert found.grid.step == pytest.approx(clean.grid.step, rel=0.05)
    assert found.grid.radius == pytest.approx(clean.grid.radius, rel=0.05)
    assert found.prepared(VectorBatch.of(spoilt)).totals.clipped >= 2
    kept = np.delete(np.arange(len(rows)), [3, 7])
    assert np.abs(found.grid.quantised(rows)[0][kept]).mean() > 5


@pytest.mark.parametrize("scale", [1e-80, 1e80])
def test_numbers_of_any_size_have_a_grid(scale):
    rows = rows_of(size=20)
    plain, scaled = foundation_of(rows), foundation_of(rows * scale)
    assert scaled.grid.step == pytest.approx(plain.grid.step * scale, rel=1e-12, abs=0)
    assert scaled.grid.radius == plain.grid.radius


@pytest.mark.parametrize("scale", [1e-300, 1e-250, 1e250, 1e300])
def test_numbers_of_which_a_variance_is_none_are_refused(scale):
    with pytest.raises(InvalidInput, match="scale them by"):
        foundation_of(rows_of(size=20) * scale)


def test_the_radius_of_whole_numbers_is_about_their_whole_offset():
    half = np.random.default_rng(0).integers(0, 2, (1000, 100))
    rows = np.r_[half, 1 - half]
    grid = grid_of(rows)
    assert (grid.whole, grid.radius) == (True, 10)
    assert (np.linalg.norm(rows - grid.offset, axis=1) <= grid.radius).mean() > 0.9
