"""Labels: assigns each node of a graph to one community, by the likelihood of a blockmodel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.reading.inference import posteriors

ROUNDS = 60
# rounds end when no probability of a community changes by more than this for any node
_SETTLED = 1e-3
_BEGUN = 0.9  # before the first round, each node has this probability of the community of its label
_LEAST = 1e-9
# Degree correction is used if twice its gain in log-likelihood, divided by the number of nodes,
# exceeds this value. If all nodes of a community have the same expected degree, the ratio is 1 on
# average.
_CORRECTED = 1.5


@dataclass(frozen=True, eq=False)
class Blocks:
    """Numbers of edges between communities, given the community of each node.

    Instead of one community, a node may have a probability of each community (its shares).

    ends : (n, k), number of edges from each node to each community
    sizes : (k,) float64, number of nodes of each community
    edges : (k, k) float64, number of edges from members of a community (row) to members of another
        (column)
    """

    ends: NDArray[Any]
    sizes: NDArray[np.float64]
    edges: NDArray[np.float64]

    @classmethod
    def of_labels(cls, ends: NDArray[np.int64], labels: NDArray[np.int64]) -> Blocks:
        """Count edges between communities if each node is in one community."""
        k = ends.shape[1]
        edges = np.zeros((k, k))
        np.add.at(edges, labels, ends)
        return cls(ends, np.bincount(labels, minlength=k).astype(np.float64), edges)

    @classmethod
    def of_shares(cls, ends: NDArray[np.float64], shares: NDArray[np.float64]) -> Blocks:
        """Count edges between communities, given (n, k) community probabilities of nodes."""
        return cls(ends, shares.sum(axis=0), shares.T @ ends)

    @property
    def chances(self) -> NDArray[np.float64]:
        """(k, k) probability of an edge between members of two communities, between 0 and 1."""
        return np.clip(self.edges / self._pairs, 0.0, 1.0)

    @property
    def corrected(self) -> bool:
        """Whether degrees of the nodes of a community differ more than they would by chance.

        Returns True if twice the gain in Poisson log-likelihood by degree correction (Karrer,
        Newman 2011) exceeds `_CORRECTED` times the number of nodes.
        """
        edges, degrees = self.edges, self.ends.sum(axis=1)
        out, into = edges.sum(axis=1), edges.sum(axis=0)
        sizes = self.sizes
        plain = _sum_of_logs(edges, np.outer(sizes, sizes))
        own = _sum_of_logs(degrees, np.ones(1))
        gain = _sum_of_logs(edges, np.outer(out, into)) - plain + 2 * own
        return bool(gain > _CORRECTED * len(self.ends))

    @cached_property
    def _pairs(self) -> NDArray[np.float64]:
        pairs = np.outer(self.sizes, self.sizes) - np.diag(self.sizes)
        return np.maximum(pairs, 1.0)

    def merged(self, place: NDArray[np.int64]) -> Blocks:
        """Merge communities; `place[j]` is the number of community j after merging."""
        into = np.eye(int(place.max()) + 1)[place]
        return Blocks(self.ends @ into, self.sizes @ into, into.T @ self.edges @ into)

    def likelihood(self, corrected: bool) -> float:
        """Return the log-likelihood of edges and labels, up to a constant for the same graph.

        With degree correction, this is the likelihood of Karrer and Newman (2011), which has no
        term for the probability of the labels.
        """
        edges = self.edges
        if corrected:
            own = np.outer(edges.sum(axis=1), edges.sum(axis=0))
            return _sum_of_logs(edges, own) / 2
        there, none = self._logs
        sizes = np.maximum(self.sizes, _LEAST)
        shares = float(self.sizes @ np.log(sizes / sizes.sum()))
        return float((edges * there + (self._pairs - edges) * none).sum()) / 2 + shares

    def bound(self, shares: NDArray[np.float64], corrected: bool) -> float:
        """Return a lower bound of the log-likelihood, for (n, k) community probabilities."""
        entropy = -float((shares * np.log(np.maximum(shares, _LEAST))).sum())
        return self.likelihood(corrected) + entropy

    @cached_property
    def _logs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(k, k) log probabilities of an edge between two communities, and of no edge."""
        chances = np.clip((self.edges + 0.5) / (self._pairs + 1), _LEAST, 1 - _LEAST)
        return np.log(chances), np.log1p(-chances)

    def scores(self, corrected: bool) -> NDArray[np.float64]:
        """Return (n, k) log-likelihoods of the edges of each node, if it were in each community."""
        if corrected:
            out, into = self.edges.sum(axis=1), self.edges.sum(axis=0)
            rates = np.maximum(self.edges, 0.5) / np.maximum(np.outer(out, into), 1.0)
            expected = rates @ into
            degrees = self.ends.sum(axis=1, keepdims=True)
            return np.asarray(self.ends @ np.log(rates).T - degrees * expected)
        there, none = self._logs
        # `sizes` counts the node itself, which is not its own neighbour: subtract the term for
        # itself
        return np.asarray(self.ends @ there.T + (self.sizes - self.ends) @ none.T - np.diag(none))


def relabelled(
    outgoing: NDArray[np.int64], incoming: NDArray[np.int64] | None, labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the (n,) most likely community of each node, given the labels of all other nodes.

    Parameters
    ----------
    outgoing, incoming : (n, k) int64
        Number of edges from each node to each community and, in directed graphs, from each
        community to each node.
    labels : (n,) int64
        Community of each node before this call.
    """
    blocks = [Blocks.of_labels(outgoing, labels)]
    if incoming is not None:
        blocks.append(Blocks.of_labels(incoming, labels))
    return np.asarray(np.argmax(_scores(blocks), axis=1), dtype=np.int64)


def _scores(blocks: list[Blocks]) -> NDArray[np.float64]:
    """Return (n, k) log-likelihoods of the nodes in each community, up to a term per node."""
    corrected = blocks[0].corrected
    scores = sum(one.scores(corrected) for one in blocks)
    if not corrected:
        scores = scores + np.log(np.maximum(blocks[0].sizes, 1.0))
    return np.asarray(scores)


def settled_shares(
    adjacency: Any, labels: NDArray[np.int64], k: int, rounds: int = ROUNDS
) -> NDArray[np.float64]:
    """Return (n, k) probabilities of the communities of each node of an undirected graph.

    Each round computes the probabilities of a node from those of its neighbours (mean field;
    Daudin, Picard, Robin 2008). Rounds end when the probabilities change little. In simulated
    graphs, rounds that give each node a single label end further from the true communities, because
    a node with a wrong label misleads its neighbours. `adjacency` is (n, n) sparse, of 0 and 1, and
    symmetric.

    Examples
    --------
    >>> from streaming_moments.synthetic.graphs import community_graph
    >>> graph = community_graph(100, 2, inside=0.5, outside=0.1, alpha0=0.0)
    >>> truth = graph.memberships.argmax(axis=1)
    >>> begun = np.where(np.arange(100) < 10, 1 - truth, truth)
    >>> found = settled_shares(graph.batch.to_csr(), begun, 2)
    >>> int((found.argmax(axis=1) != truth).sum())
    0
    """
    shares = _BEGUN * np.eye(k)[labels] + (1 - _BEGUN) / k
    for _ in range(rounds):
        before = shares
        shares = posteriors(_scores([Blocks.of_shares(adjacency @ before, before)]))
        if np.abs(shares - before).max(initial=0.0) < _SETTLED:
            break
    return shares


def _sum_of_logs(counts: NDArray[Any], totals: NDArray[Any]) -> float:
    """Return the sum of `counts * log(counts / totals)` over positive counts."""
    there = counts > 0
    shares = counts / np.where(totals > 0, totals, 1.0)
    return float((counts[there] * np.log(shares[there])).sum())
