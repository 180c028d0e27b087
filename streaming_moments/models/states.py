"""States: topics, hidden states or clusters of any model, in a form that can be matched.

If only some models have a feature, a Protocol describes it, and a table such as `WITH_TABLES` has
a line for each of these models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel


class WithTables(Protocol):
    """Model whose states are distributions over the words of one view or of several."""

    @property
    def tables(self) -> dict[str, NDArray[np.float64]]:
        """(n, k) distributions over the n words of each view, by name of the view."""


WITH_TABLES: Mapping[str, type[WithTables]] = MappingProxyType(
    {one.name: one for one in (MultiViewMixture, HiddenMarkovModel, Blockmodel, BernoulliMixture)}
)


@dataclass(frozen=True, eq=False)
class States:
    """Topics or hidden states as distributions over words.

    columns : (n, k) float64, a distribution for each state; those of several views are stacked with
        equal shares
    bars : (k,) float64, expected L1 error of each distribution
    """

    columns: NDArray[np.float64]
    bars: NDArray[np.float64] | None = None

    @property
    def number(self) -> int:
        """Number of states."""
        return int(self.columns.shape[1])


@dataclass(frozen=True, eq=False)
class Clusters:
    """Components of numeric rows.

    means : (k, d) float64, in the unit of the rows
    variances : (k, 1) or (k, d) float64, one for all coordinates, or one for each
    bars : (k,) float64, expected distance of each mean from the true one
    """

    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    bars: NDArray[np.float64] | None = None

    @property
    def number(self) -> int:
        """Number of clusters."""
        return len(self.means)


def _topics(model: TopicModel) -> States:
    return States(model.topics, model.topic_bars)


def _clusters(model: GaussianMixture) -> Clusters:
    return Clusters(model.means, model.variances, model.bars)


def _by_tables(model: Any) -> States:
    tables = [*model.tables.values()]
    return States(np.vstack(tables) / len(tables), getattr(model, "bars", None))


def _components(model: BernoulliMixture) -> States:
    return States(model.shares, model.bars)


MATCHED: Mapping[str, Callable[[Any], States | Clusters]] = MappingProxyType(
    {
        **{one.name: _topics for one in (TopicModel, PoissonMixture, IndependentIntensities)},
        Communities.name: _topics,
        GaussianMixture.name: _clusters,
        **dict.fromkeys(WITH_TABLES, _by_tables),
        BernoulliMixture.name: _components,
    }
)


def states_of(model: Any) -> States | Clusters | None:
    """Return the topics, hidden states or clusters of a model; None if it has none of these."""
    found = MATCHED.get(model.name)
    return None if found is None else found(model)


def compares_states(model: type[Any]) -> bool:
    """Whether the number of states can be chosen by comparing the states of the two halves.

    This is false for topics, which have a search of their own.
    """
    return bool(model.holds_out) and not model.finds_topics
