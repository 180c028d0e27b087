"""Communities: ours, Leiden and spectral clustering, beside the likelihood from the truth."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from hidden.graphs import RealGraph
from numpy.typing import NDArray
from sklearn.metrics import normalized_mutual_info_score

from peers.cases import OURS, STARTS, TRUTH, Case, best
from streaming_moments.sklearn import MomentCommunities

_ROUNDS = 100
_NEAR = 10  # neighbours of a row in graphs of rows
# nodes, communities, chances within and between, largest size over the smallest, sigma of degrees
PLANTED = (
    (500, 4, 0.06, 0.015, 1, 0.0),
    (1000, 4, 0.028, 0.0055, 1, 0.0),
    (1000, 5, 0.06, 0.01, 8, 0.0),
    (3000, 5, 0.02, 0.0035, 1, 0.0),
    (1000, 4, 0.05, 0.01, 1, 0.7),
)


@dataclass(frozen=True, eq=False)
class Graph:
    """Symmetric adjacency, labels of the nodes, and whether degrees differ."""

    adjacency: Any
    labels: NDArray[np.int64]
    communities: int
    corrected: bool = False


def _ours(data: Graph, seed: int) -> Any:
    return MomentCommunities(data.communities, alpha0=0.0).fit(data.adjacency).labels_


def _leiden(data: Graph, seed: int) -> Any:
    import igraph

    ends = np.stack(data.adjacency.nonzero(), axis=1)
    graph = igraph.Graph(len(data.labels), ends[ends[:, 0] < ends[:, 1]].tolist())
    random.seed(seed)  # igraph draws from it
    tried = [graph.community_leiden("modularity", n_iterations=-1) for _ in range(STARTS)]
    return best(tried, lambda one: one.modularity).membership


def _spectral(data: Graph, seed: int) -> Any:
    from sklearn.cluster import SpectralClustering

    peer = SpectralClustering(data.communities, affinity="precomputed", random_state=seed)
    return peer.fit_predict(data.adjacency.toarray().astype(np.float64))


def _truth(data: Graph, seed: int) -> Any:
    """Labels after variational rounds under a Poisson blockmodel, from the planted labels."""
    k, shares = data.communities, np.eye(data.communities)[data.labels]
    degrees = np.asarray(data.adjacency.sum(axis=1)).ravel()
    sizes = degrees if data.corrected else np.ones(len(data.labels))
    for _ in range(_ROUNDS):
        near = data.adjacency @ shares
        held = sizes @ shares
        rates = (shares.T @ near + 1e-3) / np.outer(held, held)
        weights = np.zeros(k) if data.corrected else np.log(shares.mean(axis=0))
        logs = near @ np.log(rates) - np.outer(sizes, held @ rates) + weights
        shares = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    return shares.argmax(axis=1)


WAYS = {f"{OURS}, alpha0 0": _ours, f"Leiden, best of {STARTS}": _leiden, "spectral": _spectral}


def planted() -> Iterator[Case]:
    """Blockmodels with one community of each node."""
    for shape in PLANTED:
        n, k, _, _, ratio, sigma = shape
        name = f"{n:,} nodes, {k} communities, sizes 1:{ratio}" + (
            f", degrees lognormal {sigma:g}" if sigma else ""
        )
        yield Case(name, partial(_drawn, shape), {**WAYS, TRUTH: _truth}, _error)


def real() -> Iterator[Case]:
    """The karate club, and graphs of the nearest rows of labelled tables."""
    yield Case("karate club, 2", _karate, WAYS, _agreement)
    for which in ("iris", "wine", "breast_cancer", "digits"):
        yield Case(f"nearest rows of {which}", partial(_nearest, which), WAYS, _agreement)


def _drawn(shape: Any, seed: int) -> Graph:
    n, k, inside, outside, ratio, sigma = shape
    rng = np.random.default_rng(seed)
    weights = np.linspace(1, ratio, k) / np.linspace(1, ratio, k).sum()
    labels = rng.choice(k, n, p=weights)
    factors = np.exp(rng.normal(0, sigma, n) - sigma**2 / 2) if sigma else np.ones(n)
    one, other = np.triu_indices(n, 1)
    chances = np.where(labels[one] == labels[other], inside, outside)
    held = rng.random(one.size) < chances * factors[one] * factors[other]
    return Graph(_symmetric(one[held], other[held], n), labels, k, bool(sigma))


def _symmetric(one: NDArray[np.int64], other: NDArray[np.int64], n: int) -> Any:
    half = sp.csr_matrix((np.ones(one.size, dtype=np.int64), (one, other)), shape=(n, n))
    return ((half + half.T) > 0).astype(np.int64).tocsr()


def _karate(seed: int) -> Graph:
    found = RealGraph("karate", 2).load()
    assert found.labels is not None
    return Graph(found.adjacency.astype(np.int64), found.labels, 2)


def _nearest(which: str, seed: int) -> Graph:
    """Each row beside its ten nearest rows, of standardised columns."""
    import sklearn.datasets
    from sklearn.neighbors import kneighbors_graph

    rows, labels = getattr(sklearn.datasets, f"load_{which}")(return_X_y=True)
    rows = (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-9)
    one, other = kneighbors_graph(rows, _NEAR).nonzero()
    return Graph(_symmetric(one, other, len(rows)), labels, int(labels.max()) + 1)


def _agreement(found: Any, data: Graph) -> dict[str, float]:
    return {"NMI": float(normalized_mutual_info_score(data.labels, found))}


def _error(found: Any, data: Graph) -> dict[str, float]:
    return {"1 - NMI": 1 - _agreement(found, data)["NMI"]}
