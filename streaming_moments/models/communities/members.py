"""Members: fit a blockmodel (memberships of nodes, edge probabilities of communities) to edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.communities.node_views import (
    ExpectedEnds,
    expected_ends,
    turned_ends,
)
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.numerics.lazy_scipy import sp
from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import MomentStatistics
from streaming_moments.statistics.edges.ends import PARTS, part_name
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.row_block import interleaved
from streaming_moments.statistics.views.statistics import ViewStatistics

_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Members:
    """Blockmodel fitted to all edges, or to one half of them.

    The fields have the same meaning as those of `Blockmodel`.
    """

    memberships: NDArray[np.float64]
    mixing: NDArray[np.float64]
    degrees: NDArray[np.int64]
    spectrum: NDArray[np.float64]
    outside: float
    repeated: int = 0

    __sizeof__ = held_bytes

    def reordered(self, order: NDArray[np.int64]) -> Members:
        """Return the same result with the communities in another order."""
        mixing = self.mixing[np.ix_(order, order)]
        return replace(self, memberships=self.memberships[:, order], mixing=mixing)


def members_of(rows: Rows, foundation: EdgesFoundation, options: Any) -> Members:
    """Fit communities to the lists of neighbours, or to their sketches if the store has a sketch.

    Raises NotIdentifiable if the edges identify fewer communities than asked for.
    """
    if foundation.sketch is None:
        lists = rows.each("reading row blocks", _neighbours)
        made = rows.once("communities", _of_lists, lists, foundation.directed, options)
    else:
        ends = expected_ends(rows, foundation.sketch, options.topics, options.alpha0)
        parts = rows.each("memberships", _members, ends)
        made = rows.once("mixing", _of_members, parts, ends, foundation)
    found: Members = rows.value(made)
    return found


def _neighbours(statistics: ViewStatistics) -> tuple[NDArray[np.bool_], int]:
    """Return which nodes are neighbours of the nodes of a block, and the number of repeated edges.

    The result is a mask (nodes of the block, nodes of the graph).
    """
    counts = statistics.sums[part_name(0)][:, 1:]
    there = counts > 0
    return there, int(counts.sum() - there.sum())


def _of_lists(
    parts: Sequence[tuple[NDArray[np.bool_], int]], directed: bool, options: Any
) -> Members:
    """Fit communities to complete lists of neighbours; each list is read like a document."""
    there = sp.csr_array(interleaved([part for part, _ in parts]), dtype=np.int32)
    batch = CountBatch.from_csr(there)
    degrees = np.asarray(np.diff(batch.indptr), dtype=np.int64)
    if (degrees >= 3).sum() < 2:
        raise NotIdentifiable("fewer than two nodes have three neighbours; count more edges")
    basis = Basis.from_pilot(batch, options.topics, options.seed)
    statistics = MomentStatistics.of(batch, basis, halves=False)
    topical = TopicOptions(topics=options.topics, alpha0=options.alpha0, seed=options.seed)
    model = Communities.fit(InMemory((statistics,)), topical)
    memberships, M = model.transform(batch), model.topics
    memberships[degrees == 0] = memberships[degrees > 0].mean(axis=0)
    # The expected edges of a community to all nodes are its column of M times an unknown factor c.
    # Least squares coefficients of the lists, divided by c, are memberships that sum to 1. The edge
    # probabilities B of communities are estimated from these, because projection onto the simplex
    # shrinks `memberships`.
    gram = M.T @ M
    solved = (there @ M) @ np.linalg.inv(gram)
    seen = M.T @ solved
    inverse = np.linalg.lstsq(seen, M.sum(axis=0))[0]
    lone = int((inverse <= 0).sum())
    if lone:
        raise NotIdentifiable(
            f"{lone} of {len(inverse)} communities have members without neighbours; fit fewer "
            "communities"
        )
    mixed = _mixing(seen * inverse, gram / inverse, directed)
    repeated = sum(number for _, number in parts)
    return _ordered(memberships, mixed, degrees, model.spectrum, repeated)


def _members(
    statistics: ViewStatistics, ends: ExpectedEnds
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return (r, k) memberships of a block's nodes, and the degrees of these nodes.

    The memberships are by least squares. They may be negative and need not sum to 1.
    """
    turned = np.hstack(turned_ends(statistics, ends.frames))
    degrees = np.sum([array[:, 0] for array in _ends(statistics)], axis=0)
    return turned @ np.linalg.pinv(ends.columns).T, degrees


def _ends(statistics: ViewStatistics) -> list[NDArray[np.int64]]:
    return [statistics.sums[part_name(part)] for part in range(PARTS)]


def _of_members(
    parts: Sequence[tuple[NDArray[np.float64], NDArray[np.int64]]],
    ends: ExpectedEnds,
    foundation: EdgesFoundation,
) -> Members:
    """Join the memberships of all blocks, and fit the mixing matrix.

    The mixing matrix B is such that the memberships and B together give the expected edges in
    `ends`.
    """
    solved = interleaved([part for part, _ in parts])
    degrees = interleaved([own for _, own in parts])
    sums = solved.sum(axis=1)
    known = (degrees > 0) & (sums > _LEAST) & (solved.max(axis=1) > 0)
    if not known.any():
        raise NotIdentifiable(
            "no node has enough edges to estimate its memberships; count more edges"
        )
    memberships = np.empty_like(solved)
    memberships[known] = nearest_distributions((solved[known] / sums[known, None]).T).T
    memberships[~known] = memberships[known].mean(axis=0)
    # Sum the least squares memberships `solved` over the nodes of each part. Do not use
    # `memberships`: projection onto the simplex shrinks them, which would inflate edge
    # probabilities within communities.
    sketch: Any = foundation.sketch
    sides = []
    for part, frame in enumerate(ends.frames):
        own, Q = solved[part::PARTS], sketch.matrix[part::PARTS]
        seen = np.vstack([own.sum(axis=0), Q.T.astype(np.float64) @ own[: len(Q)]])
        sides.append(frame.T @ seen)
    mixed = _mixing(np.vstack(sides), ends.columns, foundation.directed)
    return _ordered(memberships, mixed, degrees, ends.spectrum)


def _mixing(
    members: NDArray[np.float64], ends: NDArray[np.float64], directed: bool
) -> NDArray[np.float64]:
    """Solve `ends = members B'` for B, the edge probabilities of communities, by least squares.

    B is symmetric if edges are undirected.
    """
    found = np.linalg.lstsq(members, ends)[0].T
    return np.asarray(found if directed else (found + found.T) / 2)


def _ordered(
    memberships: NDArray[np.float64],
    mixing: NDArray[np.float64],
    degrees: NDArray[np.int64],
    spectrum: NDArray[np.float64],
    repeated: int = 0,
) -> Members:
    """Return the result with communities ordered by decreasing weight.

    Edge probabilities are clipped to lie between 0 and 1.
    """
    drawn = np.clip(mixing, 0.0, 1.0)
    outside = float(np.abs(mixing - drawn).max())
    told = outside if outside > _LEAST else 0.0
    found = Members(memberships, drawn, degrees, spectrum, told, repeated)
    return found.reordered(np.argsort(-memberships.mean(axis=0), kind="stable"))
