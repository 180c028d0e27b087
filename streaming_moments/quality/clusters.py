"""Clusters: match components of a mixture to those of an earlier one, and measure their moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.states import Clusters
from streaming_moments.quality.matching import KeptTopic, MatchingRule, TopicMatching, paired

# an axis shorter than this share of the largest coordinate of a mean is a rounding error
_FLAT = 1e-12


@dataclass(frozen=True)
class ClusterMove:
    """Distance between the means of the same component in two models, in three units.

    length : in the unit of the rows
    spreads : in standard deviations of the component along the move, averaged over both models
    bars : in error bars of the mean, the larger one of both models; NaN if neither model has error
        bars
    """

    length: float
    spreads: float
    bars: float


@dataclass(frozen=True, eq=False)
class Plane:
    """Plane along the two directions in which the means of components vary most.

    centre : (d,) float64, mean of all rows
    axes : (d, 2) float64, orthonormal; the means vary most along the first. The second is zero if d
        is 1
    shares : (2,) float64, share of each axis in the variance between the means
    """

    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    shares: NDArray[np.float64]

    def places(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (k, 2) coordinates of the means in the plane."""
        return np.asarray((means - self.centre) @ self.axes)

    def ellipses(self, variances: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the ellipse of one standard deviation of each component in the plane, as (k, 3).

        An ellipse is given by half its longer axis, half its shorter axis, and the angle in radians
        from the first axis of the plane to its longer axis. Variances are (k, 1) or (k, d) float64,
        one for all coordinates, or one for each.
        """
        each = np.broadcast_to(variances, (len(variances), len(self.axes)))
        inside = np.einsum("da,kd,db->kab", self.axes, each, self.axes, optimize=True)
        values, vectors = np.linalg.eigh(inside)
        longer = vectors[:, :, 1]
        angles = np.where(
            np.isclose(values[:, 0], values[:, 1]), 0.0, np.arctan2(longer[:, 1], longer[:, 0])
        )
        lengths = np.sqrt(np.maximum(values[:, ::-1], 0.0))
        return np.column_stack([lengths, angles])


def compare_clusters(
    before: Clusters, after: Clusters, rule: MatchingRule = MatchingRule()
) -> TopicMatching:
    """Match each component of a mixture to those of a later one.

    The distance of two components is the total variation between normal distributions with their
    means and the mean of their variances: `2 Phi(D / 2) - 1` for means D standard deviations apart,
    exact for equal variances. Two components match in one of three cases:

    - this distance is at most `rule.furthest`;
    - their means are no further apart than their error bar;
    - their means are no further apart than half of the distance from either to any other mean of
      its own model. This recognises a component that moved far.

    Unlike for topics, splits and merges are not considered.

    Raises InvalidInput if the models have different numbers of dimensions.

    Examples
    --------
    >>> before = Clusters(np.array([[0.0, 0.0], [9.0, 0.0]]), np.ones((2, 1)))
    >>> after = Clusters(np.array([[9.0, 1.0], [0.0, 5.0]]), np.ones((2, 1)))
    >>> matching = compare_clusters(before, after)
    >>> [(pair.before, pair.after, round(pair.distance, 2)) for pair in matching.kept]
    [(1, 0, 0.38)]
    >>> [lone.topic for lone in matching.gone], [lone.topic for lone in matching.born]
    ([0], [1])
    """
    distances = _variations(_apart(before, after))
    lengths = np.array([np.linalg.norm(after.means - mean, axis=1) for mean in before.means])
    within = np.maximum(_bars(before)[:, None], _bars(after))
    alone = np.minimum(_lone(before)[:, None], _lone(after)) / 2
    return paired(distances, (distances <= rule.furthest) | (lengths <= np.maximum(within, alone)))


def furthest_move(before: Clusters, after: Clusters) -> float:
    """Return the largest distance between matched means, in standard deviations of the component.

    Components are matched as in `compare_clusters`, but at any distance. Raises InvalidInput if the
    models have different numbers of dimensions.

    Examples
    --------
    >>> before = Clusters(np.array([[0.0, 0.0], [9.0, 0.0]]), np.ones((2, 1)))
    >>> furthest_move(before, Clusters(np.array([[9.0, 1.0], [0.0, 5.0]]), np.ones((2, 1))))
    5.0
    """
    apart = _apart(before, after)
    pairs = paired(_variations(apart), np.ones(apart.shape, dtype=np.bool_)).kept
    return max(float(apart[pair.before, pair.after]) for pair in pairs)


def cluster_move(before: Clusters, after: Clusters, pair: KeptTopic) -> ClusterMove:
    """Return how far a matched component moved.

    The error bar is the larger one of the error bars of the mean in both models. If the later model
    was fitted to the same rows and some more, the difference of the two means has no larger error
    than the earlier mean.
    """
    step = after.means[pair.after] - before.means[pair.before]
    variances = (before.variances[pair.before] + after.variances[pair.after]) / 2
    length = float(np.linalg.norm(step))
    bar = max(_bars(before)[pair.before], _bars(after)[pair.after])
    bars = nan if bar < 0 else 0.0 if not length else length / bar if bar else inf
    return ClusterMove(length, float(_spreads(step[None], variances)[0]), bars)


def principal_plane(means: NDArray[np.float64], weights: NDArray[np.float64]) -> Plane:
    """Return the plane of the two leading principal directions of the weighted means of components.

    If the means lie on a line or a point, coordinate axes replace the missing directions. The
    largest entry of each axis is positive, so that maps of successive models do not flip. Means are
    (k, d) float64, weights (k,) float64 with sum 1.

    Examples
    --------
    >>> plane = principal_plane(np.array([[0.0, 0, 4], [0, 1, 0], [0, -1, 0]]), np.full(3, 1 / 3))
    >>> plane.axes.T.round(6) + 0.0, plane.shares.round(2)
    (array([[0., 0., 1.],
           [0., 1., 0.]]), array([0.84, 0.16]))
    """
    centre, d = weights @ means, means.shape[1]
    apart = np.sqrt(weights)[:, None] * (means - centre)
    _, lengths, rows = np.linalg.svd(apart, full_matrices=False)
    least = _FLAT * np.abs(means).max()
    found = [row for row, length in zip(rows, lengths, strict=True) if length > least]
    axes = found[:2]
    for coordinate in np.eye(min(d, 2 + len(axes)), d):
        rest = coordinate - sum(((axis @ coordinate) * axis for axis in axes), np.zeros(d))
        if len(axes) < 2 and np.linalg.norm(rest) > 0.1:
            axes.append(rest / np.linalg.norm(rest))
    signed = [axis * (-1 if axis[np.abs(axis).argmax()] < 0 else 1) for axis in axes]
    held = np.zeros((d, 2))
    held[:, : len(signed)] = np.array(signed).T
    shares = np.zeros(2)
    shares[: len(found[:2])] = np.square(lengths[: len(found[:2])])
    return Plane(centre, held, shares / np.square(lengths).sum() if found else shares)


def _lone(clusters: Clusters) -> NDArray[np.float64]:
    """Return the (k,) distances of means to the nearest other mean; infinite for a single mean."""
    lengths = np.array([np.linalg.norm(clusters.means - mean, axis=1) for mean in clusters.means])
    np.fill_diagonal(lengths, np.inf)
    return np.asarray(lengths.min(axis=1))


def _apart(before: Clusters, after: Clusters) -> NDArray[np.float64]:
    """Return the (k, m) distances between the means of two models, in standard deviations.

    For each pair of components, the variance is the mean of both variances.
    """
    if before.means.shape[1] != after.means.shape[1]:
        raise InvalidInput(
            f"clusters of {before.means.shape[1]} and of {after.means.shape[1]} dimensions cannot "
            "be compared; compare models of one store"
        )
    pairs = zip(before.means, before.variances, strict=True)
    each = [_spreads(after.means - mean, (own + after.variances) / 2) for mean, own in pairs]
    return np.array(each)


def _variations(apart: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the total variation between two normal distributions of equal variance.

    `apart` is the distance of their means in standard deviations.
    """
    from scipy.special import erf

    return np.asarray(erf(apart / np.sqrt(8)))


def _spreads(steps: NDArray[np.float64], variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (n,) lengths of (n, d) steps, in standard deviations along each step."""
    return np.asarray(np.sqrt((np.square(steps) / variances).sum(axis=1)))


def _bars(clusters: Clusters) -> NDArray[np.float64]:
    """Return (k,) error bars; for unknown ones a negative number, below any distance."""
    return np.full(clusters.number, -1.0) if clusters.bars is None else clusters.bars
