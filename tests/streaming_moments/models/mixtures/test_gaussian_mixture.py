"""Mixtures of Gaussians: recovered from statistics, polished to what EM from the truth finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, MixtureOptions
from streaming_moments.models.mixtures.passes import (
    ROW,
    ExpectedRows,
    MixtureReader,
    improved,
    polished,
)
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.vectors.grid import Grid
from streaming_moments.statistics.vectors.pilot import foundation_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.mixtures import MixtureRows, matched_means, mixture_rows
from streaming_moments.testing.recovery import check_rate


def fitted(drawn: MixtureRows, k: int, covariance: str = "spherical", pilot: int = 2000):
    foundation = foundation_of(drawn.rows[:pilot], squares=covariance == "diag")
    statistics = foundation.of_vectors(VectorBatch.of(drawn.rows))
    options = MixtureOptions(topics=k, covariance=covariance)
    return GaussianMixture.fit(InMemory((statistics,)), options), foundation.grid


def truth_of(drawn: MixtureRows, covariance: str = "spherical") -> GaussianMixture:
    variances = drawn.variances
    alike = covariance.endswith("spherical")
    return GaussianMixture(
        drawn.means, drawn.weights, variances[:, :1] if alike else variances, covariance
    )


def error_of(model: GaussianMixture, drawn: MixtureRows) -> float:
    return float(matched_means(model.means, drawn.means)[0].mean())


@pytest.fixture(scope="module")
def drawn() -> MixtureRows:
    return mixture_rows(20_000, 50, 10, separation=3.0, variances="spherical", uneven=2.0, seed=1)


@pytest.fixture(scope="module")
def model_and_grid(drawn: MixtureRows):
    return fitted(drawn, 10)


def test_statistics_give_the_components_with_bars_and_the_number(drawn, model_and_grid) -> None:
    model, _ = model_and_grid
    errors, places = matched_means(model.means, drawn.means)
    assert errors.mean() < 0.5
    np.testing.assert_allclose(model.weights[places], drawn.weights, atol=0.03)
    np.testing.assert_allclose(model.variances[places, 0], drawn.variances[:, 0], atol=0.1)
    assert (np.diff(model.weights) <= 0).all()
    assert model.n_separable == 10
    assert model.documents == 20_000
    # bars are the errors, to a factor
    assert 0.4 < np.mean(model.bars) / errors.mean() < 2.0


def test_two_passes_reach_what_em_from_the_truth_finds(drawn, model_and_grid) -> None:
    model, grid = model_and_grid
    oracle = polished(truth_of(drawn), [drawn.rows], grid, 10)
    found = polished(model, [drawn.rows], grid, 2)
    assert error_of(found, drawn) < 1.05 * error_of(oracle, drawn)
    assert found.log_likelihoods(drawn.rows).mean() > model.log_likelihoods(drawn.rows).mean()
    assert found.polishing.passes == 2
    assert found.polishing.documents == 20_000


@pytest.mark.parametrize("covariance", ["tied-spherical", "tied-diag", "diag"])
def test_every_covariance_is_recovered_and_polished(covariance: str) -> None:
    drawn = mixture_rows(20_000, 20, 4, separation=4.0, variances=covariance, seed=2)
    model, grid = fitted(drawn, 4, covariance)
    assert error_of(model, drawn) < 0.25
    oracle = polished(truth_of(drawn, covariance), [drawn.rows], grid, 10)
    found = polished(model, [drawn.rows], grid, 3)
    assert error_of(found, drawn) < 1.05 * error_of(oracle, drawn)
    _, places = matched_means(found.means, drawn.means)
    np.testing.assert_allclose(
        np.broadcast_to(found.variances, drawn.variances.shape)[places], drawn.variances, atol=0.12
    )


def test_errors_fall_with_the_root_of_the_rows() -> None:
    def error(number: int) -> float:
        drawn = [mixture_rows(number, 20, 4, separation=3.0, seed=seed) for seed in range(3)]
        return float(np.mean([error_of(fitted(one, 4)[0], one) for one in drawn]))

    check_rate(error, (4_000, 16_000, 64_000), (0.5, 0.25, 0.13))


def test_outliers_are_drawn_in() -> None:
    clean = mixture_rows(20_000, 30, 5, separation=4.0, seed=3)
    rows = clean.rows.copy()
    strange = np.random.default_rng(4).normal(size=(200, 30)) * 5 * rows.std(axis=0)
    rows[-200:] = strange
    spoilt = replace(clean, rows=rows)
    errors = []
    for one in (clean, spoilt):
        model, grid = fitted(one, 5)
        errors.append(error_of(polished(model, [one.rows], grid, 2), one))
    assert model.n_clipped >= 190
    assert errors[1] < 1.1 * errors[0]


def test_a_pass_is_the_same_whatever_the_cut(drawn, model_and_grid) -> None:
    model, grid = model_and_grid
    rows = drawn.rows[:1000]
    reader = MixtureReader(model, grid)

    def expected(*cuts: int) -> ExpectedRows:
        total = ExpectedRows.zero(model)
        for part in np.split(rows, cuts):
            total = total.add(reader.add(VectorBatch.of(part), ExpectedRows.zero(model)))
        return total

    whole = expected()
    assert whole.rows == 1000
    for cuts in ((1, 2, 3, 700), tuple(range(50, 1000, 7))):
        other = expected(*cuts)
        assert other.log_likelihood == whole.log_likelihood
        for one, two in zip(other.arrays, whole.arrays, strict=True):
            np.testing.assert_array_equal(one, two)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_readers_agree_with_the_densities(d: int, k: int, seed: int, alike: bool) -> None:
    rng = np.random.default_rng(seed)
    variances = rng.uniform(0.5, 2.0, (k, 1 if alike else d))
    weights = rng.dirichlet(np.ones(k))
    model = GaussianMixture(
        3 * rng.normal(size=(k, d)), weights, variances, "spherical" if alike else "diag"
    )
    grid = Grid(rng.normal(size=d), step=1 / 64, radius=4000)
    rows, norms, _ = grid.quantised(4 * rng.normal(size=(20, d)))
    expected = MixtureReader(model, grid).add_rows(rows, norms, ExpectedRows.zero(model))
    points = grid.values(rows.astype(np.float64))
    shares = model.posterior(points)
    np.testing.assert_allclose(expected.counts / 2**16, shares.sum(axis=0), atol=1e-3)
    likelihood = model.log_likelihoods(points).sum()
    assert expected.log_likelihood / 2**16 == pytest.approx(likelihood, abs=1e-3)
    np.testing.assert_allclose(expected.first / 2**16, shares.T @ rows, atol=20 * 4000 * 2**-16)


def test_densities_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(5)
    means, weights = rng.normal(size=(3, 2)) + 1000, np.array([0.5, 0.3, 0.2])
    variances = rng.uniform(0.5, 2, (3, 2))
    model = GaussianMixture(means, weights, variances, "diag")
    rows = means[[0, 1, 1]] + 0.1
    direct = [
        np.sum(weights * np.prod(
            np.exp(-((row - means) ** 2) / (2 * variances)) / np.sqrt(2 * np.pi * variances), axis=1
        ))
        for row in rows
    ]  # fmt: skip
    np.testing.assert_allclose(model.log_likelihoods(rows), np.log(direct), rtol=1e-8)
    assert model.assign(rows).tolist() == [0, 1, 1]
    with pytest.raises(ForeignStatistics, match="2 dimensions"):
        model.posterior(np.zeros((3, 5)))


@pytest.mark.parametrize("covariance", ["spherical", "diag"])
def test_rows_of_which_squares_overflow_have_densities(covariance) -> None:
    variances = np.array([[1.0], [4.0]]) * np.ones((2, 3 if covariance == "diag" else 1))
    model = GaussianMixture(np.eye(2, 3), np.array([0.6, 0.4]), variances, covariance)
    rows = np.array([[1e200, 0, 0], [-1e308, 1e308, -1e308], [0, 1e160, 0], [1, 0, 0]])
    with np.errstate(all="raise", under="ignore"):
        logs, shares = model.log_likelihoods(rows), model.posterior(rows)
    assert np.isfinite(logs).all()
    np.testing.assert_array_equal(shares[:3], np.repeat([[0.0, 1.0]], 3, axis=0))
    assert (logs[:3] < -1e190).all()
    np.testing.assert_array_equal(logs[3:], model.log_likelihoods(rows[3:]))


def test_parts_make_it_again(model_and_grid, drawn) -> None:
    model, grid = model_and_grid
    for one in (model, polished(replace(model, bars=None), [drawn.rows[:50]], grid, 1)):
        arrays, attributes = one.parts()
        again = GaussianMixture.from_parts(arrays, attributes)
        np.testing.assert_array_equal(again.means, one.means)
        assert again.polishing == one.polishing
        assert again.described().sentence == one.described().sentence
    with pytest.raises(InvalidInput, match="gaussian_mixture lacks means, weights, variances"):
        GaussianMixture.from_parts({}, attributes)


def test_row_blocks_are_one_whole(drawn) -> None:
    foundation = foundation_of(drawn.rows[:2000])
    batch = VectorBatch.of(drawn.rows[:3000])
    options = MixtureOptions(topics=3)
    whole = GaussianMixture.fit(InMemory((foundation.of_vectors(batch),)), options)
    blocks = [foundation.of_vectors(batch, RowBlock(index, 3)) for index in range(3)]
    apart = GaussianMixture.fit(InMemory(blocks), options)
    np.testing.assert_array_equal(whole.means, apart.means)


def test_the_number_asked_for_is_held_against_the_spectrum(drawn) -> None:
    few, _ = fitted(drawn, 7)
    assert (
        "the spectrum separates 10 components, so some fitted ones hold several"
        in few.described().sentence
    )
    many, _ = fitted(drawn, 12)
    assert "the spectrum separates 10 components: the others" in many.described().sentence


def test_what_is_asked_for_wrongly_is_named(drawn) -> None:
    with pytest.raises(InvalidInput, match="0 components are asked for; give at least 1"):
        MixtureOptions(topics=0)
    with pytest.raises(InvalidInput, match='covariance of type "full"'):
        MixtureOptions(topics=2, covariance="full")
    with pytest.raises(InvalidInput, match='not by "als"'):
        MixtureOptions(topics=2, method="als")
    with pytest.raises(NotIdentifiable, match="rows of 50 numbers"):
        fitted(drawn, 52)
    narrow = replace(drawn, rows=drawn.rows[:, :2])
    with pytest.raises(NotIdentifiable, match="ask for 2 components"):
        fitted(narrow, 4)
    foundation = foundation_of(drawn.rows[:100])
    empty = foundation.of([])
    with pytest.raises(NotIdentifiable, match="hold no vectors"):
        GaussianMixture.fit(InMemory((empty,)), MixtureOptions(topics=2))
    with pytest.raises(InvalidInput, match="needs the statistic squares"):
        GaussianMixture.fit(
            InMemory((foundation.of_vectors(VectorBatch.of(drawn.rows[:100])),)),
            MixtureOptions(topics=2, covariance="diag"),
        )


@pytest.mark.parametrize("covariance", ["spherical", "tied-spherical"])
def test_components_without_any_spread_have_densities(covariance) -> None:
    rows = np.repeat([[1.0, 1, 1, 1], [4, 1, 2, 1]], [50, 20], axis=0)
    foundation = foundation_of(rows)
    assert foundation.grid.whole
    statistics = foundation.of_vectors(VectorBatch.of(rows))
    options = MixtureOptions(topics=2, covariance=covariance)
    model = GaussianMixture.fit(InMemory((statistics,)), options)
    for one in (model, polished(model, [rows], foundation.grid)):
        assert (one.variances > 0).all()
        assert np.isfinite(one.log_likelihoods(rows)).all()
        assert np.array_equal(one.assign(rows), np.repeat([0, 1], [50, 20]))


@pytest.mark.parametrize("whole", [False, True])
def test_variances_of_a_pass_are_without_what_the_grid_adds(whole) -> None:
    """A twelfth of a squared step, of values that do not lie on the grid themselves."""
    grid = Grid(np.zeros(2), step=0.5, radius=100, whole=whole)
    model = GaussianMixture(np.zeros((2, 2)), np.full(2, 0.5), np.ones((2, 1)), "spherical")
    rows = np.array([[3, 1], [-3, 1], [3, -1], [-3, -1]])
    spread = np.square(rows).sum() * ROW
    counts = np.full(2, 4 * ROW)
    expected = ExpectedRows(counts, np.zeros((2, 2), np.int64), np.full((2, 1), spread))
    found = improved(model, expected, grid)
    assert found.variances.ravel() == pytest.approx([(5 - (not whole) / 12) / 4] * 2)
