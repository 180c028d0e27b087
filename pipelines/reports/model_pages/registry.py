"""Registry of how pages and reports show models, with an entry for each model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from streaming_moments.models.base import Model
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.three_view.multi_view import MultiViewMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.reports.model_pages import clusters, factors, states, topics
from streaming_moments.pipelines.reports.model_pages.page_specs import PageSpec
from streaming_moments.pipelines.reports.model_pages.printed_model import (
    ModelView,
    states_view,
    topics_view,
)
from streaming_moments.pipelines.reports.page import TopicReport
from streaming_moments.pipelines.reports.tables import RELEVANCE_WEIGHT
from streaming_moments.quality.weight_bars import weight_bars
from streaming_moments.storage.store.store import MomentStore

_TOPICS = PageSpec(
    "topic",
    topics.parts_of,
    topics.with_topics,
    True,
    topics.documents_written,
    topics.sampled,
    topics.periods_of,
    topics_view,
    topics.facts_of,
    weight_bars,
    True,
)
_STATES = PageSpec("state", states.parts_of, states.with_states)
SHOWN: Mapping[str, PageSpec] = MappingProxyType(
    {
        TopicModel.name: _TOPICS,
        PoissonMixture.name: _TOPICS,
        IndependentIntensities.name: _TOPICS,
        Communities.name: _TOPICS,
        MultiViewMixture.name: _STATES,
        HiddenMarkovModel.name: _STATES,
        LatentTree.name: _STATES,
        Blockmodel.name: _STATES,
        BernoulliMixture.name: _STATES,
        GaussianMixture.name: PageSpec(
            "cluster", clusters.parts_of, clusters.with_clusters, True, clusters.rows_written
        ),
        IndependentFactors.name: PageSpec("factor", factors.parts_of, factors.with_factors),
    }
)


def shown_of(model: Model) -> PageSpec:
    """Return the functions that show a model; a model without an entry is shown by its states."""
    return SHOWN.get(model.name, _STATES)


def model_view(
    store: MomentStore,
    model: Any,
    words: int,
    weight: float = RELEVANCE_WEIGHT,
    labels: Mapping[int, str] = MappingProxyType({}),
) -> ModelView:
    """Return the view of a model; `store` has the foundation of the model.

    words : number of words shown of each part
    weight : how words of topics are ranked: 1 by the probability in the topic, 0 by the ratio of
        this probability to the probability in the corpus
    labels : labels of the parts, by number
    """
    shown = shown_of(model)
    view = shown.view or partial(states_view, shown.what)
    return view(store, model, words, weight, labels)


def reported(
    store: MomentStore, name: str, model: Model, found: Mapping[int, Any] = MappingProxyType({})
) -> tuple[TopicReport, ...]:
    """Return the parts of a model as reports store them.

    A state contains only what is needed to name it and to find it again in other models. States
    without words are left out. `found` has the examples of each part, by number.
    """
    return shown_of(model).parts(store, name, model, found)
