"""Models: all that can be fitted and kept, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from streaming_moments.errors import InvalidInput
from streaming_moments.models.communities.blockmodel import Blockmodel
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.poissons.independent_intensities import IndependentIntensities
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.topics import TopicModel
from streaming_moments.models.views.hidden_markov import HiddenMarkovModel
from streaming_moments.models.views.multi_view import MultiViewMixture

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
)
MODELS: Mapping[str, Any] = MappingProxyType({one.name: one for one in _ALL})
DEFAULT_MODEL = TopicModel.name  # also what a stored model is that does not say
# What a model is on statistics of another kind.
COUNTERPARTS: Mapping[tuple[str, str], Any] = MappingProxyType(
    {(Communities.name, Blockmodel.kind): Blockmodel}
)


def models_of(kind: str) -> tuple[Any, ...]:
    """The classes of models that are fitted on statistics of a kind."""
    return tuple(one for one in _ALL if one.kind == kind)


def model_named(name: str) -> Any:
    """The class of models of that name.

    Raises
    ------
    InvalidInput
        None has it.

    Examples
    --------
    >>> model_named("topics").__name__
    'TopicModel'
    """
    if name not in MODELS:
        raise InvalidInput(f'model is "{name}"; choose {", ".join(MODELS)}')
    return MODELS[name]
