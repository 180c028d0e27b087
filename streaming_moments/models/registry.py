"""Registry of all models, and table of the commands, pages and calls that do not support some."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from streaming_moments.errors import InvalidInput
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

T = TypeVar("T")

_ALL: tuple[Any, ...] = (
    TopicModel,
    PoissonMixture,
    IndependentIntensities,
    MultiViewMixture,
    HiddenMarkovModel,
    LatentTree,
    Communities,
    GaussianMixture,
    IndependentFactors,
    Blockmodel,
    BernoulliMixture,
)
MODELS: Mapping[str, Any] = MappingProxyType({one.name: one for one in _ALL})
DEFAULT_MODEL = TopicModel.name  # the class of stored models that do not name their class
# The model that takes the place of another one for some kind of statistics. The keys are the name
# of the other model, and the kind that it does not read.
COUNTERPARTS: Mapping[tuple[str, str], Any] = MappingProxyType(
    {(Communities.name, Blockmodel.kind): Blockmodel}
)
# Why a command, page or call does not support a model, and what to do instead. The outer key is the
# name of the command, page or call, and the inner key is the name of the model. All other models
# are supported.
ABSENT: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "transform": {
            "blockmodel": "describes nodes of a graph, not shards; `streaming-moments memberships` "
            "writes its results"
        },
        "diff": dict.fromkeys(
            ("latent_tree", "factors"),
            "has no topics, states or clusters to match with those of another model; "
            "`streaming-moments topics --model` shows each",
        ),
        "polish": {
            "independent": "has no passes over records; polish a model of topics, poisson, "
            "communities, blockmodel, hmm, views, latent_tree, gaussian_mixture, factors or "
            "bernoulli_mixture",
        },
        "estimator": dict.fromkeys(
            ("poisson", "independent", "blockmodel"),
            "has no estimator; fit it by `Store.refit_as`",
        ),
    }
)


def models_of(kind: str) -> tuple[Any, ...]:
    """Return the classes of models that are fitted to statistics of this kind."""
    return tuple(one for one in _ALL if one.kind == kind)


def model_named(name: str) -> Any:
    """Return the class of models with this name.

    Raises
    ------
    InvalidInput
        No model has this name.

    Examples
    --------
    >>> model_named("topics").__name__
    'TopicModel'
    """
    if name not in MODELS:
        raise InvalidInput(f'model is "{name}"; choose {", ".join(MODELS)}')
    return MODELS[name]


def row_of(rows: Mapping[str, T], model: str, door: str) -> T:
    """Return the entry of a model in the table `rows`.

    `door` is the command, page or call that reads the table. Raises InvalidInput, with a remedy, if
    the table has no entry for the model.

    Examples
    --------
    >>> row_of({"topics": 1}, "topics", "transform")
    1
    """
    if model in rows:
        return rows[model]
    others = f"is not supported by {door}; give one of the models {', '.join(rows)}"
    raise InvalidInput(f"model {model} {ABSENT.get(door, {}).get(model, others)}")
