"""Communities: mixed memberships of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.decompositions.forms import form_of
from streaming_moments.errors import NotIdentifiable
from streaming_moments.models.base import FitOptions, option, takes_n_topics
from streaming_moments.models.communities.filling import (
    EqualIndices,
    filled,
    pairs_by_rank,
    triples_by_model,
)
from streaming_moments.models.halves import START_ALPHA, HalfRows, require_halves, trusted_there
from streaming_moments.models.refinement import pair_rows
from streaming_moments.models.rows import InMemory, Rows
from streaming_moments.models.sweeps import both_rows, topic_rows
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.numerics.simplex import nearest_distributions
from streaming_moments.statistics.counts.batch import CountBatch
from streaming_moments.statistics.counts.statistics import statistic_shapes
from streaming_moments.statistics.counts.weighted import Statistics, WeightedStatistics
from streaming_moments.statistics.row_block import RowBlock, interleaved

# A list contains a neighbour only once, so no pair or triple of its neighbours is of equal nodes.
# In graphs with fewer nodes than this, a fit fills in such pairs and triples. In larger graphs,
# the bias because they are missing is below the noise.
FILLED_BELOW = 1000
# Most rounds in which a fit fills in pairs and triples of equal neighbours. Graphs with communities
# take about 6 rounds, others up to 26, and some do not converge.
_MOST_ROUNDS = 50
_SETTLED = 1e-3  # the rounds end if the filled-in triples change by a smaller share than this
_LEAST = 1e-12


@takes_n_topics
@dataclass(frozen=True, kw_only=True)
class CommunitiesOptions(TopicOptions):
    """Options of a fit of communities.

    The two nodes of an edge are in one another's lists of neighbours. So the two halves of the
    nodes, which a fit of topics uses to choose alpha0, have edges in common. For this reason alpha0
    cannot be chosen by held-out pairs of neighbours.
    """

    alpha0: float = option(
        "Sum of the Dirichlet parameters. 0: each node has one community; above 0: a mixture "
        "of communities.",
        0.1,
        form_of,
    )


@dataclass(frozen=True, eq=False, repr=False)
class Communities(TopicModel):
    """Communities of nodes, each a distribution over the neighbours of its members.

    A fit reads the list of neighbours of a node as a document, and a neighbour as a word. `topics`
    are the distributions of neighbours in each community. `weights` are the shares of the list
    entries that come from each community. `alpha0` is the sum of the Dirichlet parameters of the
    memberships; it is 0 if each node has one community. No list contains a neighbour twice, so with
    fewer than 1,000 nodes the fit fills in pairs and triples of equal neighbours.

    Examples
    --------
    >>> from streaming_moments import Basis, MomentStatistics
    >>> from streaming_moments.synthetic.graphs import community_graph, membership_error
    >>> graph = community_graph(200, communities=2, inside=0.5, outside=0.05, alpha0=0.0)
    >>> basis = Basis.from_pilot(graph.batch, max_topics=2)
    >>> statistics = MomentStatistics.of(graph.batch, basis)
    >>> options = Communities.Options(topics=2, alpha0=0.0, refine=0)
    >>> model = Communities.fit(InMemory((statistics,)), options)
    >>> membership_error(model.transform(graph.batch), graph.memberships) < 0.1
    True
    """

    name: ClassVar[str] = "communities"
    finds_topics: ClassVar[bool] = False
    numbered: ClassVar[str] = "communities"
    record: ClassVar[str] = "node"
    fewest: ClassVar[tuple[int, int]] = (0, 0)
    Options: ClassVar[type[FitOptions]] = CommunitiesOptions

    @classmethod
    def fit(cls, rows: Rows, options: Any) -> Self:
        """Fit the communities to statistics.

        Parameters
        ----------
        rows : Rows
            Statistics of lists of neighbours.
        options : TopicOptions
            Options as for a fit of topics. The errors are also the same as for that fit.
        """
        small = rows.basis.n_words < FILLED_BELOW and rows.basis.core == rows.basis.n_words
        if not small:
            return super().fit(rows, options)
        if options.alpha == "auto":
            require_halves(rows)
        blocks = rows.each("reading row blocks", _itself)
        made = rows.once("communities", cls._filled, blocks, options)
        halves = HalfRows.of(rows) if rows.halves else None
        near = START_ALPHA if options.alpha == "auto" else None
        made = made if halves is None else trusted_there(made, halves, near)
        return cls._brought(rows, made)

    @classmethod
    def _filled(cls, blocks: Sequence[Statistics], options: Any) -> Self:
        """Fit a small graph in one process.

        Each round fits the communities, then estimates from them the triples of equal neighbours
        that no list contains.
        """
        whole = _whole(blocks)
        lengths, form = whole.length_histogram, form_of(options.alpha0)
        if not lengths.C3:
            raise NotIdentifiable(
                "no node has three neighbours, which are needed to separate communities; count "
                "more edges"
            )
        last = both_rows if options.rows == "mean" else topic_rows
        sums = whole.pair_counts.astype(np.float64)
        first = whole.moment_counts / lengths.C1
        pairs = pairs_by_rank(sums, first, options.topics, form, options.seed)
        triples, settled = np.zeros(sums.shape), False
        for _ in range(_MOST_ROUNDS):
            known = InMemory((filled(whole, EqualIndices(pairs, triples)),))
            model = cls.of_form(known, form, options, last)
            if settled:
                break
            before, total = triples, float(lengths.C3)
            triples = triples_by_model(model.topics, model.weights, options.alpha0, total)
            settled = bool(np.abs(triples - before).sum() < _SETTLED * triples.sum())
        return model.likelier(pair_rows(known), options.refine) if options.refine else model

    def transform(
        self,
        batch: CountBatch,
        method: Literal["fixed-point", "gibbs"] = "fixed-point",
        seed: int | None = None,
        iterations: int = 100,
        smoothing: float = 1e-3,
    ) -> NDArray[np.float64]:
        """Estimate memberships of nodes from their lists of neighbours.

        By default, a membership is the distribution nearest to the least squares solution theta of
        `x = M theta`, where x is the list and M has the communities. On graphs with planted
        memberships, its error is smaller than that of maximum likelihood (L1 error 0.31 against
        0.34), and no larger than that of sampling.

        Parameters
        ----------
        batch : CountBatch
            (nodes, n) lists of neighbours.
        method, seed, iterations, smoothing
            "gibbs" samples the memberships as for topics. Only "gibbs" uses `seed`, `iterations`
            and `smoothing`.

        Returns
        -------
        (nodes, k) float64
            Rows on the simplex; a node without known neighbours gets the weights of the model.

        Raises
        ------
        ForeignStatistics
            The batch has another vocabulary.
        NotIdentifiable
            Two communities have the same neighbours.
        """
        if method != "fixed-point":
            return super().transform(batch, method, seed, iterations, smoothing)
        self.require_words(batch)
        gram = self.topics.T @ self.topics
        if np.linalg.cond(gram) > 1 / np.finfo(np.float64).eps:
            raise NotIdentifiable(
                "two communities have the same neighbours, so memberships are not identifiable; "
                "fit fewer communities"
            )
        solved = (batch.to_csr() @ self.topics) @ np.linalg.inv(gram)
        sums = solved.sum(axis=1, keepdims=True)
        known = (sums[:, 0] > _LEAST) & (solved.max(axis=1) > 0)
        found = np.tile(self.weights, (batch.documents, 1))
        found[known] = nearest_distributions((solved[known] / sums[known]).T).T
        return found


def _itself(statistics: Statistics) -> Statistics:
    return statistics


def _whole(blocks: Sequence[Statistics]) -> WeightedStatistics:
    """Join the statistics of all blocks as floats, without arrays that a fit of topics ignores."""
    names = statistic_shapes(blocks[0].basis, blocks[0].block, codocuments=False, halves=False)
    arrays = {
        name: interleaved([getattr(one, name) for one in blocks]).astype(np.float64)
        for name in names
    }
    totals: Any = blocks[0].length_histogram
    return WeightedStatistics(blocks[0].basis, RowBlock(), totals, later=(), **arrays)
