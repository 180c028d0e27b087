"""Moves: split one community of a graph and merge two others, to escape from a local maximum.

Rounds that relabel single nodes can end in a local maximum, where one label covers two communities
and two labels share a third community. A split and a merge together repair such labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.communities.labels import ROUNDS, Blocks, settled_shares

if TYPE_CHECKING:
    import scipy.sparse as sp
else:
    sp = LazyModule("scipy.sparse")

_ROUNDS = 10  # number of rounds that relabel nodes after a community was split
# Number of pairs of communities whose merge is tried, beginning with the pair whose merge costs
# least likelihood; and number of rounds that relabel nodes after each merge.
_MERGED, _SHORT = 10, 10
_STEPS = 30  # iterations of the power method that splits a community
_FEWEST = 4  # communities with fewer members are not split
# a split and a merge are accepted if they raise the log-likelihood by more nats than this
_GAIN = 0.5


def likelier_labels(adjacency: Any, labels: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Improve the (n,) labels by variational rounds, then by exchanges that raise the likelihood.

    An exchange splits one community and merges two. There are at most 2 k exchanges. The parameters
    mean the same as in `settled_shares`; the graph may also be undirected.

    Examples
    --------
    >>> from streaming_moments.synthetic.graphs import community_graph
    >>> graph = community_graph(150, 3, inside=0.5, outside=0.05, alpha0=0.0)
    >>> truth = graph.memberships.argmax(axis=1)
    >>> begun = np.where(truth < 2, 0, 1 + np.arange(150) % 2)
    >>> found = likelier_labels(graph.batch.to_csr(), begun, 3)
    >>> [np.unique(found[truth == one]).size for one in range(3)]
    [1, 1, 1]
    """
    best = _Found.of(adjacency, labels, k, None)
    for _ in range(2 * k):
        for begun in _exchanged(adjacency, best, k):
            tried = _Found.of(adjacency, begun.labels, k, best.corrected)
            if tried.likelihood > best.likelihood + _GAIN:
                best = tried
                break
        else:
            break
    return best.labels


@dataclass(frozen=True, eq=False)
class _Found:
    """Labels of nodes after some rounds, with the log-likelihood of the graph under these labels.

    `corrected` says whether the likelihood is that of a degree-corrected blockmodel.
    """

    labels: NDArray[np.int64]
    likelihood: float
    corrected: bool

    @classmethod
    def of(
        cls,
        adjacency: Any,
        labels: NDArray[np.int64],
        k: int,
        corrected: bool | None,
        rounds: int = ROUNDS,
    ) -> _Found:
        shares = settled_shares(adjacency, labels, k, rounds)
        blocks = Blocks.of_shares(adjacency @ shares, shares)
        how = blocks.corrected if corrected is None else corrected
        return cls(shares.argmax(axis=1), blocks.bound(shares, how), how)


def _exchanged(adjacency: Any, found: _Found, k: int) -> Iterator[_Found]:
    """Yield labels in which one community is split and two are merged.

    Large communities are split first.
    """
    sizes = np.bincount(found.labels, minlength=k)
    for chosen in np.argsort(-sizes, kind="stable").tolist():
        if sizes[chosen] < _FEWEST:
            break
        parts = _split(adjacency, found.labels, chosen, k)
        if parts is not None:
            more = settled_shares(adjacency, parts, k + 1, _ROUNDS).argmax(axis=1)
            yield max(
                (
                    _Found.of(adjacency, begun, k, found.corrected, _SHORT)
                    for begun in _merged(adjacency, more, k + 1, found.corrected)
                ),
                key=lambda one: one.likelihood,
            )


def _split(
    adjacency: Any, labels: NDArray[np.int64], chosen: int, k: int
) -> NDArray[np.int64] | None:
    """Give label k to some members of a community; return None if no edge joins two members.

    A member gets label k if its entry of a vector is positive. The vector is the leading
    eigenvector of the regularised adjacency matrix of the members (Amini, Chen, Bickel, Levina
    2013), after the part that degrees alone explain is projected out.
    """
    own = np.flatnonzero(labels == chosen)
    inner = adjacency[own][:, own].astype(np.float64)
    degrees = np.asarray(inner.sum(axis=1)).ravel()
    if not degrees.any():
        return None
    scale = 1 / np.sqrt(degrees + degrees.mean())
    scaled = sp.diags_array(scale) @ inner @ sp.diags_array(scale)
    common = scale * degrees
    common /= np.linalg.norm(common)
    vector = np.random.default_rng(0).standard_normal(own.size)
    for _ in range(_STEPS):
        vector = vector - common * (common @ vector)
        vector = scaled @ vector + vector  # adding `vector` makes all eigenvalues positive
        vector /= np.linalg.norm(vector)
    found = labels.copy()
    found[own[vector > 0]] = k
    return found


def _merged(
    adjacency: Any, labels: NDArray[np.int64], k: int, corrected: bool
) -> Iterator[NDArray[np.int64]]:
    """Yield labels in which two communities are merged.

    The merges that leave the highest likelihood come first.
    """
    tried: list[tuple[float, int, NDArray[np.int64]]] = []
    blocks = Blocks.of_labels(adjacency @ np.eye(k, dtype=np.int64)[labels], labels)
    for one, other in combinations(range(k), 2):
        place = np.arange(k)
        place[other] = one
        place[place > other] -= 1
        fewer = blocks.merged(place)
        tried.append((fewer.likelihood(corrected), -len(tried), place))
    for *_, place in sorted(tried, key=lambda one: one[:2], reverse=True)[:_MERGED]:
        yield place[labels]
