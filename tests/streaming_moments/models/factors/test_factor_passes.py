"""Passes over rows of independent factors: near the likelihood's optimum, exact in any order."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from streaming_moments.errors import BoundExceeded, ForeignStatistics
from streaming_moments.models.factors.independent_factors import FactorOptions, IndependentFactors
from streaming_moments.models.factors.passes import FactorReader, FactorSums, improved
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.models.rows import InMemory
from streaming_moments.statistics.vectors.pilot import foundation_of
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic.mixtures import FactorRows, amari_distance

ROWS = 6000
LAWS = {
    "exponential": lambda rng: rng.exponential(size=ROWS) - 1,
    "laplace": lambda rng: rng.laplace(size=ROWS) / np.sqrt(2),
    "uniform": lambda rng: rng.uniform(-np.sqrt(3), np.sqrt(3), ROWS),
    "normal": lambda rng: rng.normal(size=ROWS),
}


def drawn(laws, dimensions=8, noise=0.1, seed=0) -> FactorRows:
    rng = np.random.default_rng(seed)
    factors = np.stack([LAWS[law](rng) for law in laws], axis=1)
    mixing = rng.normal(size=(dimensions, len(laws)))
    root = noise * (np.eye(dimensions) if np.ndim(noise) == 0 else 1.0)
    rows = factors @ mixing.T + rng.normal(size=(ROWS, dimensions)) @ root
    return FactorRows(rows, mixing, factors)


def fitted(given: FactorRows, **options):
    foundation = foundation_of(given.rows[:2000], fourth=True, reach=4.0)
    statistics = foundation.of_vectors(VectorBatch.of(given.rows))
    k = given.mixing.shape[1]
    asked = FactorOptions(topics=k, weak="keep", **options)
    return IndependentFactors.fit(InMemory((statistics,)), asked), foundation


def polished(model, foundation, rows, passes="auto"):
    return passes_over(model, foundation, [VectorBatch(rows)], passes)


MIXED = ["exponential", "laplace", "uniform"]


@pytest.mark.parametrize("laws", [["exponential"] * 3, ["laplace"] * 3, ["uniform"] * 3, MIXED])
def test_passes_come_nearer_whatever_the_factors_are(laws) -> None:
    given = drawn(laws)
    model, foundation = fitted(given)
    better = polished(model, foundation, given.rows)
    errors = [amari_distance(given.mixing, one.unmixing) for one in (model, better)]
    assert errors[1] < 0.8 * errors[0]
    assert errors[1] < 0.011
    # passes that start at the truth end at the same place
    true = replace(model, mixing=given.mixing, unmixing=np.linalg.pinv(given.mixing).T)
    ideal = polished(true, foundation, given.rows)
    assert errors[1] < 1.05 * amari_distance(given.mixing, ideal.unmixing)
    np.testing.assert_allclose(better.unmixing.T @ better.mixing, np.eye(3), atol=1e-9)
    # rows are clipped to the radius of the grid
    read = foundation.grid.values(foundation.grid.quantised(given.rows)[0].astype(float))
    noise = (better.unmixing**2 * model.noise[:, None]).sum(axis=0)
    np.testing.assert_allclose(better.values(read).var(axis=0) - noise, 1.0, atol=0.01)
    np.testing.assert_allclose(better.skewness, model.skewness, atol=0.1)
    np.testing.assert_allclose(better.kurtosis, model.kurtosis, atol=0.3)
    np.testing.assert_allclose(better.skewness_error, model.skewness_error, rtol=0.02)
    np.testing.assert_allclose(better.kurtosis_error, model.kurtosis_error, rtol=0.02)
    assert f"{ROWS:,} records read" in better.described().sentence


def test_a_start_by_cumulants_that_do_not_tell_is_mended() -> None:
    given = drawn(["laplace"] * 3)
    model, foundation = fitted(given, order="third")
    assert amari_distance(given.mixing, model.unmixing) > 0.05
    better = polished(model, foundation, given.rows)
    assert amari_distance(given.mixing, better.unmixing) < 0.011
    assert model.weak
    assert not better.weak


def test_passes_come_nearer_in_noise_of_unknown_covariance() -> None:
    root = np.random.default_rng(9).normal(size=(12, 12)) / 6
    given = drawn(["exponential"] * 4, dimensions=12, noise=root, seed=2)
    model, foundation = fitted(given, noise="full")
    better = polished(model, foundation, given.rows)
    errors = [amari_distance(given.mixing, one.unmixing) for one in (model, better)]
    assert errors[1] < 0.6 * errors[0]


def test_kurtoses_of_both_signs_are_a_start_for_passes_in_noise_of_unknown_covariance() -> None:
    root = np.random.default_rng(7).normal(size=(12, 12)) / 6
    given = drawn([*MIXED, "exponential"], dimensions=12, noise=root)
    model, foundation = fitted(given, noise="full")
    assert "only passes (polish) remove the noise" in model.described().sentence
    better = polished(model, foundation, given.rows)
    assert "only passes" not in better.described().sentence
    errors = [amari_distance(given.mixing, one.unmixing) for one in (model, better)]
    assert errors[1] < 0.8 * errors[0]


def test_as_many_factors_as_dimensions_are_found() -> None:
    given = drawn([*MIXED, "exponential"], dimensions=4, noise=0.0)
    model, foundation = fitted(given)
    assert model.n_topics == model.dimension == 4
    assert "the fit assumes no noise" in model.described().sentence
    better = polished(model, foundation, given.rows)
    errors = [amari_distance(given.mixing, one.unmixing) for one in (model, better)]
    assert errors[1] < 0.012 < errors[0]


def test_normal_factors_that_no_likelihood_separates_stay_uncorrelated() -> None:
    given = drawn(["normal", "normal", "exponential"])
    model, foundation = fitted(given)
    better = polished(model, foundation, given.rows, passes=3)
    values = better.values(given.rows)
    noise = (better.unmixing.T * model.noise) @ better.unmixing
    np.testing.assert_allclose(np.cov(values.T) - noise, np.eye(3), atol=0.02)


def test_sums_are_the_same_however_rows_are_cut() -> None:
    given = drawn(MIXED)
    model, foundation = fitted(given)
    reader = FactorReader(model, foundation.grid)
    whole = reader.add(VectorBatch(given.rows), FactorSums.zero(model))
    order = np.random.default_rng(1).permutation(ROWS)
    cut = [VectorBatch(part) for part in np.split(given.rows[order], [1, 700, 701, 3333])]
    parts = [reader.add(one, FactorSums.zero(model)) for one in cut]
    together = reduce(FactorSums.add, parts)
    one_by_one = reduce(lambda total, batch: reader.add(batch, total), cut, FactorSums.zero(model))
    again = FactorSums.from_parts(*whole.parts())
    for other in (together, one_by_one, again):
        assert repr(other) == repr(whole)
        for name, array in whole.arrays.items():
            np.testing.assert_array_equal(getattr(other, name), array)
    assert whole.rows.sum(axis=1).tolist() == [ROWS] * 3
    np.testing.assert_array_equal(
        improved(model, together, foundation.grid).mixing,
        improved(model, whole, foundation.grid).mixing,
    )
    empty = improved(model, FactorSums.zero(model), foundation.grid)
    np.testing.assert_array_equal(empty.mixing, model.mixing)


def test_more_rows_than_a_sum_holds_and_other_rows_are_refused() -> None:
    given = drawn(MIXED)
    model, _ = fitted(given)
    with pytest.raises(BoundExceeded, match="records are more than the 68,719,476,736"):
        FactorSums.zero(model).counting((1 << 36) + 1, 0)
    other = foundation_of(given.rows[:, :5])
    with pytest.raises(ForeignStatistics, match="the model has 8 dimensions, but the grid has 5"):
        FactorReader(model, other.grid)
