"""Independent factors: ours by moments and with passes, and FastICA with its three contrasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import FastICA

from peers.cases import OURS, TRUTH, Case
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.sklearn import MomentFactors
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic import amari_distance

_STARTS = 3
_FACTORS = 6
_DRAWS: dict[str, Callable[[Any, int], NDArray[np.float64]]] = {
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "gamma, shape 4": lambda rng, size: (rng.gamma(4, size=size) - 4) / 2,
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2),
    "Student, 5 degrees": lambda rng, size: rng.standard_t(5, size) / np.sqrt(5 / 3),
    "uniform": lambda rng, size: (rng.random(size) - 0.5) * np.sqrt(12),
}
_EACH = ("exponential", "Laplace", "uniform")
# laws, rows, numbers, variance of the noise
PLANTED = {
    **{name: ((name,), 20_000, 12, 0.04) for name in _DRAWS},
    "two each of three": (_EACH, 20_000, 12, 0.04),
    "two each, noise of variance 1": (_EACH, 20_000, 12, 1.0),
    "two each, 1,000 rows": (_EACH, 1_000, 12, 0.04),
    "two each, six numbers, no noise": (_EACH, 20_000, 6, 0.0),
}


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows, and the (width, factors) mixing of their factors."""

    rows: NDArray[np.float64]
    mixing: NDArray[np.float64]


def _ours(polish: int | str, data: Mixed, seed: int) -> Any:
    return MomentFactors(data.mixing.shape[1], polish=polish).fit(data.rows).components_.T


def _peer(contrast: str, data: Mixed, seed: int) -> Any:
    """The best of some starts, by the distance that only the truth tells."""
    told = {"fun": contrast, "whiten": "unit-variance", "max_iter": 1000}
    k = data.mixing.shape[1]
    tried = [
        FastICA(k, random_state=_STARTS * seed + at, **told).fit(data.rows).components_.T
        for at in range(_STARTS)
    ]
    return min(tried, key=partial(amari_distance, data.mixing))


def _truth(data: Mixed, seed: int) -> Any:
    """The passes of ours, begun at the planted columns."""
    found = MomentFactors(data.mixing.shape[1], keep_statistics=True).fit(data.rows)
    unmixing = np.linalg.pinv(data.mixing).T
    begun = replace(found.model_, mixing=data.mixing, unmixing=unmixing)
    batches = [VectorBatch(data.rows)]
    return passes_over(begun, found.statistics_.foundation, batches, "auto").unmixing


WAYS = {
    f"{OURS}, by moments": partial(_ours, 0),
    f"{OURS}, polish auto": partial(_ours, "auto"),
    **{
        f"FastICA, {contrast}, best of {_STARTS}": partial(_peer, contrast)
        for contrast in ("logcosh", "exp", "cube")
    },
    TRUTH: _truth,
}


def planted() -> Iterator[Case]:
    """Six factors of each law."""
    for name, shape in PLANTED.items():
        yield Case(name, partial(_drawn, shape), WAYS, _amari)


def real() -> Iterator[Case]:
    """Grey photographs of scikit-learn, cut into two, mixed as sounds of microphones are."""
    yield Case("four photographs in eight mixtures", _photographs, WAYS, _amari)


def _drawn(shape: Any, seed: int) -> Mixed:
    laws, number, width, noise = shape
    rng = np.random.default_rng(seed)
    own = [_DRAWS[laws[at % len(laws)]](rng, number) for at in range(_FACTORS)]
    mixing = rng.normal(size=(width, _FACTORS))
    rows = np.stack(own, axis=1) @ mixing.T + rng.normal(0, np.sqrt(noise), (number, width))
    return Mixed(rows, mixing)


def _photographs(seed: int) -> Mixed:
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(seed)
    grey = [image.mean(axis=2) for image in load_sample_images().images]
    parts = [part[:, :320].ravel() for image in grey for part in np.array_split(image[:426], 2)]
    values = np.stack(parts, axis=1)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    mixing = rng.normal(size=(2 * len(parts), len(parts)))
    rows = values @ mixing.T + rng.normal(0, np.sqrt(0.04), (len(values), len(mixing)))
    return Mixed(rows, mixing)


def _amari(found: Any, data: Mixed) -> dict[str, float]:
    return {"Amari": float(amari_distance(data.mixing, found))}
