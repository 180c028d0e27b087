"""Second start of a Gaussian mixture, from a pilot of its rows, used if rows are more likely."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.mixtures.gaussian_mixture import PILOT, GaussianMixture
from streaming_moments.models.mixtures.matching import matched_order
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.statistics.vectors.grid import Grid

if TYPE_CHECKING:
    import scipy.cluster.vq as vq
else:
    vq = LazyModule("scipy.cluster.vq")

ROWS = 4000
"""Rows of the pilot, and as many more by which starts are compared."""
_STARTS = 10
_KEPT = 3
_CANDIDATES = 5  # clusters whose split is tried before the search for one ends
_STEPS = 10  # of K-means after a split, and after a centre is taken away
_LESS = 1 - 1e-4  # share of the distances that a move leaves at most
_PASSES = 20
_FEWEST = 2.0  # rows of the pilot that a component has at least
_ERRORS = 2.0  # standard errors of the gain in log-likelihood above which the pilot starts
_GAIN = 1e-3  # nats a row that it gains at least: less is another rounding of the same optimum


def pilot_of(rows: NDArray[Any], seed: int) -> NDArray[Any]:
    """At most 8,000 of (n, d) rows, drawn at random and in random order."""
    drawn = np.random.default_rng(seed).permutation(len(rows))
    return np.asarray(rows[drawn[: 2 * ROWS]])


def best_start(
    model: GaussianMixture | None, pilot: NDArray[Any], grid: Grid, blank: GaussianMixture
) -> GaussianMixture:
    """The mixture from which passes over all rows start.

    K-means (k-means++, ten starts) on half of the pilot; the three nearest starts then split wide
    clusters in exchange for centres that are hardly needed, and passes over that half follow. The
    best of them, by the other half, is used if it makes the other half more
    likely than `model` does after as many passes: by two standard errors, and a thousandth of a
    nat a row.

    Parameters
    ----------
    model : GaussianMixture, optional
        Fit by moments; None if these identify fewer components.
    pilot : (m, d) array
        Rows, in random order.
    grid : Grid
        Grid of the statistics of the fit.
    blank : GaussianMixture
        Number of components, kind of variances, and facts about the rows; its `n_topics` means are
        replaced.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.permutation(rng.normal(size=(600, 1)) + np.repeat([[0], [8], [16]], 200, 0))
    >>> means, weights = np.zeros((3, 1)), np.full(3, 1 / 3)
    >>> blank = GaussianMixture(means, weights, np.ones((3, 1)))
    >>> found = best_start(None, rows, Grid(np.zeros(1), step=0.05, radius=800), blank)
    >>> found.start, np.sort(found.means.ravel()).round(0) + 0.0
    ('pilot', array([ 0.,  8., 16.]))
    """
    half = max(blank.n_topics, (len(pilot) + 1) // 2)
    train, held_out = pilot[:half], pilot[half:]
    tried = [polished(one, [train], grid, _PASSES) for one in _clustered(train, blank)]
    compared = held_out if len(held_out) else train
    other = max(tried, key=lambda one: float(one.log_likelihoods(compared).mean()))
    other = replace(other, polishing=None)
    if model is None:
        return other
    if not len(held_out):
        return model
    near = polished(model, [train], grid, _PASSES)
    strays = near.weights * len(train) < _FEWEST
    if strays.any():
        model = _replaced(model, near, strays, other)
        near = polished(model, [train], grid, _PASSES)
    gains = other.log_likelihoods(held_out) - near.log_likelihoods(held_out)
    noise = gains.std() / np.sqrt(gains.size)
    return other if gains.mean() > max(_GAIN, _ERRORS * noise) else model


def better_start(model: GaussianMixture, rows: NDArray[Any], grid: Grid) -> GaussianMixture:
    """The start of passes that begin with a stored fit, in its order of components.

    As `best_start`, with (n, d) rows drawn from the records. Error bars are those of the fit, so
    a start from the pilot has none.
    """
    if len(rows) <= model.n_topics:
        return model
    pilot = pilot_of(rows, seed=0)
    blank = replace(model, bars=None, weight_bars=None, spectrum=np.empty(0), negative=0)
    found = best_start(model, pilot, grid, blank)
    if found.start == model.start:
        return found
    order = matched_order(model.means, found.means)
    means, weights, variances = (
        one[order] for one in (found.means, found.weights, found.variances)
    )
    return replace(found, means=means, weights=weights, variances=variances)


def _replaced(
    model: GaussianMixture,
    near: GaussianMixture,
    strays: NDArray[np.bool_],
    other: GaussianMixture,
) -> GaussianMixture:
    """Fit by moments whose components without rows begin at components of the other start.

    At those that are furthest from all components with rows, one after another.
    """
    means, variances, weights = (
        one.copy() for one in (near.means, near.variances, np.maximum(near.weights, 1e-12))
    )
    held = means[~strays]
    for stray in np.flatnonzero(strays).tolist():
        apart = np.linalg.norm(other.means[:, None] - held, axis=2).min(axis=1)
        chosen = int(apart.argmax())
        means[stray], variances[stray] = other.means[chosen], other.variances[chosen]
        weights[stray] = other.weights[chosen]
        held = np.vstack([held, means[stray]])
    return replace(model, means=means, variances=variances, weights=weights / weights.sum())


def _clustered(rows: NDArray[Any], blank: GaussianMixture) -> list[GaussianMixture]:
    """Mixtures of the clusters of K-means with the least distances, after moves of centres."""
    x, k = rows.astype(np.float64), blank.n_topics
    tried = []
    for seed in range(_STARTS):
        centres, labels = vq.kmeans2(x, k, minit="++", seed=seed, missing="warn")
        tried.append((_spread(x, centres, labels), seed, centres, labels))
    best = sorted(tried, key=lambda one: one[:2])[:_KEPT]
    return [_of_clusters(x, *_moved(x, centres, labels), blank) for _, _, centres, labels in best]


def _moved(
    x: NDArray[np.float64], centres: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Clusters after splits of wide ones, each in exchange for a centre that is hardly needed.

    A split stays if the rows are then nearer to their centres.
    """
    k, before = len(centres), _spread(x, centres, labels)
    moves = 0
    while k > 1 and moves < 2 * k:
        moves += 1
        for chosen, apart in _widest(x, centres, labels):
            split = np.vstack([centres, centres[chosen] + apart])
            split[chosen] -= apart
            split, parts = vq.kmeans2(x, split, iter=_STEPS, minit="matrix", missing="warn")
            fewer = np.delete(split, _least_needed(x, split, parts), axis=0)
            fewer, parts = vq.kmeans2(x, fewer, iter=_STEPS, minit="matrix", missing="warn")
            if (found := _spread(x, fewer, parts)) < _LESS * before:
                centres, labels, before = fewer, parts, found
                break
        else:
            break
    return centres, labels


def _widest(
    x: NDArray[np.float64], centres: NDArray[np.float64], labels: NDArray[np.int64]
) -> list[tuple[int, NDArray[np.float64]]]:
    """Clusters that hold most variance along one axis, and a standard deviation along it."""
    found = []
    for one in range(len(centres)):
        own = x[labels == one]
        if len(own) > 1:
            values, axes = np.linalg.eigh(np.cov(own.T, bias=True).reshape((x.shape[1],) * 2))
            found.append((len(own) * values[-1], one, np.sqrt(max(values[-1], 0.0)) * axes[:, -1]))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [(one, apart) for _, one, apart in found[:_CANDIDATES]]


def _least_needed(
    x: NDArray[np.float64], centres: NDArray[np.float64], labels: NDArray[np.int64]
) -> int:
    """Centre that can be left out at the lowest cost: distance of rows to their nearest centres."""
    away = np.square(centres).sum(axis=1) - 2 * x @ centres.T
    own = away[np.arange(len(x)), labels].copy()
    away[np.arange(len(x)), labels] = np.inf
    return int(np.bincount(labels, away.min(axis=1) - own, minlength=len(centres)).argmin())


def _spread(
    x: NDArray[np.float64], centres: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    return float(np.square(x - centres[labels]).sum())


def _of_clusters(
    x: NDArray[np.float64],
    centres: NDArray[np.float64],
    labels: NDArray[np.int64],
    blank: GaussianMixture,
) -> GaussianMixture:
    """Mixture of clusters of rows, by decreasing weight."""
    k = blank.n_topics
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    order = np.argsort(-counts, kind="stable")
    squares = np.square(x - centres[labels])
    alike = blank.variances.shape[1] == 1
    squares = squares.mean(axis=1, keepdims=True) if alike else squares
    spreads = np.zeros((k, squares.shape[1]))
    np.add.at(spreads, labels, squares)
    whole = squares.mean(axis=0)
    # few rows of a cluster say little of its variance
    spreads = (spreads + whole) / (counts + 1)[:, None]
    if blank.covariance.startswith("tied"):
        spreads = np.tile(whole, (k, 1))
    weights = (counts + 1) / (counts + 1).sum()
    return replace(
        blank, means=centres[order], weights=weights[order], variances=spreads[order], start=PILOT
    )
