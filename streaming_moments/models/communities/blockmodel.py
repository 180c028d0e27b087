"""Blockmodel: mixed memberships of all nodes of a graph, and edge probabilities of communities."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, likeliest
from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.base import (
    Description,
    FitOptions,
    option,
    require_joint,
    takes_n_topics,
)
from streaming_moments.models.communities.held_out import trial_of_edges
from streaming_moments.models.communities.members import Members, members_of
from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.provenance import Polishing
from streaming_moments.models.rows import Rows
from streaming_moments.models.stored import StoredModel, stored_as
from streaming_moments.models.three_view.columns import half_rows
from streaming_moments.numerics.lazy_scipy import optimize
from streaming_moments.printing.plural import agreeing
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.views.statistics import ViewStatistics

# If the statistics have whole lists of neighbours, a fit to n nodes holds this many (n, n) arrays:
# sums, lists, pairs, and moments with estimates at equal indices.
_WHOLE_COPIES = 12


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class BlockmodelOptions(FitOptions):
    """Options of a fit to the edges of a graph."""

    alpha0: float = option(
        "Sum of the Dirichlet parameters; 0: each node has one community.", 0.0, form_of
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_joint(self.method, "three views")

    @property
    def summary(self) -> str:
        """Summary of the options for logs."""
        return f"{self.topics} communities"


@dataclass(frozen=True, eq=False, repr=False)
class Blockmodel(StoredModel):
    """Mixed membership blockmodel (Airoldi, Blei, Fienberg, Xing 2008), from sums of edges.

    An edge between nodes x and y has the probability `pi_x' B pi_y`. Communities are ordered by
    decreasing weight.

    Parameters
    ----------
    memberships : (n, k) float64
        pi: for each node (row), a distribution over communities. The row of a node without edges is
        `weights`.
    mixing : (k, k) float64
        B: probability of an edge between members of two communities. In a directed graph, the edge
        goes from the community of the row to that of the column.
    degrees : (n,) int64
        Number of edges of each node. In a directed graph, only outgoing edges count.
    weights : (k,) float64
        Mean of the memberships of all nodes.
    alpha0 : float
        Sum of the Dirichlet parameters. With 0, each node has one community.
    spectrum : (k,) float64
        Eigenvalues of the moment of pairs of neighbours. If neighbours are sketched, singular
        values of the moment of pairs of views.
    repeated : int
        Number of edge ends that occur in several shards. They count once if the store has whole
        lists of neighbours, not sketches.
    outside : float
        Largest distance of an entry of B from the range 0 to 1, before entries were clipped.
    node_bars, mixing_bars : (n,) and (k, k) float64, optional
        Expected L1 error of the memberships of each node, and standard errors of B. They need
        statistics with halves of the edges.
    directed : bool
        Whether edges have a direction.
    polishing : Polishing, optional
        How the model was polished. Polishing does not change error bars.
    documents : int
        Number of edges in the fit.
    since, until, half_life
        As for any model.

    Examples
    --------
    >>> from streaming_moments.models.rows import InMemory
    >>> from streaming_moments.statistics.counts.vocabulary import Vocabulary
    >>> from streaming_moments.statistics.edges.ends import EdgeBatch
    >>> from streaming_moments.synthetic.graphs import community_graph, membership_error
    >>> graph = community_graph(150, communities=2, inside=0.5, outside=0.05, alpha0=0.0)
    >>> nodes = Vocabulary(tuple(map(str, range(150))), core=150)
    >>> foundation = EdgesFoundation(nodes, halves=False)
    >>> statistics = foundation.of_edges(EdgeBatch.of(graph.edges, nodes=150))
    >>> model = Blockmodel.fit(InMemory((statistics,)), Blockmodel.Options(topics=2))
    >>> membership_error(model.memberships, graph.memberships) < 0.1
    True
    """

    name: ClassVar[str] = "blockmodel"
    kind: ClassVar[str] = EdgesFoundation.kind
    Options: ClassVar[type[FitOptions]] = BlockmodelOptions
    compares_halves: ClassVar[bool] = True
    numbered: ClassVar[str] = "communities"
    record: ClassVar[str] = "edge"
    holds_out: ClassVar[str] = "edges"
    halves_give: ClassVar[str] = "node_bars"

    memberships: NDArray[np.float64] = field(metadata=stored_as(states=(1,)))
    mixing: NDArray[np.float64] = field(metadata=stored_as(states=(0, 1)))
    degrees: NDArray[np.int64]
    weights: NDArray[np.float64] = field(metadata=stored_as(states=(0,)))
    _: KW_ONLY
    alpha0: float = 0.0
    spectrum: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    repeated: int = 0
    outside: float = 0.0
    directed: bool = False
    polishing: Polishing | None = None
    node_bars: NDArray[np.float64] | None = field(default=None, metadata=stored_as(together="bars"))
    mixing_bars: NDArray[np.float64] | None = field(
        default=None, metadata=stored_as(states=(0, 1), together="bars")
    )

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit communities to the statistics of the edges of a graph.

        Parameters
        ----------
        rows : Rows
            Statistics of the edges of a graph.
        options : BlockmodelOptions
            Options of the fit.

        Raises
        ------
        NotIdentifiable
            The edges identify fewer communities; the message says how many.
        """
        foundation: EdgesFoundation = rows.foundation
        found = members_of(rows, foundation, options)
        bars = _bars(rows, foundation, options, found) if foundation.halves else None
        node_bars, mixing_bars = bars or (None, None)
        edges = rows.gathered("edges", _edges)[0]
        return cls(
            found.memberships,
            found.mixing,
            found.degrees,
            found.memberships.mean(axis=0),
            alpha0=options.alpha0,
            spectrum=found.spectrum,
            documents=edges,
            repeated=found.repeated,
            outside=found.outside,
            directed=foundation.directed,
            node_bars=node_bars,
            mixing_bars=mixing_bars,
        )

    @classmethod
    def trial(cls, rows: Rows, options: Any) -> Trial:
        """Score the edges of each half under a model of the other half.

        Raises the errors of `trial_of_edges`.
        """
        return trial_of_edges(rows, options)

    @classmethod
    def fit_bytes(cls, foundation: EdgesFoundation, options: Any) -> int:
        """Return the bytes that a fit holds: memberships of the graph and its halves, and pairs."""
        rows = 8 * foundation.rows * int(options.topics)
        return 8 * (rows + (_WHOLE_COPIES * foundation.rows**2 if foundation.whole else 0))

    @property
    def n_topics(self) -> int:
        """Number of communities k."""
        return self.weights.size

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) share that each node has in the edges of each community."""
        own = self.memberships * self.degrees[:, None]
        sums = own.sum(axis=0)
        return {"nodes": own / np.where(sums > 0, sums, 1.0)}

    def read(self, batch: NDArray[np.int64], method: str = "", seed: int | None = None) -> Columns:
        """Return number of edges, community, memberships and error of each node, given by index.

        The index -1 is an unknown node. A node without an edge has no community.
        """
        none, own, degrees = batch < 0, self.memberships[batch], self.degrees[batch]
        # convert degrees to integers, because a model that was read from a store has them as floats
        degrees = degrees.astype(np.int64)
        bars = np.zeros(len(batch)) if self.node_bars is None else self.node_bars[batch]
        return Columns.of(
            edges=Column(degrees, none),
            community=likeliest(own, none | (degrees == 0)),
            memberships=Column(own, none),
            error=Column(bars, none | (self.node_bars is None)),
        )

    def described(self) -> Description:
        """Return a description of the model: communities, edge probabilities and error bars."""
        columns = {"weight": self.weights, "inside": np.diag(self.mixing).copy()}
        facts: dict[str, Any] = {
            "alpha0": self.alpha0,
            "nodes": len(self.memberships),
            "repeated": self.repeated,
            "outside": self.outside,
            "mixing": self.mixing.tolist(),
        }
        lone = int((self.degrees == 0).sum())
        sentence = f"memberships of {len(self.memberships):,} nodes"
        if self.node_bars is not None and self.mixing_bars is not None:
            columns["error bar"] = np.diag(self.mixing_bars).copy()
            known = self.node_bars[self.degrees > 0]
            facts["membership_error"] = float(known.mean()) if known.size else None
            facts["mixing_error"] = self.mixing_bars.tolist()
            if known.size:
                sentence += f", expected L1 error {known.mean():.2g}"
        cautions = []
        if self.repeated:
            sentence += f"; {self.repeated:,} edge ends occur in several shards and count once"
        if self.outside:
            clipped = (
                f"the mixing matrix had entries up to {self.outside:.2g} outside 0 to 1 and was "
                "clipped"
            )
            sentence += f"; {clipped}"
            if self.mixing_bars is None or self.outside > self.mixing_bars.max():
                sentence += ": there may be fewer communities"
                cautions.append(f"{clipped}: there may be fewer communities")
        if lone:
            cautions.append(
                f"{agreeing(lone, 'node has', 'nodes have')} no edge; without edges "
                "memberships are the weights of the communities"
            )
            sentence += f"; {cautions[-1]}"
        if self.polishing is not None:
            facts["polishing"] = asdict(self.polishing)
            sentence += f"; {self.polishing.sentence}; error bars are of the fit before that"
        return Description(facts, columns, sentence, cautions=tuple(cautions))


def _bars(
    rows: Rows, foundation: EdgesFoundation, options: Any, whole: Members
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Estimate errors of memberships and edge probabilities from a fit to each half of the edges.

    The errors are (n,) L1 errors of memberships, and (k, k) standard errors of B.

    Returns None if a half identifies fewer communities.
    """
    try:
        halves = [members_of(half_rows(rows, odd), foundation, options) for odd in (False, True)]
    except NotIdentifiable:
        return None
    even, odd = (one.reordered(_order_like(one, whole)) for one in halves)
    apart = np.abs(even.memberships - odd.memberships).sum(axis=1)
    # Halve the difference of memberships, but not that of edge probabilities: a half has only half
    # of the edges, so its edge probabilities are already half as large.
    return apart / 2, np.abs(even.mixing - odd.mixing)


def _order_like(found: Members, whole: Members) -> NDArray[np.int64]:
    """Match a community of `found` to each community of `whole`; return their indices.

    The sum of L1 distances between the memberships of matched communities is smallest.
    """
    apart = np.array(
        [np.abs(found.memberships - own[:, None]).sum(axis=0) for own in whole.memberships.T]
    )
    return np.asarray(optimize.linear_sum_assignment(apart)[1], dtype=np.int64)


def _edges(statistics: ViewStatistics) -> int:
    return int(statistics.totals.triples)
