"""Batches of different edges, and the same batches prepared for addition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.edges import kernels
from streaming_moments.statistics.halves import odd_half
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.statistics import EVEN, ViewTotals

# A graph has fewer nodes than this, so that one integer of 62 bits identifies an edge.
MOST_NODES = 1 << 31
# Nodes are divided into this many parts. The neighbours of a node that are in one part are one view
# of the node.
PARTS = 3


@dataclass(frozen=True)
class EdgeTotals(ViewTotals):
    """Totals over all edges; all row blocks of the same edges have the same totals.

    `triples` is the number of edges counted. `n_documents` also includes `without`, the number of
    skipped edges. Of the skipped edges, `loops` join a node to itself; the others are repeated.
    """

    loops: int = 0

    @property
    def edges(self) -> int:
        """Number of edges counted."""
        return self.triples

    @property
    def repeated(self) -> int:
        """Number of edges that were skipped because they had occurred earlier in the shard."""
        return self.without - self.loops


@dataclass(frozen=True, eq=False)
class EdgeBatch:
    """Different edges of a graph, without loops.

    Parameters
    ----------
    ends : (edges, 2) int32
        Source and target of each edge, as row numbers of the nodes.
    loops, repeated : int
        Numbers of skipped edges: of edges that join a node to itself, and of repeated edges.

    Examples
    --------
    >>> batch = EdgeBatch.of([[0, 1], [1, 0], [2, 2]], nodes=3)
    >>> batch.ends.tolist(), batch.loops, batch.repeated
    ([[0, 1]], 1, 1)
    """

    ends: NDArray[np.int32]
    loops: int = 0
    repeated: int = 0

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        ends: NDArray[np.int64] | Sequence[Sequence[int]],
        nodes: int,
        directed: bool = False,
    ) -> EdgeBatch:
        """Make a batch of edges in any order; skip loops and repeated edges."""
        given = np.asarray(ends, dtype=np.int64).reshape(-1, 2)
        keys, loops = edge_keys(given, nodes, directed)
        unique = np.unique(keys)
        return cls(ends_of(unique, nodes), loops, keys.size - unique.size)

    @property
    def documents(self) -> int:
        """Number of edges counted."""
        return len(self.ends)


def edge_keys(ends: NDArray[np.int64], nodes: int, directed: bool) -> tuple[NDArray[np.int64], int]:
    """Return an integer key of each edge that is not a loop, and the number of loops.

    Equal edges have equal keys.

    Examples
    --------
    >>> edge_keys(np.array([[2, 1], [1, 2], [0, 0]]), 3, directed=False)
    (array([5, 5]), 1)
    """
    kept = ends[ends[:, 0] != ends[:, 1]]
    source, target = kept[:, 0], kept[:, 1]
    if not directed:
        source, target = np.minimum(source, target), np.maximum(source, target)
    return source * nodes + target, len(ends) - len(kept)


def ends_of(keys: NDArray[np.int64], nodes: int) -> NDArray[np.int32]:
    """Return the (edges, 2) int32 ends of edges with these `edge_keys`."""
    return np.stack([keys // nodes, keys % nodes], axis=1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class PreparedEdges:
    """Ends of edges: for each end, its node and the node at the other end of the edge.

    nodes, others : (ends,) int32 row numbers of both nodes, sorted by the part of `others`
    even : (ends,) bool, whether the edge is in the even half, by its hash
    bounds : index of the first end of each part, and the number of ends
    sketch : Q; None if all neighbours are stored
    """

    nodes: NDArray[np.int32]
    others: NDArray[np.int32]
    even: NDArray[np.bool_]
    bounds: tuple[int, ...]
    sketch: Basis | None
    totals: EdgeTotals

    @classmethod
    def of(
        cls, batch: EdgeBatch, nodes: int, sketch: Basis | None, directed: bool, halves: bool
    ) -> PreparedEdges:
        """Prepare a batch for addition; raises InvalidInput for an end outside `0..n-1`."""
        ends = batch.ends
        if ends.size and not 0 <= ends.min() <= ends.max() < nodes:
            raise InvalidInput(
                f"ends of edges are {ends.min()} to {ends.max()}, but the graph has nodes 0 to "
                f"{nodes - 1}"
            )
        even = even_half(ends, directed)
        own, others, both = ends[:, 0], ends[:, 1], even
        if not directed:
            own, others = np.concatenate([own, others]), np.concatenate([others, own])
            both = np.concatenate([even, even])
        part = others % PARTS if sketch is not None else np.zeros(others.size, np.int32)
        order = np.argsort(part, kind="stable")
        parts = np.arange(PARTS + 1 if sketch is not None else 2)
        bounds = tuple(np.searchsorted(part[order], parts).tolist())
        without, held = batch.loops + batch.repeated, len(ends)
        evens = int(even.sum()) if halves else 0
        totals = EdgeTotals(held + without, held, held, without, evens, evens, batch.loops)
        return cls(own[order], others[order], both[order], bounds, sketch, totals)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return int(self.nodes.nbytes + self.others.nbytes + self.even.nbytes)

    @property
    def bound(self) -> float:
        """Largest amount that the batch adds to any entry of the row arrays."""
        return float(self.totals.bound)

    def add(self, arrays: Arrays, block: RowBlock) -> None:
        """Add the edges to the row arrays of a block."""
        for part, first in enumerate(self.bounds[:-1]):
            own = slice(first, self.bounds[part + 1])
            sums = arrays[part_name(part)]
            even_sums = arrays.get(EVEN + part_name(part), sums[:0])
            if self.sketch is None:
                kernels.add_neighbours(
                    self.nodes[own],
                    self.others[own],
                    self.even[own],
                    block.index,
                    block.step,
                    sums,
                    even_sums,
                )
            else:
                kernels.add_sketches(
                    self.nodes[own],
                    self.others[own],
                    self.even[own],
                    self._sketch,
                    block.index,
                    block.step,
                    sums,
                    even_sums,
                )

    @cached_property
    def _sketch(self) -> NDArray[np.int8]:
        """(core + 1, 1 + s) array: for each core node the number 1 and the node's row of Q.

        The last row is for all nodes outside the core.
        """
        assert self.sketch is not None
        rows = np.zeros((self.sketch.core + 1, 1 + self.sketch.columns), dtype=np.int8)
        rows[:, 0] = 1
        rows[:-1, 1:] = self.sketch.matrix
        return rows


def part_name(part: int) -> str:
    """Return the name of the array for a part of the nodes.

    Examples
    --------
    >>> part_name(2)
    'ends_2'
    """
    return f"ends_{part}"


def even_half(ends: NDArray[np.int32], directed: bool) -> NDArray[np.bool_]:
    """Return whether each edge is in the even half, (edges,) bool; only its ends decide.

    Examples
    --------
    >>> even = even_half(np.array([[1, 2], [2, 1]], dtype=np.int32), directed=False)
    >>> bool(even[0] == even[1])
    True
    """
    both = ends.astype(np.uint64)
    if not directed:
        both = np.sort(both, axis=1)
    return ~odd_half((both[:, 0] << np.uint64(32)) | both[:, 1])


def joined_edges(prepared: Sequence[PreparedEdges]) -> PreparedEdges:
    """Join some batches to one batch, in which the ends of each part are adjacent."""
    head = prepared[0]
    if len(prepared) == 1:
        return head
    totals = head.totals
    for one in prepared[1:]:
        totals = totals + one.totals
    arrays = []
    for name in ("nodes", "others", "even"):
        cut = [
            getattr(one, name)[one.bounds[part] : one.bounds[part + 1]]
            for part in range(len(head.bounds) - 1)
            for one in prepared
        ]
        arrays.append(np.concatenate(cut))
    bounds = tuple(np.sum([one.bounds for one in prepared], axis=0).tolist())
    return replace(
        head, nodes=arrays[0], others=arrays[1], even=arrays[2], bounds=bounds, totals=totals
    )
