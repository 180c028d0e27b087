"""Independent factors: ours by each order, and FastICA with its three contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA

from peers.cases import OURS, Case
from streaming_moments.sklearn import MomentFactors
from streaming_moments.synthetic import amari_distance

_ROWS, _FACTORS, _WIDTH, _NOISE = 20_000, 6, 12, 0.2
_DRAWS: dict[str, Callable[[Any, int], NDArray[np.float64]]] = {
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "gamma, shape 4": lambda rng, size: (rng.gamma(4, size=size) - 4) / 2,
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2),
    "uniform": lambda rng, size: (rng.random(size) - 0.5) * np.sqrt(12),
}
PLANTED = {name: (name,) for name in _DRAWS} | {
    "two of each": ("exponential", "Laplace", "uniform")
}


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows, and the (width, factors) mixing of their factors."""

    rows: NDArray[np.float64]
    mixing: NDArray[np.float64]


def _ours(order: str, data: Mixed, seed: int) -> Any:
    return MomentFactors(data.mixing.shape[1], order=order).fit(data.rows).components_.T


def _peer(contrast: str, data: Mixed, seed: int) -> Any:
    told = {"fun": contrast, "random_state": seed, "whiten": "unit-variance", "max_iter": 1000}
    return FastICA(data.mixing.shape[1], **told).fit(data.rows).components_.T


WAYS = {f"{OURS}, {order}": partial(_ours, order) for order in ("third", "fourth", "both")} | {
    f"FastICA, {contrast}": partial(_peer, contrast) for contrast in ("logcosh", "exp", "cube")
}


def planted() -> Iterator[Case]:
    """Six factors in twelve numbers with little noise."""
    for name, kinds in PLANTED.items():
        yield Case(name, partial(_drawn, kinds), WAYS, _amari)


def real() -> Iterator[Case]:
    """Grey photographs of scikit-learn, cut into two, mixed as sounds of microphones are."""
    yield Case("four photographs in eight mixtures", _photographs, WAYS, _amari)


def _drawn(kinds: tuple[str, ...], seed: int) -> Mixed:
    rng = np.random.default_rng(seed)
    own = [_DRAWS[kinds[at % len(kinds)]](rng, _ROWS) for at in range(_FACTORS)]
    mixing = rng.normal(size=(_WIDTH, _FACTORS))
    rows = np.stack(own, axis=1) @ mixing.T + rng.normal(0, _NOISE, (_ROWS, _WIDTH))
    return Mixed(rows, mixing)


def _photographs(seed: int) -> Mixed:
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(seed)
    grey = [image.mean(axis=2) for image in load_sample_images().images]
    parts = [part[:, :320].ravel() for image in grey for part in np.array_split(image[:426], 2)]
    values = np.stack(parts, axis=1)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    mixing = rng.normal(size=(2 * len(parts), len(parts)))
    rows = values @ mixing.T + rng.normal(0, _NOISE, (len(values), len(mixing)))
    return Mixed(rows, mixing)


def _amari(found: Any, data: Mixed) -> dict[str, float]:
    return {"Amari": float(amari_distance(data.mixing, found))}
