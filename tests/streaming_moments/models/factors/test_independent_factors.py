"""Independent factors of exact statistics, and what has no cumulant to stand on."""

import numpy as np
import pytest

from streaming_moments.decompositions.vectors.factors import Factors
from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.factors.independent_factors import (
    FactorOptions,
    IndependentFactors,
)
from streaming_moments.models.factors.order import matched_halves
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.vectors.pilot import foundation_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.mixtures import FactorRows, amari_distance, factor_rows


def fitted(drawn: FactorRows, k: int, fourth: bool = False, **options) -> IndependentFactors:
    foundation = foundation_of(drawn.rows[:2000], fourth=fourth, reach=4.0)
    statistics = foundation.of_vectors(VectorBatch.of(drawn.rows))
    return IndependentFactors.fit(InMemory((statistics,)), FactorOptions(topics=k, **options))


@pytest.fixture(scope="module")
def skewed() -> FactorRows:
    return factor_rows(20_000, 12, 4, "exponential", noise=0.5, seed=1)


def test_skewed_factors_are_found_with_their_number_and_bars(skewed) -> None:
    model = fitted(skewed, 0)
    assert model.n_topics == model.n_directions == 4
    assert amari_distance(skewed.mixing, model.unmixing) < 0.03
    cosines = np.abs(model.mixing.T @ skewed.mixing)
    places = cosines.argmax(axis=1)
    assert sorted(places) == [0, 1, 2, 3]
    errors = np.linalg.norm(model.mixing - skewed.mixing[:, places], axis=0)
    assert errors.max() < 0.4
    assert 0.3 < model.bars.mean() / errors.mean() < 3.0
    assert (np.abs(model.skewness - 2) < 0.3).all()
    values = model.values(skewed.rows)
    for own, place in enumerate(places):
        assert np.corrcoef(values[:, own], skewed.factors[:, place])[0, 1] > 0.9
    np.testing.assert_allclose(model.values(model.rows_of(values)), values, atol=1e-8)
    assert model.weights.sum() == pytest.approx(1)


def test_factors_without_skewness_are_refused_and_kept_where_asked() -> None:
    drawn = factor_rows(20_000, 10, 3, "laplace", noise=0.1, seed=2)
    with pytest.raises(NotIdentifiable, match=r"no skewness .* created with the statistic fourth"):
        fitted(drawn, 3)
    kept = fitted(drawn, 3, weak="keep")
    assert kept.weak > 0
    assert "cumulants within noise" in kept.described().sentence
    found = fitted(drawn, 3, fourth=True, order="fourth")
    assert found.weak == 0
    assert amari_distance(drawn.mixing, found.unmixing) < 0.05


def test_noise_of_unknown_covariance_needs_fourth_moments() -> None:
    root = np.random.default_rng(3).normal(size=(8, 8))
    drawn = factor_rows(30_000, 8, 3, "exponential", noise=root @ root.T / 4, seed=3)
    with pytest.raises(InvalidInput, match="full noise needs the statistic fourth"):
        fitted(drawn, 3, noise="full")
    blind = fitted(drawn, 3)
    known = fitted(drawn, 3, fourth=True, noise="full")
    assert amari_distance(drawn.mixing, known.unmixing) < 0.05
    assert amari_distance(drawn.mixing, known.unmixing) < amari_distance(
        drawn.mixing, blind.unmixing
    )


def test_parts_make_it_again(skewed) -> None:
    model = fitted(skewed, 4)
    again = IndependentFactors.from_parts(*model.parts())
    np.testing.assert_array_equal(again.mixing, model.mixing)
    assert again.described().sentence == model.described().sentence
    with pytest.raises(InvalidInput, match="model factors lacks mixing, unmixing, mean"):
        IndependentFactors.from_parts({}, {})
    with pytest.raises(ForeignStatistics, match="12 dimensions"):
        model.values(np.zeros((2, 3)))


def test_rows_of_noise_have_no_factors() -> None:
    noise = factor_rows(5_000, 6, 1, "normal", noise=100.0, seed=4)
    with pytest.raises(NotIdentifiable, match="no direction beyond noise"):
        fitted(noise, 0)
    with pytest.raises(InvalidInput, match='weak is "drop"'):
        FactorOptions(topics=2, weak="drop")
    with pytest.raises(InvalidInput, match='order is "second"'):
        FactorOptions(topics=2, order="second")
    with pytest.raises(InvalidInput, match="-1 factors"):
        FactorOptions(topics=-1)


@pytest.mark.parametrize("noise", ["spherical", "diag"])
def test_as_many_factors_as_dimensions_have_no_noise_and_more_are_refused(noise) -> None:
    drawn = factor_rows(10_000, 4, 4, "exponential", seed=5)
    found = fitted(drawn, 4, noise=noise)
    assert amari_distance(drawn.mixing, found.unmixing) < 0.05
    assert not found.noise.any()
    assert "the fit assumes no noise" in found.described().sentence
    with pytest.raises(NotIdentifiable, match="ask for 4 components or 4 factors at most"):
        fitted(drawn, 5, noise=noise)
    # a column that never varies is no dimension
    wide = np.hstack([drawn.rows, np.ones((10_000, 1))])
    same = fitted(FactorRows(wide, drawn.mixing, drawn.factors), 4, noise=noise)
    assert amari_distance(drawn.mixing, same.unmixing[:4]) < 0.05
    with pytest.raises(NotIdentifiable, match="4 of them vary.* have at most 4 directions"):
        fitted(FactorRows(wide, drawn.mixing, drawn.factors), 5, noise=noise)


def test_bars_compare_a_factor_with_itself_whatever_its_sign_and_place() -> None:
    rng = np.random.default_rng(0)
    mixing = rng.standard_normal((6, 3))
    whole, even, odd = (
        Factors(one, *(np.zeros(0),) * 7)
        for one in (mixing, -mixing[:, [2, 0, 1]], mixing * [1, -1, 1] + 0.01)
    )
    first, second = matched_halves(whole, (even, odd))
    bars = np.linalg.norm(first - second, axis=1) / 2
    assert bars == pytest.approx([0.005 * np.sqrt(6)] * 3)


DRAWS = {
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2),
    "uniform": lambda rng, size: (rng.random(size) - 0.5) * np.sqrt(12),
}


@pytest.mark.parametrize("kinds", [[kind] for kind in DRAWS] + [[*DRAWS]])
def test_both_cumulants_separate_factors_of_any_kind(kinds) -> None:
    rng = np.random.default_rng(1)
    factors = np.stack([DRAWS[kinds[at % len(kinds)]](rng, 20_000) for at in range(3)], axis=1)
    mixing = rng.normal(size=(8, 3))
    rows = factors @ mixing.T + rng.normal(0, 0.2, (20_000, 8))
    errors = {}
    for order in ("third", "fourth", "both"):
        found = fitted(FactorRows(rows, mixing, factors), 3, fourth=True, order=order, weak="keep")
        errors[order] = amari_distance(mixing, found.unmixing)
    assert errors["both"] < 1.4 * min(errors["third"], errors["fourth"])
    assert found.weak == 0
    chosen = fitted(FactorRows(rows, mixing, factors), 3, fourth=True)
    assert errors[chosen.order] < 1.4 * min(errors.values())
    again = IndependentFactors.from_parts(*chosen.parts())
    told = again.described().sentence
    assert f"order {chosen.order}: factors fitted to the two halves of the rows differ by " in told
    assert again.described().facts["order_told"] == chosen.order_told


def test_an_order_that_halves_show_to_be_better_is_used_alone() -> None:
    drawn = factor_rows(2_000, 12, 6, "uniform", noise=0.1, seed=1)
    found = fitted(drawn, 6, fourth=True)
    assert found.order == "fourth"
    few = fitted(factor_rows(50, 8, 1, "exponential", noise=0.1, seed=1), 1, fourth=True)
    assert few.order_told == "order both"
    bare = fitted(factor_rows(2_000, 8, 2, "exponential", noise=0.1, seed=1), 2)
    assert bare.order == "third"
    assert bare.order_told == "order third, as there are no fourth moments"
    assert fitted(drawn, 6, fourth=True, order="fourth").order_told == ""


def test_both_cumulants_need_fourth_moments_and_call_either_weak(skewed) -> None:
    with pytest.raises(InvalidInput, match="order both needs the statistic fourth"):
        fitted(skewed, 4, order="both")
    noise = factor_rows(5_000, 6, 2, "normal", noise=0.01, seed=4)
    with pytest.raises(NotIdentifiable, match="no skewness or kurtosis beyond noise"):
        fitted(noise, 2, fourth=True, order="both")
