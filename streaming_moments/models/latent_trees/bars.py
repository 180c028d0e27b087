"""Bars: error bars of the tables and scores of a latent tree, from halves of the rows.

The statistics have the pairs of each half, but only the triples of all rows. A row is in one cell
of a triple of columns, so a random half of the rows is a binomial sample of each cell. This module
draws such a sample and fits it to the pairs of the half.
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
_FITTED = 1e-9  # largest error of a pair probability after fitting


@dataclass(frozen=True, eq=False)
class TreeBars:
    """Half the difference between fits of two halves of the rows.

    tables : (states of the parent, states) float64 for each node, standard errors of its
        probabilities given the state of its parent
    scores : standard errors of the scores, and of the lead of Chow-Liu's tree, "behind"
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
    """Bars of the tables of a tree; None if a half identifies fewer states.

    structure : tree of all rows
    counts : rows with the values of three columns, those of `views_of` all hidden nodes
    known : states of the hidden nodes from all rows; the states of a half are matched to them
    seed : seed of the sampled halves of the triples
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
    """Probabilities of three values nearest to counts in entropy, with the pairs of some rows.

    Iterative proportional fitting (Deming, Stephan 1940), until the pairs match, at most 200
    rounds. Independent samples can give pairs that no triple has; these never match completely.
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
    """Bars of the scores of the same trees under the pairs of each half.

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
    """States reordered to be nearest to those of the whole."""
    leaves = sorted(whole.given)
    own, other = (np.vstack([one.given[leaf] for leaf in leaves]) for one in (found, whole))
    apart = np.abs(own[:, None, :] - other[:, :, None]).sum(axis=0)
    order = optimize.linear_sum_assignment(apart)[1]
    given = {leaf: columns[:, order] for leaf, columns in found.given.items()}
    return replace(found, weights=found.weights[order], given=given)
