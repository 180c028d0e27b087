"""Second start: also start the passes of a Gaussian mixture from K-means on a sample of the rows.

The result of this start is used if it makes the rows more likely.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture, log_sums
from streaming_moments.models.mixtures.matching import matched_order
from streaming_moments.models.mixtures.passes import not_too_small, polished
from streaming_moments.models.starts import PILOT, ROWS, STARTS, gains
from streaming_moments.numerics.lazy_scipy import vq
from streaming_moments.statistics.vectors.grid import Grid

_KEPT = 3
# the search ends if the splits of this many components, tried one after another, gain too little
_CANDIDATES = 5
_STEPS = 5  # number of passes after a component was split, and again after one was removed
_BEFORE = 10  # number of passes before the first component is split
# stands for minus infinity: the logarithm of a density if its component has weight 0
_LEAST = -1e300
_PASSES = 20
# Leave out rows beyond the radius of the grid only if at least this share of rows is within it. If
# there are more rows beyond it, they are not outliers.
_ORDINARY = 0.97
_FEWEST = 2.0  # a component with fewer rows of the pilot (a sample of the rows) is not split
# splitting a component has to raise the log-likelihood of all rows of the pilot by more nats than
# this; smaller gains can be noise
_WORTH = 4.0


def pilot_of(rows: NDArray[Any], seed: int) -> NDArray[Any]:
    """Return at most 8,000 of the rows, drawn at random and in random order."""
    drawn = np.random.default_rng(seed).permutation(len(rows))
    return np.asarray(rows[drawn[: 2 * ROWS]])


def best_start(
    model: GaussianMixture | None, pilot: NDArray[Any], grid: Grid, blank: GaussianMixture
) -> GaussianMixture:
    """Choose the mixture from which passes over all rows start.

    The pilot is a sample of the rows. K-means (k-means++, ten starts) runs on one half of the
    pilot. Passes over this half improve the three results whose clusters have the least squared
    distances to their centres. Between these passes, a wide component is split, and a component
    that is hardly needed is removed. This is repeated as long as it makes the rows of this half
    more likely.

    The rows of the other half then decide. The best of the three mixtures is chosen if these rows
    are more likely under it than under `model` after the same passes. The gain has to exceed two
    standard errors and a thousandth of a nat per row. Otherwise `model` after these passes is
    chosen if it gains as much over `model` itself.

    Rows that the grid clips are left out if they are few. Otherwise a mixture that spends a
    component on outliers would make the rows most likely. The result has no error bars if one of
    its means is far from that of `model`.

    Parameters
    ----------
    model : GaussianMixture, optional
        Mixture that was fitted to moments; None if the moments identify fewer components.
    pilot : (m, d) array
        Rows, in random order.
    grid : Grid
        Grid of the statistics of the fit.
    blank : GaussianMixture
        Mixture that gives the result its number of components, its kind of variances, and facts
        about the rows. Its means are replaced.

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
    pilot = _ordinary(pilot, grid, least=blank.n_topics)
    half = max(blank.n_topics, (len(pilot) + 1) // 2)
    train, held_out = pilot[:half], pilot[half:]
    tried = [_settled(one, train, grid) for one in _clustered(train, blank, grid)]
    compared = held_out if len(held_out) else train
    other = max(tried, key=lambda one: float(one.log_likelihoods(compared).mean()))
    other = replace(other, polishing=None)
    if model is None:
        return other
    if not len(held_out):
        return model
    near = _settled(model, train, grid)
    if gains(other.log_likelihoods(held_out) - near.log_likelihoods(held_out)):
        return other
    # passes over all rows alone can reach another optimum, so use `model` after the passes over the
    # pilot if they help
    if gains(near.log_likelihoods(held_out) - model.log_likelihoods(held_out)):
        near = replace(near, polishing=None)
        if _elsewhere(near.means, model.means):
            near = replace(near, start=PILOT, bars=None, weight_bars=None)
        return near
    return model


def _elsewhere(means: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Whether any mean moved by more than half of its distance to the nearest other one."""
    apart = np.linalg.norm(means[:, None] - means, axis=-1)
    np.fill_diagonal(apart, np.inf)
    moved = np.linalg.norm(means - before, axis=1)
    return bool((moved > apart.min(axis=1) / 2).any())


def _ordinary(rows: NDArray[Any], grid: Grid, least: int) -> NDArray[Any]:
    """Leave out rows that the grid clips.

    Returns all rows if the grid clips many of them, or if fewer than `least` would remain.
    """
    away = np.linalg.norm((rows - grid.offset) / grid.step, axis=1)
    kept = away <= grid.radius
    return rows[kept] if kept.sum() >= max(_ORDINARY * len(rows), least) else rows


def better_start(model: GaussianMixture, rows: NDArray[Any], grid: Grid) -> GaussianMixture:
    """Choose the mixture from which passes start that polish a stored model.

    It is chosen as in `best_start`, with `rows` drawn from the records. Its components have the
    order of those of the stored model. Error bars belong to the stored model, so a start from the
    pilot has none.
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


def _settled(model: GaussianMixture, rows: NDArray[Any], grid: Grid) -> GaussianMixture:
    begun = polished(model, [rows], grid, _BEFORE)
    return polished(_moved(begun, rows, grid), [rows], grid, _PASSES)


def _clustered(rows: NDArray[Any], blank: GaussianMixture, grid: Grid) -> list[GaussianMixture]:
    """Run K-means on the rows ten times.

    Returns mixtures made from the three results with the least squared distances of rows to
    centres.
    """
    x, k = rows.astype(np.float64), blank.n_topics
    tried = []
    for seed in range(STARTS):
        centres, labels = vq.kmeans2(x, k, minit="++", seed=seed, missing="warn")
        away = float(np.square(x - centres[labels]).sum())
        tried.append((away, seed, centres, labels))
    best = sorted(tried, key=lambda one: one[:2])[:_KEPT]
    return [_of_clusters(x, centres, labels, blank, grid) for _, _, centres, labels in best]


def _moved(model: GaussianMixture, rows: NDArray[Any], grid: Grid) -> GaussianMixture:
    """Split wide components of a mixture, and for each split remove a component hardly needed.

    A split and a removal that do not make the rows more likely are undone.
    """
    k, before = model.n_topics, float(model.log_likelihoods(rows).sum())
    moves = 0
    while k > 1 and moves < 2 * k:
        moves += 1
        for chosen, apart in _widest(model, rows):
            split = polished(_split(model, chosen, apart), [rows], grid, _STEPS)
            kept = np.arange(k + 1) != _least_needed(split, rows)
            fewer = polished(_only(split, kept), [rows], grid, _STEPS)
            if (found := float(fewer.log_likelihoods(rows).sum())) > before + _WORTH:
                model, before = fewer, found
                break
        else:
            break
    return model


def _split(model: GaussianMixture, chosen: int, apart: NDArray[np.float64]) -> GaussianMixture:
    """Replace a component by two of half its weight, at its mean minus and plus `apart`."""
    halved = model.weights.copy()
    halved[chosen] /= 2
    means = np.vstack([model.means, model.means[chosen] + apart])
    means[chosen] -= apart
    variances = np.vstack([model.variances, model.variances[chosen]])
    weights = np.append(halved, halved[chosen])
    return replace(model, means=means, weights=weights, variances=variances)


def _only(model: GaussianMixture, kept: NDArray[np.bool_]) -> GaussianMixture:
    """Return the mixture of the components in the mask `kept`."""
    weights = model.weights[kept] / model.weights[kept].sum()
    return replace(model, means=model.means[kept], weights=weights, variances=model.variances[kept])


def _widest(model: GaussianMixture, rows: NDArray[Any]) -> list[tuple[int, NDArray[np.float64]]]:
    """Return the components that are worth splitting, those with the largest expected gain first.

    Each comes with the vector that its split adds to one mean and subtracts from the other. A
    component is worth splitting if its spread along an axis exceeds the largest spread that noise
    gives the same number of rows (Marchenko and Pastur 1967).
    """
    shares, d = model.posterior(rows), model.dimension
    found = []
    for one, count in enumerate(shares.sum(axis=0).tolist()):
        if count < _FEWEST:
            continue
        root = np.sqrt(model.variances[one])
        own = (rows - model.means[one]) / root
        values, axes = np.linalg.eigh((own.T * shares[:, one]) @ own / count)
        wide = float(values[-1]) / (1 + np.sqrt(d / count)) ** 2
        if wide > 1:
            apart = np.sqrt(values[-1] - 1) * axes[:, -1] * root
            found.append((count * (wide - 1 - np.log(wide)), one, apart))
    found.sort(key=lambda one: (-one[0], one[1]))
    return [(one, apart) for _, one, apart in found[:_CANDIDATES]]


def _least_needed(model: GaussianMixture, rows: NDArray[Any]) -> int:
    """Return the component without which the rows stay most likely."""
    logs = np.maximum(model.log_densities(rows), _LEAST)
    every, places = log_sums(logs), (np.arange(len(logs)), logs.argmax(axis=1))
    without = np.log1p(-np.minimum(np.exp(logs - every[:, None]), 0.5))
    logs[places] = -np.inf
    without[places] = log_sums(logs) - every
    return int(without.sum(axis=0).argmax())


def _of_clusters(
    x: NDArray[np.float64],
    centres: NDArray[np.float64],
    labels: NDArray[np.int64],
    blank: GaussianMixture,
    grid: Grid,
) -> GaussianMixture:
    """Make a mixture from the clusters of rows that K-means found, by decreasing weight."""
    k = blank.n_topics
    counts = np.bincount(labels, minlength=k).astype(np.float64)
    order = np.argsort(-counts, kind="stable")
    squares = np.square(x - centres[labels])
    alike = blank.variances.shape[1] == 1
    squares = squares.mean(axis=1, keepdims=True) if alike else squares
    spreads = np.zeros((k, squares.shape[1]))
    np.add.at(spreads, labels, squares)
    whole = squares.mean(axis=0)
    # add one more row with the variance of all rows, because a few rows do not determine a variance
    spreads = (spreads + whole) / (counts + 1)[:, None]
    if blank.covariance.startswith("tied"):
        spreads = np.tile(whole, (k, 1))
    spreads = not_too_small(spreads, counts, grid)
    weights = (counts + 1) / (counts + 1).sum()
    return replace(
        blank, means=centres[order], weights=weights[order], variances=spreads[order], start=PILOT
    )
