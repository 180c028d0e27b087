"""MomentGaussianMixture and MomentFactors: what scikit-learn expects of them."""

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from streaming_moments.errors import ForeignStatistics, InvalidInput, NotIdentifiable
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.models.passes.stopping import MOST_PASSES
from streaming_moments.sklearn import MomentFactors, MomentGaussianMixture
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.mixtures import (
    amari_distance,
    factor_rows,
    matched_means,
    mixture_rows,
)


# as scikit-learn checks its own: the few rows that its checks draw are warned of, rightly
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks([MomentGaussianMixture(), MomentFactors()])
def test_scikit_learn_checks(estimator, check) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    return mixture_rows(6000, 70, 4, separation=5.0, variances="spherical", seed=1)


def test_rows_that_come_in_parts_are_as_if_at_once(drawn) -> None:
    whole = MomentGaussianMixture(4).partial_fit(drawn.rows[:3000]).partial_fit(drawn.rows[3000:])
    again = MomentGaussianMixture(4).partial_fit(drawn.rows[:3000])
    for part in np.array_split(drawn.rows[3000:], 7):
        again.partial_fit(part)
    # the first part makes the grid: what all rows at once give on it
    at_once = whole.statistics_.foundation.of_vectors(VectorBatch.of(drawn.rows))
    for estimator in (whole, again):
        for name, sums in estimator.statistics_.arrays().items():
            if not name.startswith("even"):
                np.testing.assert_array_equal(sums, at_once.arrays()[name], err_msg=name)
        for name in ("means_", "weights_", "covariances_"):
            np.testing.assert_array_equal(getattr(estimator, name), getattr(whole, name))
    assert whole.statistics_.totals.n_tokens == 6000
    labels = whole.predict(drawn.rows)
    _, places = matched_means(whole.means_, drawn.means)
    assert (labels == places[drawn.labels]).mean() > 0.97
    assert whole.score(drawn.rows) == pytest.approx(whole.score_samples(drawn.rows).mean())
    proba = whole.predict_proba(drawn.rows[:10])
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore:.*variances of .* were estimated near 0:UserWarning")
@pytest.mark.parametrize("covariance_type", ["diag", "tied-diag"])
def test_columns_that_never_vary_change_nothing(covariance_type) -> None:
    rows = mixture_rows(6000, 40, 4, separation=6.0, variances="diag", seed=2).rows
    more = np.insert(rows, [0, 20, 40], [0.0, 7.0, -3.0], axis=1)
    varying = np.delete(np.arange(43), [0, 21, 42])
    plain = MomentGaussianMixture(4, covariance_type=covariance_type).fit(rows)
    wide = MomentGaussianMixture(4, covariance_type=covariance_type).fit(more)
    np.testing.assert_allclose(wide.means_[:, varying], plain.means_, atol=1e-8)
    np.testing.assert_allclose(wide.means_[:, [0, 21, 42]], [[0.0, 7.0, -3.0]] * 4, atol=1e-8)
    assert (wide.predict(more) == plain.predict(rows)).mean() > 0.999


def test_the_number_is_found_and_passes_make_it_likelier(drawn) -> None:
    plain = MomentGaussianMixture("auto").fit(drawn.rows)
    assert plain.means_.shape == (4, 70)
    better = MomentGaussianMixture("auto", polish=2).fit(drawn.rows)
    assert better.score(drawn.rows) > plain.score(drawn.rows)
    with pytest.raises(InvalidInput, match="polish is 2"):
        better.partial_fit(drawn.rows)
    assert MomentGaussianMixture(4, covariance_type="diag").fit(drawn.rows).covariances_.shape == (
        4,
        70,
    )
    assert plain.covariances_.shape == (4,)


@pytest.mark.parametrize("covariance", ["spherical", "tied-spherical", "diag", "tied-diag"])
def test_passes_are_made_until_one_changes_little(drawn, covariance) -> None:
    plain, once, settled = (
        MomentGaussianMixture(4, covariance_type=covariance, polish=polish).fit(drawn.rows)
        for polish in (0, 1, "auto")
    )
    assert 1 <= settled.model_.polishing.passes < MOST_PASSES
    assert settled.score(drawn.rows) > plain.score(drawn.rows)
    grid = once._foundation.grid
    by_hand = polished(plain.model_, [drawn.rows], grid, settled.model_.polishing.passes)
    assert np.array_equal(settled.means_, by_hand.means)
    assert np.array_equal(settled.model_.variances, by_hand.variances)
    with pytest.raises(InvalidInput, match="takes int or 'auto'"):
        MomentGaussianMixture(4, polish="some").fit(drawn.rows)


def test_factors_are_found_and_turned_back() -> None:
    drawn = factor_rows(20_000, 6, 2, noise=0.05, seed=2)
    model = MomentFactors("auto").fit(drawn.rows)
    assert model.components_.shape == (2, 6)
    assert amari_distance(drawn.mixing, model.components_.T) < 0.03
    values = model.transform(drawn.rows)
    back = model.inverse_transform(values)
    assert np.square(back - drawn.rows).mean() < 0.06
    with pytest.raises(ForeignStatistics, match="rows have 3 factors"):
        model.inverse_transform(np.zeros((1, 3)))


def test_passes_over_rows_separate_factors_better() -> None:
    drawn = factor_rows(5_000, 6, 3, "exponential", noise=0.01, seed=2)
    plain, settled = (MomentFactors(3, polish=polish).fit(drawn.rows) for polish in (0, "auto"))
    errors = [amari_distance(drawn.mixing, one.components_.T) for one in (plain, settled)]
    assert errors[1] < 0.8 * errors[0]
    assert 1 <= settled.model_.polishing.passes < MOST_PASSES
    assert np.array_equal(settled.mixing_, settled.model_.mixing)
    with pytest.raises(InvalidInput, match="polish is auto"):
        settled.partial_fit(drawn.rows)


def test_fourth_moments_are_kept_where_they_are_cheap() -> None:
    rng = np.random.default_rng(0)
    narrow, wide = (rng.exponential(size=(300, d)) for d in (5, 41))
    for rows, given, fourth in (
        (narrow, {}, True),
        (narrow, {"order": "third"}, False),
        (narrow, {"order": "third", "noise": "full"}, True),
        (wide, {}, False),
        (wide, {"sketch_columns": 12}, True),
        (wide, {"order": "both", "sketch_columns": 12}, True),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = MomentFactors(2, keep_statistics=True, **given).fit(rows)
        assert found.statistics_.foundation.fourth == fourth


def test_factors_of_noise_are_warned_of() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 5))
    with pytest.warns(UserWarning, match=r"\(order both\); ask for fewer factors, add rows"):
        MomentFactors(2).fit(rows)
    with pytest.warns(UserWarning, match=r"\(order third\); ask for fewer .*, set order to .both."):
        MomentFactors(2, order="third").fit(rows)
    drawn = factor_rows(20_000, 6, 2, noise=0.05, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MomentFactors(2).fit(drawn.rows)


def test_variances_that_are_set_are_warned_of() -> None:
    drawn = mixture_rows(3000, 6, 3, separation=6.0, variances="tied-diag", seed=1)
    estimator = MomentGaussianMixture(3, covariance_type="tied-diag")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.fit(drawn.rows)
    constant = np.full((3000, 1), 7.0)
    with pytest.warns(UserWarning, match="3 variances of 3 components") as found:
        estimator.fit(np.hstack([drawn.rows, constant]))
    assert found[0].filename == __file__


@pytest.mark.parametrize("wrong", [0, 2.5, "many", True])
def test_a_number_that_is_none_is_refused(wrong) -> None:
    rows = np.random.default_rng(0).normal(size=(50, 5))
    for estimator in (MomentGaussianMixture(wrong), MomentFactors(wrong)):
        with pytest.raises(InvalidInput, match="n_components"):
            estimator.fit(rows)
    with pytest.raises(NotIdentifiable, match="ask for 5 components"):
        MomentGaussianMixture(9).fit(rows)
    with pytest.raises(InvalidInput, match="all 50 rows of the pilot are equal"):
        MomentGaussianMixture(2).fit(np.ones((50, 3)))
