"""Gaussian mixtures: ours by moments and with passes, and scikit-learn's from ten starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture as Peer

from peers.cases import OURS, TRUTH, Case
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.sklearn import MomentGaussianMixture
from streaming_moments.synthetic.mixtures import matched_means

_STARTS = 10
_PASSES = 20
# rows, numbers, components, length of the means, largest weight over the smallest, variances,
# share of outliers
PLANTED = (
    (20_000, 50, 10, 3, 1, "spherical", 0.0),
    (20_000, 50, 10, 3, 1, "spherical", 0.01),
    (20_000, 64, 20, 5, 20, "spherical", 0.0),
    (20_000, 64, 20, 5, 8, "diag", 0.0),
    (10_000, 10, 10, 4, 1, "spherical", 0.0),
    (20_000, 30, 30, 5, 1, "spherical", 0.0),
    (20_000, 10, 15, 5, 1, "spherical", 0.0),
    (10_000, 256, 30, 6, 8, "spherical", 0.0),
)
REAL = (("iris", 3), ("wine", 3), ("breast_cancer", 4), ("digits", 10))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, number and kind of components, and their means and weights or rows held out."""

    rows: NDArray[np.float64]
    components: int
    covariance: str
    means: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    held_out: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """Means, and the log-likelihood of rows held out where some are."""

    means: NDArray[np.float64]
    score: float


def _found(fitted: Any, data: Rows) -> Found:
    score = float("nan") if data.held_out is None else float(fitted.score(data.held_out))
    return Found(fitted.means_, score)


def _ours(polish: int | str, data: Rows, seed: int) -> Found:
    told: dict[str, Any] = {"covariance_type": data.covariance, "polish": polish}
    return _found(MomentGaussianMixture(data.components, **told).fit(data.rows), data)


def _peer(data: Rows, seed: int) -> Found:
    told = {"covariance_type": data.covariance, "n_init": _STARTS, "random_state": seed}
    return _found(Peer(data.components, **told).fit(data.rows), data)


def _means(data: Rows, seed: int) -> Found:
    fitted = KMeans(data.components, n_init=_STARTS, random_state=seed).fit(data.rows)
    return Found(fitted.cluster_centers_, float("nan"))


def _truth(data: Rows, seed: int) -> Found:
    assert data.means is not None
    assert data.weights is not None
    d = data.rows.shape[1]
    spread = np.ones((data.components, d if data.covariance == "diag" else 1))
    begun = GaussianMixture(data.means, data.weights, spread, data.covariance)
    grid = MomentGaussianMixture(2).fit(data.rows)._foundation.grid
    return Found(polished(begun, [data.rows], grid, _PASSES).means, float("nan"))


WAYS = {
    f"{OURS}, by moments": partial(_ours, 0),
    f"{OURS}, polish auto": partial(_ours, "auto"),
    f"GaussianMixture, {_STARTS} starts": _peer,
}


def planted() -> Iterator[Case]:
    """Components with variance 1 around means of one length."""
    for shape in PLANTED:
        number, d, k, length, ratio, covariance, outliers = shape
        name = f"{number:,} rows of {d}, {k} components, length {length}, weights 1:{ratio}"
        name += f", {covariance}" + (f", {outliers:.0%} outliers" if outliers else "")
        ways = {**WAYS, f"KMeans, {_STARTS} starts": _means, TRUTH: _truth}
        yield Case(name, partial(_drawn, shape), ways, _distance)


def real() -> Iterator[Case]:
    """Standardised rows of scikit-learn, a quarter held out."""
    for which, k in REAL:
        for covariance in ("spherical", "diag"):
            load = partial(_read, which, k, covariance)
            yield Case(f"{which}, {k} components, {covariance}", load, WAYS, _nats)


def _drawn(shape: Any, seed: int) -> Rows:
    number, d, k, length, ratio, covariance, outliers = shape
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(k, d))
    means *= length / np.linalg.norm(means, axis=1, keepdims=True)
    weights = np.linspace(1, ratio, k) / np.linspace(1, ratio, k).sum()
    rows = means[rng.choice(k, number, p=weights)] + rng.normal(size=(number, d))
    if strange := round(outliers * number):
        rows[-strange:] = 5 * rows.std(axis=0) * rng.normal(size=(strange, d))
    return Rows(rows, k, covariance, means, weights)


def _read(which: str, k: int, covariance: str, seed: int) -> Rows:
    import sklearn.datasets

    rows = getattr(sklearn.datasets, f"load_{which}")().data
    rows = rows[:, rows.std(axis=0) > 0]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    cut = len(rows) * 3 // 4
    return Rows(rows[:cut], k, covariance, held_out=rows[cut:])


def _distance(found: Found, data: Rows) -> dict[str, float]:
    """Mean distance of matched means."""
    assert data.means is not None
    return {"distance": float(matched_means(found.means, data.means)[0].mean())}


def _nats(found: Found, data: Rows) -> dict[str, float]:
    return {"nats": found.score}
