"""Independent factors: exact cumulants give their columns, rows without skew or kurtosis do not."""

from dataclasses import replace

import numpy as np
import pytest

from streaming_moments.decompositions.vectors.central_moments import GivenMoments
from streaming_moments.decompositions.vectors.factors import (
    independent_factors,
    require_significant,
)
from streaming_moments.errors import InvalidInput, NotIdentifiable
from streaming_moments.synthetic.mixtures import amari_distance, factor_rows

D, K = 7, 3
SKEWNESS = np.array([2.0, -1.5, 0.9])
KURTOSIS = np.array([6.0, 4.0, 2.5])


def exact_moments(noise: np.ndarray, basis: np.ndarray) -> tuple[GivenMoments, np.ndarray]:
    """Of `A h + noise`: cumulants of the factors, and what a normal law of that covariance has."""
    A = np.random.default_rng(0).normal(size=(D, K))
    C = A @ A.T + noise
    P = basis.T @ A
    S = basis.T @ C @ basis
    third = np.einsum("aj,bj,cj,j->abc", P, P, P, SKEWNESS)
    pairs = np.multiply.outer(S, S)
    fourth = pairs + pairs.transpose(0, 2, 1, 3) + pairs.transpose(0, 2, 3, 1)
    fourth = fourth + np.einsum("aj,bj,cj,dj,j->abcd", P, P, P, P, KURTOSIS)
    norms = np.zeros(basis.shape[1])
    return GivenMoments(10**6, np.zeros(D), C, basis, S, third, norms, None, fourth), A


def bare_of(moments: GivenMoments) -> GivenMoments:
    return replace(moments, squares=None, fourth=None)


def noise_of(kind: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if kind == "spherical":
        return 0.3 * np.eye(D)
    if kind == "diag":
        return np.diag(rng.uniform(0.2, 1.0, D))
    root = rng.normal(size=(D, D))
    return 0.2 * root @ root.T


@pytest.mark.parametrize("noise", ["spherical", "diag", "full"])
@pytest.mark.parametrize("order", ["third", "fourth"])
def test_exact_cumulants_give_the_columns(order: str, noise: str) -> None:
    moments, A = exact_moments(noise_of(noise), np.eye(D))
    found = independent_factors(moments, K, order, noise)
    assert amari_distance(A, found.unmixing) < 1e-7
    np.testing.assert_allclose(found.unmixing.T @ found.mixing, np.eye(K), atol=1e-7)
    cosines = (
        A.T
        @ found.mixing
        / np.outer(np.linalg.norm(A, axis=0), np.linalg.norm(found.mixing, axis=0))
    )
    places = np.abs(cosines).argmax(axis=0)
    np.testing.assert_allclose(np.abs(cosines).max(axis=0), 1.0, atol=1e-8)
    if noise != "full":
        # each factor is turned to be skewed to the right
        signs = np.sign(SKEWNESS[places])
        np.testing.assert_allclose(found.mixing, A[:, places] * signs, atol=1e-6)
        np.testing.assert_allclose(found.skewness, np.abs(SKEWNESS)[places], atol=1e-6)
        np.testing.assert_allclose(found.kurtosis, KURTOSIS[places], atol=1e-6)


def test_rows_with_noise_that_is_known() -> None:
    drawn = factor_rows(20_000, 20, 8, "exponential", noise=1.0, seed=2)
    moments = GivenMoments.of_rows(drawn.rows, np.eye(20))
    assert amari_distance(drawn.mixing, independent_factors(moments, 8).unmixing) < 0.02  # .0051
    found = independent_factors(moments, 8, "fourth")
    assert amari_distance(drawn.mixing, found.unmixing) < 0.03  # .0094
    np.testing.assert_allclose(found.skewness, 2.0, atol=0.3)


def test_rows_with_noise_of_unknown_covariance() -> None:
    root = np.random.default_rng(3).normal(size=(12, 12))
    drawn = factor_rows(20_000, 12, 4, "exponential", noise=root @ root.T / 4, seed=3)
    moments = GivenMoments.of_rows(drawn.rows, np.eye(12))
    blind = amari_distance(drawn.mixing, independent_factors(moments, 4).unmixing)
    known = amari_distance(drawn.mixing, independent_factors(moments, 4, noise="full").unmixing)
    assert known < 0.04
    assert known < blind / 2


def test_factors_without_a_cumulant_to_stand_on_are_refused() -> None:
    laplace = factor_rows(20_000, 8, 3, "laplace", noise=0.1, seed=4)
    moments = GivenMoments.of_rows(laplace.rows, np.eye(8))
    with pytest.raises(NotIdentifiable, match=r"no skewness .* standard error of .* order fourth"):
        require_significant(independent_factors(bare_of(moments), 3), "third")
    found = independent_factors(moments, 3, "fourth")
    assert amari_distance(laplace.mixing, found.unmixing) < 0.03
    require_significant(found, "fourth")
    normal = factor_rows(20_000, 8, 3, "normal", noise=0.1, seed=5)
    for order in ("third", "fourth"):
        found = independent_factors(GivenMoments.of_rows(normal.rows, np.eye(8)), 3, order)
        with pytest.raises(NotIdentifiable, match="of 3 factors have no"):
            require_significant(found, order)


def test_what_is_asked_for_wrongly_is_named() -> None:
    moments, _ = exact_moments(noise_of("spherical"), np.eye(D))
    bare = bare_of(moments)
    for asked in ({"order": "fourth"}, {"noise": "full"}):
        with pytest.raises(InvalidInput, match="needs the statistic fourth"):
            independent_factors(bare, K, **asked)
    with pytest.raises(InvalidInput, match='order is "second"'):
        independent_factors(moments, K, "second")
    with pytest.raises(InvalidInput, match='noise is "none"'):
        independent_factors(moments, K, noise="none")
    with pytest.raises(NotIdentifiable, match="rows of 7 numbers .* 7 factors at most"):
        independent_factors(moments, 8)


@pytest.mark.parametrize("noise", ["spherical", "diag"])
def test_as_many_factors_as_dimensions_leave_no_noise(noise: str) -> None:
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=(5_000, 4)) @ rng.normal(size=(4, 4))
    found = independent_factors(GivenMoments.of_rows(rows, np.eye(4)), 4, "third", noise)
    assert not found.noise.any()
    np.testing.assert_allclose(np.cov(rows.T, ddof=0), found.mixing @ found.mixing.T, atol=1e-9)
    np.testing.assert_allclose(found.skewness, 2.0, atol=0.4)
