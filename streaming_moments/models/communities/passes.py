"""Passes over all edges, which raise the likelihood of a blockmodel.

What a pass sums over edges are integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.labels import Blocks, relabelled
from streaming_moments.statistics.edges.ends import EdgeBatch
from streaming_moments.statistics.edges.foundation import EdgesFoundation
from streaming_moments.statistics.expected_sums import IntegerSums

# A pass reuses sums that an earlier pass stored only if these constants have not changed since.
RULES = ("labels",)


@dataclass(frozen=True, eq=False)
class ExpectedNeighbours(IntegerSums):
    """Number of edges between each node and each community.

    outgoing : (n, k) int64, edges of a node to each community; in a directed graph, only edges that
        begin at the node
    incoming : (n, k) int64, edges from each community that end at a node, if the graph is directed;
        otherwise (0, k)
    documents, tokens : both the number of edges read
    """

    counted = "edges"

    outgoing: NDArray[np.int64]
    incoming: NDArray[np.int64]

    @classmethod
    def zero(cls, model: Blockmodel) -> ExpectedNeighbours:
        """Return empty sums."""
        n, k = model.memberships.shape
        incoming = n if model.directed else 0
        return cls(np.zeros((n, k), dtype=np.int64), np.zeros((incoming, k), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class LabelReader:
    """Reader that replaces both nodes of an edge by the most likely communities of these nodes.

    model : blockmodel with one community for each node
    """

    model: Blockmodel
    _labels: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_labels", self.model.memberships.argmax(axis=1))

    @classmethod
    def of(cls, model: Blockmodel, foundation: EdgesFoundation | None) -> LabelReader:
        """Make a reader of the edges of a store.

        Raises
        ------
        InvalidInput
            Edges of the store are directed, but the model does not record directions.
        """
        if foundation is not None and foundation.directed and not model.directed:
            raise InvalidInput(
                "an earlier version of this package fitted the model to directed edges, but did "
                "not record that they are directed; refit the model, then polish it"
            )
        return cls(model)

    def add(self, batch: EdgeBatch, total: ExpectedNeighbours) -> ExpectedNeighbours:
        """Add the edges of a batch to `total` in place."""
        found = total.counting(batch.documents, batch.documents)
        source, target = batch.ends.T
        back = total.incoming if self.model.directed else total.outgoing
        np.add.at(total.outgoing, (source, self._labels[target]), 1)
        np.add.at(back, (target, self._labels[source]), 1)
        return found


def improved(model: Blockmodel, expected: ExpectedNeighbours) -> Blockmodel:
    """Return the model after a pass over all edges, with new labels of all nodes.

    The `mixing` of the result is estimated from the labels before the pass. The new labels allow
    for the degrees of nodes if these differ by more than chance (`Blocks.corrected`). A node
    without edges gets the weights of the communities as its memberships.
    """
    labels = model.memberships.argmax(axis=1)
    incoming = expected.incoming if model.directed else None
    found = np.eye(model.n_topics)[relabelled(expected.outgoing, incoming, labels)]
    known = model.degrees > 0
    if known.any():
        found[~known] = found[known].mean(axis=0)
    return replace(
        model,
        memberships=found,
        mixing=Blocks.of_labels(expected.outgoing, labels).chances,
        weights=found.mean(axis=0),
    )
