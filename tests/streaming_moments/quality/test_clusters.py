"""Clusters of two mixtures: which is which, how far each moved, and the plane of their means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from streaming_moments.errors import InvalidInput
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.states import Clusters, states_of
from streaming_moments.quality.clusters import (
    cluster_move,
    compare_clusters,
    furthest_move,
    principal_plane,
)
from streaming_moments.quality.matching import KeptTopic, MatchingRule, numbered_like
from streaming_moments.quality.moves import with_moves


def clusters(means, variances=None, bars=None):
    means = np.asarray(means, dtype=float)
    given_bars = None if bars is None else np.asarray(bars, dtype=float)
    return Clusters(means, np.ones((len(means), 1)) if variances is None else variances, given_bars)


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10_000))
def test_clusters_are_found_again_in_any_order(k, d, seed):
    rng = np.random.default_rng(seed)
    means = 20 * np.arange(k)[:, None] + rng.normal(size=(k, d))
    order = rng.permutation(k)
    variances = rng.uniform(0.8, 1.25, size=(k, d))
    steps = rng.normal(size=(k, d))
    steps *= 0.3 / np.linalg.norm(steps, axis=1, keepdims=True)
    before = clusters(means, variances)
    after = clusters((means + steps)[order], variances[order])
    found = compare_clusters(before, after)
    assert [(pair.before, pair.after) for pair in found.kept] == [
        (one, int(np.flatnonzero(order == one)[0])) for one in range(k)
    ]
    assert found.gone == found.born == ()
    for pair in found.kept:
        move = cluster_move(before, after, pair)
        assert move.length == pytest.approx(0.3)
        assert move.spreads == pytest.approx(
            np.linalg.norm(steps[pair.before] / np.sqrt(variances[pair.before]))
        )
        assert np.isnan(move.bars)
    furthest = max(cluster_move(before, after, pair).spreads for pair in found.kept)
    assert furthest_move(before, after) == pytest.approx(furthest)


@pytest.mark.parametrize("apart", [0.0, 0.7, 2.5, 9.0])
def test_their_distance_is_the_total_variation_of_normal_distributions(apart):
    one, other = norm(0.0, 1.5), norm(1.5 * apart, 1.5)
    exact, _ = quad(
        lambda x: abs(one.pdf(x) - other.pdf(x)) / 2, -15, 30, points=[0.75 * apart], limit=200
    )
    variances = np.full((1, 1), 1.5**2)
    found = compare_clusters(
        clusters([[0.0, 3.0]], variances),
        clusters([[1.5 * apart, 3.0]], variances),
        MatchingRule(furthest=1.0),
    )
    assert found.kept[0].distance == pytest.approx(exact, abs=1e-6)


def test_what_is_further_is_gone_and_new_unless_within_its_error_bar():
    before, after = [[0.0, 0.0], [7.0, 0.0]], [[0.0, 4.0], [7.0, 0.2]]
    found = compare_clusters(clusters(before), clusters(after))
    assert [(pair.before, pair.after) for pair in found.kept] == [(1, 1)]
    assert [lone.topic for lone in found.gone] == [lone.topic for lone in found.born] == [0]
    assert furthest_move(clusters(before), clusters(after)) == pytest.approx(4.0)
    noisy = compare_clusters(clusters(before), clusters(after, bars=[4.5, 0.1]))
    assert [(pair.before, pair.after) for pair in noisy.kept] == [(0, 0), (1, 1)]


def test_a_cluster_that_is_nearest_by_far_has_moved_however_far_it_did():
    before, after = [[0.0, 0.0], [30.0, 0.0]], [[8.0, 8.0], [30.0, 0.2]]
    found = compare_clusters(clusters(before), clusters(after))
    assert [(pair.before, pair.after) for pair in found.kept] == [(0, 0), (1, 1)]
    assert found.kept[0].distance == pytest.approx(1.0)
    # one more half way makes it doubtful
    found = compare_clusters(clusters([*before, [12.0, 0.0]]), clusters(after))
    assert [(pair.before, pair.after) for pair in found.kept] == [(1, 1)]


def test_more_or_fewer_clusters_are_new_or_gone():
    few, many = clusters([[0.0], [9.0]]), clusters([[9.1], [50.0], [0.1]])
    assert [lone.topic for lone in compare_clusters(few, many).born] == [1]
    assert [lone.topic for lone in compare_clusters(many, few).gone] == [1]
    with pytest.raises(InvalidInput, match="of 1 and of 2 dimensions"):
        compare_clusters(few, clusters([[0.0, 0.0]]))


def mixture(means, bars=None):
    means = np.asarray(means, dtype=float)
    k = len(means)
    weights = np.arange(1.0, k + 1) / np.arange(1.0, k + 1).sum()
    variances = np.linspace(0.9, 1.1, k)[:, None]
    return GaussianMixture(means, weights, variances, bars=bars, weight_bars=weights / 50)


def test_a_mixture_keeps_the_numbers_it_had_and_says_what_moved():
    before = mixture([[0.0, 0.0], [20.0, 0.0]], np.array([0.4, 0.1]))
    turned = mixture([[20.0, 0.2], [0.3, 0.0]], np.array([0.1, 0.2]))
    matching = compare_clusters(states_of(before), states_of(turned))
    after, matching = numbered_like(turned, matching)
    np.testing.assert_array_equal(after.means, turned.means[::-1])
    for name in ("weights", "variances", "bars", "weight_bars"):
        np.testing.assert_array_equal(getattr(after, name), getattr(turned, name)[::-1])
    # 0.3 away with a bar of 0.4, and 0.2 with one of 0.1
    assert [pair.moved for pair in with_moves(matching, before, after).kept] == [False, True]
    move = cluster_move(states_of(before), states_of(after), KeptTopic(1, 1, 0.0))
    assert move.bars == pytest.approx(2.0)
    plain = [GaussianMixture(one.means, one.weights, one.variances) for one in (before, after)]
    assert with_moves(matching, *plain) is matching


@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 10_000))
def test_the_plane_keeps_what_lies_in_two_dimensions(k, d, seed):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :2]
    means = 3 * rng.normal(size=(k, turn.shape[1])) @ turn.T + rng.normal(size=d)
    weights = rng.dirichlet(np.full(k, 2.0))
    plane = principal_plane(means, weights)
    grams = plane.axes.T @ plane.axes
    np.testing.assert_allclose(grams, np.diag([1.0, float(d > 1)]), atol=1e-9)
    places = plane.places(means)
    np.testing.assert_allclose(weights @ places, 0, atol=1e-9)

    def distances(points):
        return np.linalg.norm(points[:, None] - points, axis=2)

    np.testing.assert_allclose(distances(places), distances(means), atol=1e-8)
    assert plane.shares.sum() == pytest.approx(1.0 if k > 1 else 0.0)
    assert plane.shares[0] >= plane.shares[1] >= 0


def test_an_ellipse_is_one_standard_deviation_of_the_rows():
    rng = np.random.default_rng(0)
    means, weights = rng.normal(size=(3, 5)) * 4, np.array([0.5, 0.3, 0.2])
    variances = rng.uniform(0.2, 4, size=(3, 5))
    plane = principal_plane(means, weights)
    rows = rng.normal(size=(200_000, 5)) * np.sqrt(variances[1])
    seen = np.cov((rows @ plane.axes).T)
    long, thin, angle = plane.ellipses(variances)[1]
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    np.testing.assert_allclose(turn @ np.diag([long**2, thin**2]) @ turn.T, seen, atol=0.03)
    circles = plane.ellipses(variances[:, :1])
    np.testing.assert_allclose(circles[:, :2], np.sqrt(variances[:, :1]) * [[1, 1]])
    assert (circles[:, 2] == 0).all()
