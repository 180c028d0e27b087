"""Graphs drawn from known communities, to measure how well fits recover these communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.synthetic.checks import columns_compared, drawn


@dataclass(frozen=True, eq=False)
class SyntheticGraph:
    """An undirected graph, and the memberships from which it was drawn.

    Parameters
    ----------
    edges : (edges, 2) int64
        Both nodes of each edge, the one with the smaller number first; no edge is repeated.
    nodes : int
        Number of nodes n.
    memberships : (n, k) float64
        Share of each community in each node; each row has sum 1.
    alpha0 : float
        Sum of the Dirichlet parameters of the memberships; with 0, each node has one community.
    """

    edges: NDArray[np.int64]
    nodes: int
    memberships: NDArray[np.float64]
    alpha0: float

    __repr__ = short_repr

    @property
    def batch(self) -> CountBatch:
        """Batch with a document for each node, whose words are its neighbours."""
        ends = np.concatenate([self.edges, self.edges[:, ::-1]])
        return CountBatch.from_entries(ends[:, 0], ends[:, 1], None, (self.nodes, self.nodes))


@drawn
def community_graph(
    nodes: int,
    communities: int = 5,
    inside: float = 0.1,
    outside: float = 0.02,
    alpha0: float = 0.5,
    seed: int = 0,
) -> SyntheticGraph:
    """Draw a graph from a mixed membership blockmodel of equal communities.

    The model is that of Airoldi, Blei, Fienberg, Xing (2008). Two nodes x and y with memberships
    pi_x and pi_y are joined with the probability `pi_x' B pi_y`. The diagonal entries of B are
    `inside`, and the others `outside`.

    Examples
    --------
    >>> graph = community_graph(50, communities=2, inside=0.5)
    >>> graph.memberships.shape, bool((graph.edges[:, 0] < graph.edges[:, 1]).all())
    ((50, 2), True)
    """
    rng = np.random.default_rng(seed)
    if alpha0:
        shares = np.full(communities, alpha0 / communities)
        memberships = rng.dirichlet(shares, size=nodes)
    else:
        memberships = np.eye(communities)[rng.integers(communities, size=nodes)]
    block = np.full((communities, communities), outside)
    np.fill_diagonal(block, inside)
    found = []
    for node in range(nodes - 1):
        chances = memberships[node + 1 :] @ (block @ memberships[node])
        others = node + 1 + np.flatnonzero(rng.random(chances.size) < chances)
        found.append(np.stack([np.full(others.size, node), others], axis=1))
    return SyntheticGraph(np.concatenate(found).astype(np.int64), nodes, memberships, alpha0)


def membership_error(found: ArrayLike, truth: ArrayLike) -> float:
    """Return the mean L1 distance of (n, k) memberships, 0 to 2, for the best matching of columns.

    Examples
    --------
    >>> membership_error(np.eye(3)[:, ::-1], np.eye(3))
    0.0
    """
    from scipy.optimize import linear_sum_assignment

    found, truth = columns_compared(found, truth)
    apart = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0)
    rows, columns = linear_sum_assignment(apart)
    return float(apart[rows, columns].sum() / len(truth))
