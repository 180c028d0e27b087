"""Counts whose length tells of their component: Poisson mixtures and independent intensities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from sklearn.decomposition import NMF, LatentDirichletAllocation

from peers.cases import OURS, TRUTH, Case, best
from streaming_moments import Basis, CountBatch, MomentStatistics, polished
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.rows import InMemory
from streaming_moments.synthetic import topic_error

_STARTS = 10
_MOST_STEPS = 1000
_SETTLED = 1e-6  # nats a row that a step adds
_LEAST = 1e-3  # of a rate: words that a component never had may come
# rows, words, components
MIXTURES = ((4_000, 60, 3), (20_000, 200, 8))
INTENSITIES = ((10_000, 100, 5), (20_000, 1_000, 10))


@dataclass(frozen=True, eq=False)
class Counts:
    """Rows, the number of components, and their (words, k) rates or rows held out."""

    rows: NDArray[np.int64]
    components: int
    rates: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None
    held_out: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Fit:
    """(words, k) rates and (k,) weights of a mixture."""

    rates: NDArray[np.float64]
    weights: NDArray[np.float64]

    def logs(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """(n, k), without the factorials of the counts."""
        rates = np.maximum(self.rates, _LEAST)
        prior = np.log(np.maximum(self.weights, 1e-300)) - rates.sum(axis=0)
        return np.asarray(prior + rows @ np.log(rates))

    def settled(self, rows: NDArray[Any]) -> tuple[Fit, float]:
        """After expectation maximisation, and how likely a row is."""
        fit, before = self, -np.inf
        for _ in range(_MOST_STEPS):
            logs = fit.logs(rows)
            sums = np.logaddexp.reduce(logs, axis=1)
            shares = np.exp(logs - sums[:, None])
            own = np.maximum(shares.sum(axis=0), 1e-300)
            fit = Fit(rows.T @ shares / own, own / len(rows))
            if sums.mean() - before < _SETTLED:
                break
            before = sums.mean()
        return fit, float(sums.mean())


def _statistics(data: Counts) -> tuple[CountBatch, MomentStatistics]:
    batch = CountBatch.from_csr(data.rows)
    basis = Basis.from_pilot(batch, max_topics=data.components, length_weights="pooled")
    return batch, MomentStatistics.of(batch, basis)


def _ours(polish: Any, data: Counts, seed: int) -> Fit:
    batch, statistics = _statistics(data)
    options = PoissonMixture.Options(topics=data.components)
    found = PoissonMixture.fit(InMemory((statistics,)), options)
    found = polished(found, batch, polish)
    return Fit(found.rates, found.weights)


def _random(data: Counts, seed: int) -> Fit:
    rng = np.random.default_rng([seed, 1])
    rows = data.rows.astype(np.float64)
    tried = []
    for _ in range(_STARTS):
        shares = rng.dirichlet(np.ones(data.components), size=len(rows))
        own = shares.sum(axis=0)
        tried.append(Fit(rows.T @ shares / own, own / len(rows)).settled(rows))
    return best(tried, lambda one: one[1])[0]


def _truth(data: Counts, seed: int) -> Fit:
    assert data.rates is not None
    assert data.weights is not None
    return Fit(data.rates, data.weights).settled(data.rows.astype(np.float64))[0]


def _intensities(data: Counts, seed: int) -> Any:
    statistics = _statistics(data)[1]
    options = IndependentIntensities.Options(topics=data.components)
    return IndependentIntensities.fit(InMemory((statistics,)), options).topics


def _factorised(data: Counts, seed: int) -> Any:
    told = {"beta_loss": "kullback-leibler", "solver": "mu", "init": "nndsvda", "max_iter": 500}
    return NMF(data.components, random_state=seed, **told).fit(data.rows).components_.T


def _allocated(data: Counts, seed: int) -> Any:
    told = {"learning_method": "batch", "max_iter": 100, "random_state": seed}
    return LatentDirichletAllocation(data.components, **told).fit(data.rows).components_.T


WAYS = {
    f"{OURS}, by moments": partial(_ours, 0),
    f"{OURS}, polish auto": partial(_ours, "auto"),
    f"EM, likeliest of {_STARTS}": _random,
}
OF_INTENSITIES = {
    f"{OURS}, by moments": _intensities,
    "NMF of Kullback and Leibler": _factorised,
    "LatentDirichletAllocation": _allocated,
}


def planted() -> Iterator[Case]:
    """Mixtures whose components have 5 to 40 words a row, and intensities of gamma laws."""
    for shape in MIXTURES:
        name = f"Poisson mixture, {shape[0]:,} rows of {shape[1]} words, {shape[2]} components"
        yield Case(name, partial(_mixed, shape), {**WAYS, TRUTH: _truth}, _rates)
    for shape in INTENSITIES:
        name = f"intensities, {shape[0]:,} rows of {shape[1]} words, {shape[2]} topics"
        yield Case(name, partial(_intense, shape), OF_INTENSITIES, _topics)


def real() -> Iterator[Case]:
    """Pixels of digits are counts of 0 to 16; a quarter of the rows held out."""
    yield Case("Poisson mixture, digits, 10 components", _digits, WAYS, _nats)


def _mixed(shape: Any, seed: int) -> Counts:
    number, words, k = shape
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(words, 0.5), size=k).T * np.geomspace(5, 40, k)
    weights = np.linspace(3, 1, k) / np.linspace(3, 1, k).sum()
    rows = rng.poisson(rates[:, rng.choice(k, number, p=weights)].T)
    return Counts(rows, k, rates, weights)


def _intense(shape: Any, seed: int) -> Counts:
    number, words, k = shape
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(words, 0.1), size=k).T
    intensities = rng.gamma(0.1, 100.0 / (0.1 * k), (number, k))
    return Counts(rng.poisson(intensities @ topics.T), k, topics)


def _digits(seed: int) -> Counts:
    from sklearn.datasets import load_digits

    rows = load_digits().data.astype(np.int64)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    cut = len(rows) * 3 // 4
    return Counts(rows[:cut], 10, held_out=rows[cut:])


def _rates(found: Fit, data: Counts) -> dict[str, float]:
    """Mean of the L1 differences of matched rates, in words of their component."""
    assert data.rates is not None
    return {"error": _matched(found.rates, data.rates)}


def _matched(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    from scipy.optimize import linear_sum_assignment

    apart = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0) / truth.sum(axis=0)
    return float(apart[linear_sum_assignment(apart)].mean())


def _topics(found: Any, data: Counts) -> dict[str, float]:
    assert data.rates is not None
    return {"error": float(topic_error(found / found.sum(axis=0), data.rates))}


def _nats(found: Fit, data: Counts) -> dict[str, float]:
    assert data.held_out is not None
    rows = data.held_out.astype(np.float64)
    logs = np.logaddexp.reduce(found.logs(rows), axis=1) - gammaln(rows + 1).sum(axis=1)
    return {"nats": float(logs.mean())}
