"""Second starts from a pilot of the rows: as many components as dimensions or more, and strays."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from streaming_moments.decompositions.vectors.lifted_mixture import COVARIANCES
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.models.mixtures.second_start import (
    _least_needed,
    _moved,
    _ordinary,
    best_start,
    pilot_of,
)
from streaming_moments.models.starts import ROWS
from streaming_moments.sklearn import MomentGaussianMixture
from streaming_moments.statistics.vectors.grid import Grid


def drawn(k, d, length, number=4000, seed=0):
    """Rows around means of one length, and the means."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, d))
    means *= length / np.linalg.norm(means, axis=1, keepdims=True)
    rows = means[rng.integers(0, k, number)] + rng.normal(size=(number, d))
    return rows, means


def error(found, truth):
    apart = np.linalg.norm(found[:, None] - truth, axis=2)
    return apart[linear_sum_assignment(apart)].mean()


def from_the_truth(rows, means):
    k, grid = len(means), Grid(np.zeros(rows.shape[1]), step=0.05, radius=2000)
    begun = GaussianMixture(means, np.full(k, 1 / k), np.ones((k, 1)))
    return error(polished(begun, [rows], grid, 10).means, means)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize(("k", "d"), [(8, 8), (6, 4)])
def test_as_many_components_as_dimensions_or_more_are_found(k, d, covariance):
    rows, means = drawn(k, d, length=6.0)
    # columns that never vary say nothing
    wide = np.hstack([rows, np.ones((len(rows), 1))])
    least = from_the_truth(rows, means)
    for given in (rows, wide):
        found = MomentGaussianMixture(k, covariance_type=covariance, polish="auto").fit(given)
        assert error(found.means_[:, :d], means) < 1.2 * least
        assert np.isfinite(found.score(given))


def test_components_that_halves_do_not_both_show_are_named():
    rows, _ = drawn(10, 10, length=4.0)
    with pytest.warns(UserWarning, match="of 10 components are not found in both halves"):
        found = MomentGaussianMixture(10).fit(rows)
    assert "are not found in both halves of the rows" in found.model_.described().sentence
    noise = np.random.default_rng(0).normal(size=(2000, 8))
    with pytest.warns(UserWarning, match="of 3 components are not found in both halves"):
        MomentGaussianMixture(3).fit(noise)
    rows, _ = drawn(4, 20, length=6.0)
    with warnings.catch_warnings(action="error"):
        assert MomentGaussianMixture(4).fit(rows).model_.n_unsteady == 0


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_wide_components_are_split_where_one_is_hardly_needed(covariance):
    rows, means = drawn(12, 12, length=6.0)
    # two components in one cluster, and one between two
    begun = np.vstack([means[:10], (means[10] + means[11]) / 2, means[0] + 0.5])
    width = 12 if covariance.endswith("diag") else 1
    model = GaussianMixture(begun, np.full(12, 1 / 12), np.ones((12, width)), covariance)
    grid = Grid(np.zeros(12), step=0.05, radius=2000)
    stuck = polished(model, [rows], grid, 10)
    assert error(stuck.means, means) > 0.4
    assert error(_moved(stuck, rows, grid).means, means) < 0.25


def test_the_component_without_which_rows_are_as_likely_is_least_needed():
    means = 8 * np.eye(3, 4)
    for weights, needed, least in (
        ([0.5, 0.0, 0.5], [0, 2], 1),
        ([0.0, 0.0, 1.0], [2], 0),
        ([0.3, 0.3, 0.4], [0, 2], 1),
    ):
        model = GaussianMixture(means, np.array(weights), np.ones((3, 1)))
        assert _least_needed(model, means[needed]) == least


LAWS = {
    "normal": lambda rng, d: rng.normal(size=(2000, d)),
    "Student": lambda rng, d: rng.normal(size=(2000, d)) / np.sqrt(rng.chisquare(3, (2000, 1)) / 3),
    "exponential": lambda rng, d: rng.exponential(size=(2000, d)),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [5, 30])
def test_noise_is_one_component(law, d):
    rows = LAWS[law](np.random.default_rng(d), d)
    assert MomentGaussianMixture("auto", polish="auto").fit(rows).means_.shape == (1, d)


def test_the_start_from_a_pilot_is_said_and_stored():
    rows, _ = drawn(6, 4, length=6.0)
    found = MomentGaussianMixture(6, polish=2).fit(rows)
    assert found.model_.start == "pilot"
    assert "started from K-means on a pilot" in found.model_.described().sentence
    kept = GaussianMixture.from_parts(*found.model_.parts())
    assert kept.start == "pilot"
    assert (MomentGaussianMixture(6, polish=2).fit(rows).means_ == found.means_).all()


def test_moments_are_kept_where_rows_are_as_likely():
    rows, means = drawn(4, 20, length=6.0)
    plain, found = MomentGaussianMixture(4).fit(rows), MomentGaussianMixture(4, polish=3).fit(rows)
    assert found.model_.start == "moments"
    assert found.model_.bars is not None
    grid = found._foundation.grid
    assert (found.means_ == polished(plain.model_, [rows], grid, 3).means).all()
    assert error(found.means_, means) < 0.3


def test_more_components_than_dimensions_need_passes():
    rows, _ = drawn(6, 4, length=7.0, number=400)
    with pytest.raises(NotIdentifiable, match="or set polish and call fit, which"):
        MomentGaussianMixture(6).fit(rows)
    with pytest.raises(NotIdentifiable):
        MomentGaussianMixture(6, polish=1).fit(rows[:5])


def test_a_component_without_rows_begins_at_a_cluster_that_is_far_from_others():
    rows, means = drawn(4, 8, length=8.0)
    grid = Grid(np.zeros(8), step=0.05, radius=2000)
    astray = means.copy()
    astray[2] = 60.0
    model = GaussianMixture(astray, np.full(4, 0.25), np.ones((4, 1)))
    pilot = pilot_of(rows, seed=1)
    found = best_start(model, pilot, grid, replace(model, means=np.zeros((4, 8))))
    assert found.start == "pilot"
    assert error(polished(found, [rows], grid, 3).means, means) < 0.15


def test_passes_over_the_pilot_are_kept_where_they_are_likelier_than_the_fit():
    rows, means = drawn(6, 10, length=6.0)
    grid = Grid(np.zeros(10), step=0.05, radius=2000)
    astray = means + np.random.default_rng(1).normal(0, 0.8, means.shape)
    model = GaussianMixture(astray, np.full(6, 1 / 6), np.ones((6, 1)), bars=np.ones(6))
    blank = replace(model, means=0 * means, bars=None)
    found = best_start(model, pilot_of(rows, seed=1), grid, blank)
    assert (found.start, found.polishing) == ("moments", None)
    assert (found.bars == 1).all()
    assert error(found.means, means) < 0.1 * error(astray, means)
    again = best_start(found, pilot_of(rows, seed=1), grid, blank)
    assert (again.means == found.means).all()


def test_outliers_get_no_component_of_their_own():
    rows, means = drawn(5, 10, length=5.0)
    rows[:40] = np.random.default_rng(1).normal(size=(40, 10)) * 5 * rows.std(axis=0)
    found = MomentGaussianMixture(5, polish="auto").fit(rows)
    assert error(found.means_, means) < 1.1 * from_the_truth(rows[40:], means)
    grid = Grid(np.zeros(1), step=1.0, radius=10)
    given = np.append(np.zeros(39), 20.0)[:, None]
    assert len(_ordinary(given, grid, least=39)) == 39
    assert len(_ordinary(given, grid, least=40)) == 40
    assert len(_ordinary(given[30:], grid, least=1)) == 10


def test_the_pilot_is_rows_in_random_order():
    rows = np.arange(3 * ROWS)[:, None].astype(float)
    pilot = pilot_of(rows, seed=2)
    assert pilot.shape == (2 * ROWS, 1)
    assert np.unique(pilot).size == 2 * ROWS
    assert abs(np.corrcoef(pilot[:, 0], np.arange(2 * ROWS))[0, 1]) < 0.1
    assert sorted(pilot_of(rows[:5], seed=0).ravel()) == [0, 1, 2, 3, 4]
