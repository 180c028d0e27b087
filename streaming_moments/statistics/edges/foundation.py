"""EdgesFoundation: nodes and sketch that define the statistics of edges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.statistics.base import Arrays
from streaming_moments.statistics.counts.basis import Basis
from streaming_moments.statistics.counts.vocabulary import Vocabulary
from streaming_moments.statistics.edges.ends import (
    MOST_NODES,
    PARTS,
    EdgeBatch,
    EdgeTotals,
    PreparedEdges,
    joined_edges,
    part_name,
)
from streaming_moments.statistics.row_block import RowBlock
from streaming_moments.statistics.views.statistics import EVEN, ViewStatistics, broken
from streaming_moments.statistics.views.three_views import (
    ThreeViews,
    describe_words,
    require_sketch,
    words_described,
)

# All neighbours can be stored in a graph of at most this many nodes n: 8 n^2 bytes, 32 MB.
WHOLE_NODES = 2048


@dataclass(frozen=True)
class EdgesFoundation(ThreeViews):
    """Definition of the statistics of the edges of a graph; a `Foundation`.

    The nodes are divided into three parts. For each part, the row of a node has the number of its
    edges to nodes of the part, and the sum of `Q_a` over these nodes a. The three parts are views
    of the node, which are independent given its memberships. In a small graph, the row of a node
    has the number of edges to each other node instead.

    Parameters
    ----------
    nodes : Vocabulary
        Names of the n nodes, by decreasing degree in the pilot.
    sketch : Basis, optional
        Q of the nodes; None stores all neighbours.
    directed : bool
        Whether only the target is a neighbour of the source, not the reverse.
    halves : bool
        Whether the sums of half of the edges are stored separately, for error bars.

    Examples
    --------
    >>> foundation = EdgesFoundation(Vocabulary(("a", "b", "c"), core=3), halves=False)
    >>> statistics = foundation.of_edges(EdgeBatch.of([[0, 1], [2, 0]], nodes=3))
    >>> statistics.sums["ends_0"].tolist()
    [[2, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]
    """

    nodes: Vocabulary
    sketch: Basis | None = None
    directed: bool = False
    halves: bool = True
    kind: ClassVar[str] = "edges"
    drawn: ClassVar[str] = "nodes and sketch"
    joins: ClassVar[bool] = False

    __repr__ = short_repr
    join = staticmethod(joined_edges)

    def __post_init__(self) -> None:
        if self.nodes.n_words >= MOST_NODES:
            raise InvalidInput(
                f"the graph has {self.nodes.n_words:,} nodes; give fewer than {MOST_NODES:,}"
            )
        if self.sketch is not None:
            require_sketch(self.sketch, self.nodes)
        elif self.nodes.n_words > WHOLE_NODES:
            raise InvalidInput(
                f"all neighbours of {self.nodes.n_words:,} nodes take "
                f"{8 * self.nodes.n_words**2:,} bytes; give a sketch for more than "
                f"{WHOLE_NODES:,} nodes"
            )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of nodes, sketch, direction, and whether halves are stored."""
        sketch = "" if self.sketch is None else self.sketch.fingerprint
        content = f"edges {self.nodes.fingerprint} {sketch} {self.directed} {self.halves}"
        return hashlib.sha256(content.encode()).hexdigest()

    @property
    def halves_by_content(self) -> bool:
        """False, because stores need not note it: the ends of an edge always decide its half."""
        return False

    @property
    def rows(self) -> int:
        """Number of nodes n."""
        return self.nodes.n_words

    @property
    def whole(self) -> bool:
        """Whether all neighbours are stored; if so, an edge in several shards counts once."""
        return self.sketch is None

    @property
    def n_parts(self) -> int:
        """Number of arrays of ends: one for each part of the nodes, or one for all."""
        return 1 if self.sketch is None else PARTS

    @property
    def words(self) -> dict[str, Vocabulary]:
        """The nodes."""
        return {"nodes": self.nodes}

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return arrays (Q, if any) and attributes (nodes, direction, and if halves are stored)."""
        arrays = {} if self.sketch is None else {"Q": self.sketch.matrix}
        attributes = {"nodes": describe_words(self.nodes), "directed": self.directed}
        return arrays, {**attributes, "halves_kept": self.halves}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, NDArray[Any]], attributes: Mapping[str, Any]) -> Self:
        """Restore the foundation from its `parts`.

        Raises
        ------
        LookupError, TypeError, InvalidInput
            The parts do not describe a foundation.
        """
        nodes = words_described(attributes["nodes"])
        sketch = None
        if "Q" in arrays:
            sketch = Basis(arrays["Q"], nodes.n_words, nodes.fingerprint)
        return cls(nodes, sketch, bool(attributes["directed"]), bool(attributes["halves_kept"]))

    def whole_shapes(self, block: RowBlock) -> dict[str, tuple[int, ...]]:
        """Return the shape of each row array of a block by name, without the arrays of halves."""
        columns = self.rows if self.sketch is None else self.sketch.columns
        size = block.size(self.rows)
        return {part_name(part): (size, 1 + columns) for part in range(self.n_parts)}

    def totals(self, tables: Arrays, rows: int | None = None) -> EdgeTotals:
        """Restore totals from `EdgeTotals.tables`."""
        return EdgeTotals.of_tables(tables)

    def prepared(self, batch: EdgeBatch) -> PreparedEdges:
        """Prepare the ends of a batch; raises the errors of `PreparedEdges.of`."""
        return PreparedEdges.of(batch, self.rows, self.sketch, self.directed, self.halves)

    def rejection_reason(self, totals: EdgeTotals) -> str | None:
        """Return why to reject the edges if none of them joins two known nodes, else None."""
        if totals.edges:
            return None
        return (
            "none of its edges joins two different nodes of the store, and "
            f"{totals.loops} join a node to itself; check the columns of the ends, or create a "
            "store from such shards"
        )

    def of_edges(self, batch: EdgeBatch, block: RowBlock = RowBlock()) -> ViewStatistics:
        """Return the statistics of edges; raises the errors of `prepared`."""
        return self.of([self.prepared(batch)], block)

    def problems(
        self, blocks: Iterable[tuple[RowBlock, Arrays]], totals: Any
    ) -> Iterator[tuple[RowBlock | None, str]]:
        """Yield the identities that stored statistics violate."""
        ends = 1 if self.directed else 2
        expected = {"": ends * totals.edges, EVEN: ends * totals.even_triples}
        found = dict.fromkeys(expected if self.halves else [""], 0)
        seen = False
        for block, sums in blocks:
            seen = True
            for problem in broken(sums):
                yield block, problem
            for half in found:
                own = [sums[half + part_name(part)][:, 0] for part in range(self.n_parts)]
                found[half] += int(np.sum(own))
        for half, number in found.items():
            if seen and number != expected[half]:
                yield None, f"{half}degrees add up to {number}, but the totals to {expected[half]}"
