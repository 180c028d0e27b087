"""Passes over records beside peers: sequences, communities and tables.

`python tests/benchmarks/passes.py tables` prints one table of `docs/beside.md`, without a name
all. Needs the extra `bench`. Texts are the State of the Union addresses, or `TEXTS=FILE.jsonl`.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from hidden.sequence_ways import Hmmlearn, OurMarkov
from hidden.sequences import PlantedSequences, TextSymbols
from hidden.tables import RealTable

from streaming_moments.sklearn import MomentCommunities, MomentLatentTree

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


TABLES = {one.__name__: one for one in (sequences, communities, tables)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for chosen in sys.argv[1:] or TABLES:
        print(f"{chosen}: {TABLES[chosen].__doc__}")
        for line in TABLES[chosen]():
            print("| " + " | ".join(line) + " |", flush=True)
