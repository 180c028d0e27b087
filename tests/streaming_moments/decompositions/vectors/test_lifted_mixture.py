"""Mixtures of Gaussians from moments: exact ones give the parameters, drawn ones err as stated."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.decompositions.vectors.central_moments import GivenMoments, crossed
from streaming_moments.decompositions.vectors.lifted_mixture import (
    COVARIANCES,
    mixture_components,
)
from streaming_moments.decompositions.vectors.signal import signal_directions
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.synthetic.mixtures import MixtureRows, matched_means, mixture_rows


def planted(covariance: str, d: int = 9, k: int = 4, seed: int = 0) -> MixtureRows:
    drawn = mixture_rows(1, d, k, variances=covariance, uneven=3.0, seed=seed)
    # far from the origin, which no formula may depend on
    means = drawn.means + 5.0
    return MixtureRows(drawn.rows, drawn.labels, means, drawn.weights, drawn.variances)


def exact_moments(truth: MixtureRows, basis: np.ndarray, rows: int = 10**9) -> GivenMoments:
    """Of the law itself: each component adds its mean, and its variances crossed with it."""
    w, mean = truth.weights, truth.weights @ truth.means
    centred = truth.means - mean
    d, s = basis.shape
    C = np.diag(w @ truth.variances) + (centred.T * w) @ centred
    third, norms = np.zeros((s, s, s)), np.zeros(s)
    squares = np.zeros((d, d))
    for weight, c, v in zip(w, centred, truth.variances, strict=True):
        y = basis.T @ c
        third += weight * np.multiply.outer(np.multiply.outer(y, y), y)
        third += weight * crossed(y, (basis.T * v) @ basis)
        norms += weight * (y * (c @ c + v.sum()) + 2 * basis.T @ (v * c))
        squares += weight * (np.outer(c, c**2 + v) + np.diag(2 * v * c))
    return GivenMoments(rows, mean, C, basis, basis.T @ C @ basis, third, norms, squares)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_exact_moments_give_the_planted_mixture(covariance: str) -> None:
    truth = planted(covariance)
    basis = np.random.default_rng(1).normal(size=(9, 9))
    found = mixture_components(exact_moments(truth, basis), 4, covariance)
    errors, places = matched_means(found.means, truth.means)
    assert errors.max() < 1e-8
    np.testing.assert_allclose(found.weights[places], truth.weights, atol=1e-8)
    variances = np.broadcast_to(found.variances, truth.variances.shape)
    np.testing.assert_allclose(variances[places], truth.variances, atol=1e-8)
    assert (np.diff(found.weights) <= 1e-9).all()
    assert not found.clipped


def test_a_basis_of_the_signal_is_enough() -> None:
    truth = planted("spherical")
    centred = truth.means - truth.weights @ truth.means
    signal = np.linalg.svd(centred)[2][:3].T
    basis = np.hstack([signal, np.random.default_rng(0).normal(size=(9, 2))])
    found = mixture_components(exact_moments(truth, basis), 4)
    assert matched_means(found.means, truth.means)[0].max() < 1e-8


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_one_component_is_the_mean_and_the_variance(covariance: str) -> None:
    truth = planted(covariance, k=1)
    found = mixture_components(exact_moments(truth, np.eye(9)), 1, covariance)
    np.testing.assert_allclose(found.means[0], truth.means[0], atol=1e-12)
    assert found.weights.tolist() == [1.0]
    variances = np.broadcast_to(found.variances, truth.variances.shape)
    np.testing.assert_allclose(variances, truth.variances, atol=1e-12)


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("k", [1, 4])
def test_the_spectrum_counts_directions(covariance: str, k: int) -> None:
    truth = planted(covariance, k=k)
    moments = exact_moments(truth, np.eye(9), rows=20_000)
    assert signal_directions(moments, diagonal=covariance.endswith("diag")) == k - 1


def error_of(drawn: MixtureRows, covariance: str) -> float:
    # the leading directions of a pilot and two random ones, as a basis of 1.5 columns a component
    pilot = drawn.rows[:2000]
    axes = np.linalg.svd(pilot - pilot.mean(axis=0), full_matrices=False)[2][:15].T
    basis = np.hstack([axes, np.random.default_rng(0).normal(size=(drawn.rows.shape[1], 2))])
    if covariance.endswith("diag"):
        basis = np.eye(drawn.rows.shape[1])
    moments = GivenMoments.of_rows(drawn.rows, basis)
    found = mixture_components(moments, len(drawn.weights), covariance)
    return float(matched_means(found.means, drawn.means)[0].mean())


def test_drawn_rows_err_as_much_as_the_prototypes() -> None:
    drawn = mixture_rows(20_000, 50, 10, separation=3.0, seed=3)
    assert error_of(drawn, "tied-spherical") < 0.40  # .32
    assert error_of(drawn, "spherical") < 0.42  # .32
    assert signal_directions(GivenMoments.of_rows(drawn.rows, np.eye(50)[:, :20])) == 9


@pytest.mark.parametrize(("number", "size"), [(30, 40), (60, 40), (80, 160)])
def test_fewer_rows_than_leave_directions_to_noise_tell_no_more_apart(number, size):
    noise = np.random.default_rng(number).normal(size=(number, size))
    drawn = mixture_rows(number, size, 4, separation=6.0, seed=number)
    found = [
        signal_directions(GivenMoments.of_rows(rows, np.eye(size)[:, :39]))
        for rows in (noise, drawn.rows)
    ]
    assert found == [0, 3]


def test_variances_that_differ_need_their_correction() -> None:
    drawn = mixture_rows(20_000, 50, 10, variances="spherical", seed=4)
    assert error_of(drawn, "spherical") < 0.5
    assert error_of(drawn, "tied-spherical") > 0.5


def test_what_rows_do_not_hold_is_refused() -> None:
    rng = np.random.default_rng(0)
    flat = GivenMoments.of_rows(np.ones((10, 3)), np.eye(3))
    with pytest.raises(NotIdentifiable, match="all rows are equal"):
        mixture_components(flat, 2)
    assert signal_directions(flat) == 0
    narrow = GivenMoments.of_rows(rng.normal(size=(50, 3)), np.eye(3))
    with pytest.raises(NotIdentifiable, match="rows of 3 numbers have at most 2 directions"):
        mixture_components(narrow, 4)
    line = GivenMoments.of_rows(np.outer(rng.normal(size=50), [1.0, 2, 3, 4]), np.eye(4))
    with pytest.raises(NotIdentifiable, match=r"2 directions .* vary in 1 .* 2 components"):
        mixture_components(line, 3)
    bare = GivenMoments(*list(vars(narrow).values())[:7])
    with pytest.raises(InvalidInput, match="needs the statistic squares"):
        mixture_components(bare, 2, "diag")
    with pytest.raises(InvalidInput, match='covariance of type "full"'):
        mixture_components(narrow, 2, "full")


@pytest.mark.parametrize("covariance", ["tied-diag", "diag"])
def test_dependent_columns_have_their_noise(covariance: str) -> None:
    drawn = mixture_rows(5000, 6, 3, separation=6.0, variances=covariance, seed=1)
    for of_others in (drawn.rows[:, :1], drawn.rows[:, :2].sum(axis=1, keepdims=True)):
        moments = GivenMoments.of_rows(np.hstack([drawn.rows, of_others]), np.eye(7))
        # as of rows of a grid: less the variance of its rounding, and so not positive
        rounding = np.diag(np.full(7, 1 / 12))
        moments = replace(moments, covariance=moments.covariance - rounding)
        found = mixture_components(moments, 3, covariance)
        assert matched_means(found.means[:, :6], drawn.means)[0].max() < 1.5
        assert signal_directions(moments, diagonal=True) >= 2


@pytest.mark.parametrize("covariance", ["tied-diag", "diag"])
def test_more_than_covariances_tell_from_noise_by_coordinate_is_refused(covariance: str) -> None:
    moments = exact_moments(planted(covariance, d=4, k=3), np.eye(4))
    with pytest.raises(
        NotIdentifiable, match=r"of 4 coordinates identify at most 1\. Ask for at most 2 components"
    ):
        mixture_components(moments, 3, covariance)
    assert signal_directions(moments, diagonal=True) == 1
    # a constant column tells nothing
    wide = mixture_rows(500, 5, 3, variances=covariance, seed=1).rows
    wide[:, 4] = 1.0
    moments = GivenMoments.of_rows(wide, np.eye(5))
    with pytest.raises(NotIdentifiable, match=r"identify at most 1\. Ask"):
        mixture_components(moments, 3, covariance)
    assert signal_directions(moments, diagonal=True) <= 1


def test_variances_that_do_not_settle_are_refused() -> None:
    drawn = mixture_rows(1000, 8, 5, separation=2.0, variances="diag", seed=2)
    with pytest.raises(NotIdentifiable, match="did not converge in 60 rounds; ask for fewer"):
        mixture_components(GivenMoments.of_rows(drawn.rows, np.eye(8)), 5, "diag")


def test_constant_columns_change_nothing() -> None:
    drawn = mixture_rows(5000, 8, 3, separation=5.0, seed=5)
    padded = np.hstack([drawn.rows, np.full((5000, 2), 7.0)])
    for covariance in ("tied-diag", "spherical"):
        found = mixture_components(GivenMoments.of_rows(padded, np.eye(10)), 3, covariance)
        errors, _ = matched_means(found.means[:, :8], drawn.means)
        assert errors.max() < 0.5
        np.testing.assert_allclose(found.means[:, 8:], 7.0, atol=1e-6)
