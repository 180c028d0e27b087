"""Bars: how far the tables and scores of a latent tree can be trusted, from halves of the rows.

The state keeps the pairs of each half, and the triples of all rows. A row stands in one cell of a
triple of columns, so a random half of the rows is a binomial share of each cell; that is drawn, and
fitted to the pairs that the half has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import NotIdentifiable
from streaming_moments.lazy_imports import LazyModule
from streaming_moments.models.latent_trees.pair_tables import PairTables
from streaming_moments.models.latent_trees.parameters import (
    NodeStates,
    Triple,
    hidden_states,
    tree_of,
    views_of,
)
from streaming_moments.models.latent_trees.structure import Structure

if TYPE_CHECKING:
    import scipy.optimize as optimize
else:
    optimize = LazyModule("scipy.optimize")

_MOST_ROUNDS = 200
_FITTED = 1e-9  # how far a probability of a pair may be off


@dataclass(frozen=True, eq=False)
class TreeBars:
    """Half of what two halves of the rows differ by.

    tables : (states of the parent, states) float64 each, standard errors of the probabilities of
        each node given its parent's state
    scores : of the scores, and of the lead of Chow-Liu's tree, "behind"
    """

    tables: tuple[NDArray[np.float64], ...]
    scores: Mapping[str, float]


def table_bars(
    structure: Structure,
    halves: tuple[PairTables, PairTables],
    counts: Mapping[Triple, NDArray[np.float64]],
    known: Mapping[int, NodeStates],
    smoothing: float,
    seed: int,
) -> tuple[NDArray[np.float64], ...] | None:
    """Bars of the tables of a tree of that structure; None where a half does not hold its states.

    structure : of all rows
    counts : rows with the values of three columns, those of `views_of` all hidden nodes
    known : states of the hidden nodes, of all rows; the states of a half get their numbers
    seed : of the halves of the triples
    """
    rng = np.random.default_rng(seed)
    whole = {views: np.rint(counts[views]).astype(np.int64) for views in sorted(counts)}
    even = {views: rng.binomial(rows, 0.5) for views, rows in whole.items()}
    drawn = even, {views: rows - even[views] for views, rows in whole.items()}
    states = next(iter(known.values())).weights.size
    found = []
    for tables, own in zip(halves, drawn, strict=True):
        try:
            triples = {
                node: {views: fitted_to_pairs(own[views], tables, views) for views in tried}
                for node, tried in views_of(structure).items()
            }
            told = hidden_states(structure, tables, triples, states)
        except NotIdentifiable:
            return None
        alike = {node: _numbered_like(one, known[node]) for node, one in told.items()}
        found.append(tree_of(structure, tables, alike, smoothing)[0].tables)
    return tuple(np.abs(one - other) / 2 for one, other in zip(*found, strict=True))


def fitted_to_pairs(
    triple: NDArray[np.int64], tables: PairTables, views: Triple
) -> NDArray[np.float64]:
    """Probabilities of three values, nearest to counts with the pairs of some rows, by entropy.

    Iterative proportional fitting (Deming, Stephan 1940), until it has the pairs or for 200 rounds.
    Halves drawn apart may give pairs that no triple can have: these are never all matched.
    Raises NotIdentifiable if no row has two of the columns.
    """
    found = triple / max(triple.sum(), 1)
    wanted = [
        (axis, tables.joint(views[one], views[other]))
        for axis, (one, other) in zip((2, 1, 0), combinations(range(3), 2), strict=True)
    ]
    for _ in range(_MOST_ROUNDS):
        off = 0.0
        for axis, joint in wanted:
            sums = found.sum(axis=axis)
            off = max(off, float(np.abs(sums - joint).max()))
            factors = np.divide(joint, sums, out=np.zeros_like(sums), where=sums > 0)
            found = found * np.expand_dims(factors, axis)
        if off <= _FITTED:
            break
    return np.asarray(found / max(found.sum(), np.finfo(float).tiny))


def score_bars(scores: tuple[Mapping[str, float], Mapping[str, float]]) -> dict[str, float]:
    """Bars of the scores of the same trees by the pairs of each half.

    Examples
    --------
    >>> even = {"latent_tree": -1.0, "chow_liu": -1.5}
    >>> score_bars((even, {"latent_tree": -1.5, "chow_liu": -1.75}))
    {'latent_tree': 0.25, 'chow_liu': 0.125, 'behind': 0.125}
    """
    even, odd = scores
    found = {name: abs(even[name] - odd[name]) / 2 for name in even}
    behind = [one["chow_liu"] - one["latent_tree"] for one in scores]
    return {**found, "behind": abs(behind[0] - behind[1]) / 2}


def _numbered_like(found: NodeStates, whole: NodeStates) -> NodeStates:
    """With the states in the order in which they are nearest to others."""
    leaves = sorted(whole.given)
    own, other = (np.vstack([one.given[leaf] for leaf in leaves]) for one in (found, whole))
    apart = np.abs(own[:, None, :] - other[:, :, None]).sum(axis=0)
    order = optimize.linear_sum_assignment(apart)[1]
    given = {leaf: columns[:, order] for leaf, columns in found.given.items()}
    return replace(found, weights=found.weights[order], given=given)
