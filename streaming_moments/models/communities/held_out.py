"""Held-out edges: scores the edges of each half of a graph under a model of the other half."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.communities.members import Members, members_of
from streaming_moments.models.halves import HeldOut
from streaming_moments.models.numbers.number_search import Trial
from streaming_moments.models.rows import Rows
from streaming_moments.models.three_view.columns import half_rows
from streaming_moments.statistics.edges.ends import part_name
from streaming_moments.statistics.views.statistics import ViewStatistics

# This share of the edge probabilities is spread over all pairs of nodes, so that no edge is
# impossible.
_SPREAD = 1e-3


def trial_of_edges(rows: Rows, options: Any) -> Trial:
    """Score the edges of each half under a model of the other half.

    The score is the mean log-likelihood of an edge: the probability of this edge under the model,
    as a share of the sum over all pairs of nodes.

    Raises
    ------
    NotIdentifiable
        A half identifies fewer communities.
    InvalidInput
        The statistics have no halves, or only sketches of the neighbours, or a half has no edge.
    """
    foundation = rows.foundation
    if not foundation.halves or not foundation.whole:
        lacks = "halves of the edges" if not foundation.halves else "whole lists of neighbours"
        raise InvalidInput(
            f"the statistics have no {lacks}, so the number of communities cannot be chosen",
            "give the number of communities, or count with halves and without "
            "{create.sketch_columns}",
        )
    fits = [members_of(half_rows(rows, odd), foundation, options) for odd in (False, True)]
    scores = []
    for odd in (False, True):
        fitted = rows.shared(fits[not odd])
        parts = half_rows(rows, odd).gathered("halves", _scored, fitted)
        edges = sum(count for _, count in parts)
        if not edges:
            raise InvalidInput(
                "one of the two halves has no edges, so nothing can be held out; count more "
                "edges, or give the number of communities"
            )
        scores.append(sum(score for score, _ in parts) / edges)
    return Trial(HeldOut(*scores))


def _scored(statistics: ViewStatistics, fitted: Members) -> tuple[float, int]:
    """Return the log-likelihood of the edge ends in a row block, and the number of edge ends."""
    counts = statistics.sums[part_name(0)][:, 1:]
    own = fitted.memberships[statistics.block.rows]
    chances = own @ fitted.mixing @ fitted.memberships.T
    n = len(fitted.memberships)
    seen = counts > 0
    shares = (1 - _SPREAD) * chances[seen] / _all_chances(fitted) + _SPREAD / (n * (n - 1))
    return float(counts[seen] @ np.log(shares)), int(counts.sum())


def _all_chances(fitted: Members) -> float:
    """Return the sum of the edge probabilities over all pairs of different nodes."""
    members: NDArray[np.float64] = fitted.memberships
    sums = members.sum(axis=0)
    loops = np.einsum("xa,ab,xb->", members, fitted.mixing, members)
    return max(float(sums @ fitted.mixing @ sums - loops), np.finfo(float).tiny)
