"""Passes over records beside peers: sequences, communities, mixtures, factors and tables.

`python tests/benchmarks/passes.py mixtures` prints one table of `docs/beside.md`, without a name
all. Needs the extra `bench`. Texts are the State of the Union addresses, or `TEXTS=FILE.jsonl`.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from hidden.sequence_ways import Hmmlearn, OurMarkov
from hidden.sequences import PlantedSequences, TextSymbols
from hidden.tables import RealTable
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.mixtures.passes import polished
from streaming_moments.models.passes.in_memory import passes_over
from streaming_moments.sklearn import (
    MomentCommunities,
    MomentFactors,
    MomentGaussianMixture,
    MomentLatentTree,
)
from streaming_moments.statistics.vectors.rows import VectorBatch
from streaming_moments.synthetic import amari_distance

DRAWS = 3
Row = tuple[str, ...]


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """What is made, and its CPU seconds."""
    begun = time.process_time()
    made = make()
    return made, time.process_time() - begun


def sequences() -> Iterator[Row]:
    """Perplexity of texts, and nats above a planted chain: ours, and five starts of hmmlearn."""
    path = os.environ.get("TEXTS", "")
    sources: list[Any] = [
        TextSymbols(10, path, words=1999, most=100_000),
        TextSymbols(6, path, most=150_000),
        TextSymbols(12, path, most=150_000),
        *([TextSymbols(10, path)] if path else []),
        PlantedSequences(100_000, seed=1),
        PlantedSequences(20_000, 12, 6, seed=2),
    ]
    ways: list[Any] = [OurMarkov(), OurMarkov(polish="auto")]
    ways += [Hmmlearn(seed=seed) for seed in range(1, 6)]
    for source in sources:
        data = source.load()
        for way in ways:
            prepared = way.prepare(data)
            fitted, seconds = timed(partial(way.fit, prepared))
            scores = source.score(way.result(fitted, prepared)[0], data)
            told = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
            yield source.name, way.name, told, f"{seconds:.1f} s"


# rows, numbers, components, length of the means, largest weight over the smallest, variances
MIXTURES = (
    (20_000, 64, 20, 5, 20, "spherical"),
    (20_000, 64, 20, 5, 8, "diag"),
    (10_000, 10, 10, 4, 1, "spherical"),
    (20_000, 30, 30, 5, 1, "spherical"),
    (20_000, 10, 15, 5, 1, "spherical"),
    (10_000, 256, 30, 6, 8, "spherical"),
)


def distance(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Mean distance of matched means."""
    apart = np.linalg.norm(found[:, None] - truth, axis=2)
    return float(apart[linear_sum_assignment(apart)].mean())


def mixtures_of(k: int, covariance: str, seed: int) -> dict[str, Any]:
    """Ours by moments and with passes, and scikit-learn's from five starts."""
    from sklearn.mixture import GaussianMixture as Peer

    told: dict[str, Any] = {"covariance_type": covariance}
    return {
        "moments": MomentGaussianMixture(k, **told),
        "polish": MomentGaussianMixture(k, polish="auto", **told),
        "five starts": Peer(k, n_init=5, random_state=seed, **told),
    }


def mixtures() -> Iterator[Row]:
    """Distance of the means, median and worst of three draws, and median CPU seconds."""
    for number, d, k, length, ratio, covariance in MIXTURES:
        errors: dict[str, list[float]] = {}
        spent: dict[str, list[float]] = {}
        for seed in range(DRAWS):
            rng = np.random.default_rng(seed)
            means = rng.normal(size=(k, d))
            means *= length / np.linalg.norm(means, axis=1, keepdims=True)
            weights = np.linspace(1, ratio, k) / np.linspace(1, ratio, k).sum()
            rows = means[rng.choice(k, number, p=weights)] + rng.normal(size=(number, d))
            spread = np.ones((k, d if covariance == "diag" else 1))
            for name, way in mixtures_of(k, covariance, seed).items():
                try:
                    fitted, seconds = timed(partial(way.fit, rows))
                except NotIdentifiable:
                    continue
                errors.setdefault(name, []).append(distance(fitted.means_, means))
                spent.setdefault(name, []).append(seconds)
            grid = MomentGaussianMixture(2).fit(rows)._foundation.grid
            begun = GaussianMixture(means, weights, spread, covariance)
            best = polished(begun, [rows], grid, 20)
            errors.setdefault("from the truth", []).append(distance(best.means, means))
        shown = (
            f"{name} {np.median(one):.3f} ({max(one):.3f})"
            + (f" {np.median(spent[name]):.1f} s" if name in spent else "")
            for name, one in errors.items()
        )
        yield f"{number:,}, {d}, {k}, length {length}, weights 1:{ratio}, {covariance}", *shown


def communities() -> Iterator[Row]:
    """Mutual information with planted communities, median of three draws: ours and Leiden."""
    import igraph
    import leidenalg
    from sklearn.metrics import normalized_mutual_info_score as agreement

    for n, k, inside, outside, sizes, theta in (
        (500, 4, 0.06, 0.015, 1, 0.0),
        (1000, 4, 0.028, 0.0055, 1, 0.0),
        (1000, 5, 0.06, 0.01, 8, 0.0),
        (5000, 5, 0.012, 0.002, 1, 0.0),
        (1000, 4, 0.05, 0.01, 1, 0.7),
    ):
        found: list[tuple[float, float]] = []
        for seed in range(DRAWS):
            rng = np.random.default_rng(seed)
            weights = np.linspace(1, sizes, k) / np.linspace(1, sizes, k).sum()
            labels = rng.choice(k, n, p=weights)
            factors = np.exp(rng.normal(0, theta, n) - theta**2 / 2) if theta else np.ones(n)
            one, other = np.triu_indices(n, 1)
            chances = np.where(labels[one] == labels[other], inside, outside)
            held = rng.random(one.size) < chances * factors[one] * factors[other]
            edges = np.stack([one[held], other[held]], axis=1)
            graph = igraph.Graph(n, edges.tolist())
            adjacency = graph.get_adjacency_sparse()
            ours = MomentCommunities(k, alpha0=0.0).fit(adjacency).labels_
            peer = leidenalg.find_partition(
                graph, leidenalg.ModularityVertexPartition, n_iterations=-1, seed=seed
            )
            found.append((agreement(labels, ours), agreement(labels, peer.membership)))
        ours, leiden = np.median(found, axis=0)
        yield f"{n:,}, {k}, sizes 1:{sizes}, sigma {theta:g}", f"{ours:.2f}", f"Leiden {leiden:.2f}"


FACTORS: dict[str, Callable[[Any, int], NDArray[np.float64]]] = {
    "exponential": lambda rng, size: rng.exponential(size=size) - 1,
    "gamma, shape 4": lambda rng, size: (rng.gamma(4, size=size) - 4) / 2,
    "Laplace": lambda rng, size: rng.laplace(size=size) / np.sqrt(2),
    "Student, 5": lambda rng, size: rng.standard_t(5, size) / np.sqrt(5 / 3),
    "uniform": lambda rng, size: (rng.random(size) - 0.5) * np.sqrt(12),
}
# sources, rows, dimensions, variance of the noise
PLANTED = (
    *(([name], 20_000, 12, 0.04) for name in FACTORS),
    (["exponential", "Laplace", "uniform"], 20_000, 12, 0.04),
    (["exponential", "Laplace", "uniform"], 20_000, 12, 1.0),
    (["exponential", "Laplace", "uniform"], 1_000, 12, 0.04),
    (["exponential", "Laplace", "uniform"], 20_000, 6, 0.0),
)
CONTRASTS = ("logcosh", "exp", "cube")


def factors() -> Iterator[Row]:
    """Amari distance of six factors, median and worst of ten draws: ours, and FastICA.

    FastICA has the best of three starts, by the distance that only the truth tells. Passes from the
    truth are those of `polish`.
    """
    for sources, number, d, noise in PLANTED:
        errors: dict[str, list[float]] = {}
        spent: dict[str, list[float]] = {}
        for seed in range(10):
            rng = np.random.default_rng(seed)
            own = [FACTORS[sources[at % len(sources)]](rng, number) for at in range(6)]
            mixing = rng.normal(size=(d, 6))
            rows = np.stack(own, axis=1) @ mixing.T
            rows += rng.normal(0, np.sqrt(noise), (number, d))
            polish = MomentFactors(6, polish="auto", keep_statistics=True)
            ways: dict[str, list[Any]] = {
                "moments": [MomentFactors(6)],
                "polish": [polish],
                **{
                    fun: [
                        FastICA(6, fun=fun, random_state=start, whiten="unit-variance")
                        for start in range(3)
                    ]
                    for fun in CONTRASTS
                },
            }
            for name, tried in ways.items():
                fits = [timed(partial(one.fit, rows)) for one in tried]
                found = min(amari_distance(mixing, one.components_.T) for one, _ in fits)
                errors.setdefault(name, []).append(found)
                spent.setdefault(name, []).append(fits[0][1])
            true = replace(
                polish.model_, mixing=mixing, unmixing=np.linalg.pinv(mixing).T, polishing=None
            )
            batches = [VectorBatch(rows)]
            ideal = passes_over(true, polish.statistics_.foundation, batches, "auto")
            found = amari_distance(mixing, ideal.unmixing)
            errors.setdefault("from the truth", []).append(found)
        shown = (
            f"{name} {np.median(one):.4f} ({max(one):.4f})"
            + (f" {np.median(spent[name]):.2f} s" if name in spent else "")
            for name, one in errors.items()
        )
        yield f"{', '.join(sources)}; {number:,}, {d}, noise {noise:g}", *shown


def tables() -> Iterator[Row]:
    """Nats a row held out, and CPU seconds: the shape taken, with passes, and peers."""
    from stepmix.stepmix import StepMix

    for which in ("cancer", "digits", "affairs", "election"):
        data = RealTable(which, 2).load()
        ways: dict[str, Any] = {
            "predict": MomentLatentTree("predict"),
            "with passes": MomentLatentTree("predict", polish="auto"),
            "classes": MomentLatentTree(12, shape="latent_classes", polish="auto"),
            "Chow-Liu": MomentLatentTree(2, shape="chow_liu"),
        }
        told: list[str] = []
        for name, way in ways.items():
            fitted, seconds = timed(partial(way.fit, data.training))
            shape = f"{fitted.model_.shape}, {fitted.model_.states}: " if name == "predict" else ""
            told.append(f"{name} {shape}{fitted.score(data.held_out):.3f} {seconds:.1f} s")

        def classes(number: int, rows: Any = data.training) -> Any:
            peer = StepMix(
                number, measurement="categorical", n_init=3, random_state=0, progress_bar=0
            )
            return peer.fit(rows)

        tried, seconds = timed(lambda make=classes: [make(number) for number in (2, 4, 8, 12)])
        best = min(tried, key=lambda one, rows=data.training: one.bic(rows))
        most = max(one.score(data.held_out) for one in tried)
        told.append(
            f"stepmix by BIC {best.score(data.held_out):.3f}, best {most:.3f} {seconds:.1f} s"
        )
        yield which, *told


TABLES = {one.__name__: one for one in (sequences, communities, mixtures, factors, tables)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for chosen in sys.argv[1:] or TABLES:
        print(f"{chosen}: {TABLES[chosen].__doc__}")
        for line in TABLES[chosen]():
            print("| " + " | ".join(line) + " |", flush=True)
