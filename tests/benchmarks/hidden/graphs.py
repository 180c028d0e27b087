"""Graphs: planted mixed memberships and small real ones; ours, Louvain, Leiden and NMF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hidden.beside import Figure
from numpy.typing import NDArray
from ours import OURS
from scores import agreement

from streaming_moments.sklearn import MomentCommunities
from streaming_moments.synthetic.graphs import community_graph, membership_error


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph, how many communities are asked for, alpha0 of ours, and the truth."""

    adjacency: Any
    communities: int
    alpha0: float
    memberships: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class PlantedGraph:
    """A mixed membership blockmodel of five communities."""

    nodes: int
    inside: float
    outside: float
    alpha0: float
    draw: int = 0
    figures = (Figure("error", "memberships, L1", 3), Figure("agreement", "NMI", 2))

    @property
    def name(self) -> str:
        drawn = f", draw {self.draw}" if self.draw else ""
        return (
            f"graph planted {self.nodes} nodes, p {self.inside:g}, q {self.outside:g}, "
            f"alpha0 {self.alpha0:g}{drawn}"
        )

    def load(self) -> Graph:
        shape = self.nodes, 5, self.inside, self.outside, self.alpha0
        drawn = community_graph(*shape, seed=self.draw)
        return Graph(drawn.batch.to_csr(), 5, self.alpha0, drawn.memberships)

    def score(self, result: NDArray[np.float64], data: Graph) -> Mapping[str, float]:
        truth = data.memberships
        assert truth is not None
        wide = max(result.shape[1], truth.shape[1])
        sides = [np.pad(one, ((0, 0), (0, wide - one.shape[1]))) for one in (result, truth)]
        return {
            "error": membership_error(*sides),
            "agreement": agreement(result, truth.argmax(axis=1)),
        }


@dataclass(frozen=True)
class RealGraph:
    """A graph that networkx brings: "karate", with its two clubs, or "miserables"."""

    which: str
    communities: int
    figures = (Figure("modularity", "modularity", 3), Figure("agreement", "NMI", 3))

    @property
    def name(self) -> str:
        return f"graph {self.which}, k = {self.communities}"

    def load(self) -> Graph:
        import networkx as nx

        karate = self.which == "karate"
        graph = nx.karate_club_graph() if karate else nx.les_miserables_graph()
        clubs = np.array([graph.nodes[n]["club"] == "Officer" for n in graph]) if karate else None
        labels = None if clubs is None else clubs.astype(np.int64)
        adjacency = nx.to_scipy_sparse_array(graph, weight=None, format="csr")
        return Graph(adjacency, self.communities, 0.0, None, labels)

    def score(self, result: NDArray[np.float64], data: Graph) -> Mapping[str, float]:
        found = {"modularity": _modularity(data.adjacency, result.argmax(axis=1))}
        if data.labels is not None:
            found["agreement"] = agreement(result, data.labels)
        return found


@dataclass(frozen=True)
class OurCommunities:
    """MomentCommunities, told alpha0 of a planted graph; of others 0."""

    refine: int = 10
    seed: None = None

    @property
    def name(self) -> str:
        return f"{OURS}, {'defaults' if self.refine == 10 else f'refine {self.refine}'}"

    def prepare(self, data: Graph) -> Any:
        # kernels are compiled once and kept
        few = community_graph(100, 2, 0.5, 0.1, 0.0).batch.to_csr()
        MomentCommunities(2, alpha0=0.0, refine=self.refine).fit(few)
        return data

    def fit(self, prepared: Graph) -> NDArray[np.float64]:
        told = {"alpha0": prepared.alpha0, "refine": self.refine}
        return MomentCommunities(prepared.communities, **told).fit(prepared.adjacency).memberships_

    def result(self, fitted: Any, prepared: Any) -> tuple[Any, float]:
        return fitted, float("nan")


@dataclass(frozen=True)
class AdjacencyNmf:
    """scikit-learn's NMF of the adjacency matrix; memberships are a node's rows, of sum 1."""

    loss: str = "frobenius"
    seed: None = None  # its start is that of a singular value decomposition

    @property
    def name(self) -> str:
        return f"NMF, {'KL' if self.loss == 'kullback-leibler' else 'Frobenius'}"

    def prepare(self, data: Graph) -> Any:
        import sklearn.decomposition  # noqa: F401 - imported outside the clock

        return data.adjacency.astype(np.float64), data.communities

    def fit(self, prepared: Any) -> Any:
        from sklearn.decomposition import NMF

        adjacency, k = prepared
        solver = "mu" if self.loss == "kullback-leibler" else "cd"
        model = NMF(
            k, init="nndsvda", beta_loss=self.loss, solver=solver, max_iter=1000, random_state=0
        )
        shares = model.fit_transform(adjacency) * model.components_.sum(axis=1)
        sums = shares.sum(axis=1, keepdims=True)
        return np.where(sums > 0, shares / np.where(sums > 0, sums, 1), 1 / k)

    def result(self, fitted: Any, prepared: Any) -> tuple[Any, float]:
        return fitted, float("nan")


@dataclass(frozen=True)
class Partition:
    """Louvain of networkx or igraph, or Leiden of igraph, which choose their own number."""

    which: str
    seed: int = 1

    @property
    def name(self) -> str:
        return self.which

    def prepare(self, data: Graph) -> Any:
        import igraph
        import networkx as nx

        if self.which == "Louvain, networkx":
            return nx.from_scipy_sparse_array(data.adjacency)
        ends = np.stack(data.adjacency.nonzero(), axis=1)
        edges = ends[ends[:, 0] < ends[:, 1]]
        return igraph.Graph(n=data.adjacency.shape[0], edges=edges.tolist())

    def fit(self, prepared: Any) -> Any:
        import random

        import networkx as nx

        if self.which == "Louvain, networkx":
            return nx.community.louvain_communities(prepared, seed=self.seed)
        random.seed(self.seed)  # igraph draws from it
        if self.which == "Leiden, igraph":
            return prepared.community_leiden("modularity", n_iterations=-1)
        return prepared.community_multilevel()

    def result(self, fitted: Any, prepared: Any) -> tuple[Any, float]:
        groups = [list(one) for one in fitted]
        shares = np.zeros((sum(map(len, groups)), len(groups)))
        for number, one in enumerate(groups):
            shares[one, number] = 1
        if hasattr(fitted, "modularity"):
            return shares, float(fitted.modularity)
        import networkx as nx

        return shares, float(nx.community.modularity(prepared, groups))


def _modularity(adjacency: Any, groups: NDArray[np.int64]) -> float:
    degrees = np.asarray(adjacency.sum(axis=1)).ravel()
    inside = np.eye(groups.max() + 1)[groups]
    edges = np.asarray((adjacency @ inside) * inside).sum(axis=0)
    return float((edges / degrees.sum() - ((degrees @ inside) / degrees.sum()) ** 2).sum())
