"""Passes: how passes over records polish each family of models, one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from streaming_moments.errors import InvalidInput
from streaming_moments.models.bernoullis import passes as set_passes
from streaming_moments.models.bernoullis.bernoulli_mixture import BernoulliMixture
from streaming_moments.models.communities.model import Communities
from streaming_moments.models.mixtures import passes as mixture_passes
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.passes import polishing
from streaming_moments.models.passes.stopping import OF_DOCUMENTS, OF_EM
from streaming_moments.models.poissons.poisson_mixture import PoissonMixture
from streaming_moments.models.registry import row_of
from streaming_moments.models.topics import TopicModel


class ExpectedSums(Protocol):
    """Expected sums of a pass over records, in integers, so that they are exact in any order."""

    @property
    def documents(self) -> int:
        """Number of records read, and of tokens or the like in them."""

    @property
    def tokens(self) -> int: ...

    @classmethod
    def zero(cls, model: Any) -> Self:
        """Empty sums."""

    def add(self, other: Self) -> Self:
        """Sums including those of another, which are added in place."""

    def parts(self) -> tuple[dict[str, NDArray[np.int64]], dict[str, int]]:
        """Arrays and numbers for `from_parts`."""

    @classmethod
    def from_parts(cls, arrays: dict[str, NDArray[np.int64]], numbers: dict[str, Any]) -> Self:
        """Sums from their `parts`."""


@dataclass(frozen=True)
class Passes:
    """How passes polish the models of a family.

    sums : class of the expected sums, `ExpectedSums`
    reader : `reader(model, foundation).add(batch, sums)` adds the records of a batch to sums
    improved : `improved(model, sums, foundation, alpha)` is the model after a pass
    arrays : names of the arrays of a model that the sums depend on
    rules : rules by which records are read
    shape : (rows, columns) of the tables of a model, for memory plans
    require : `require(model, alpha)` raises InvalidInput if the model has no alpha to learn
    settles : share of the error bars that the last pass of "auto" may change, as of `settled`
    of_counts : whether records are documents or sets, which need no foundation
    """

    sums: type[Any]
    reader: Callable[[Any, Any], Any]
    improved: Callable[[Any, Any, Any, bool], Any]
    arrays: tuple[str, ...]
    rules: tuple[Any, ...]
    shape: Callable[[Any], tuple[int, int]]
    require: Callable[[Any, bool], None]
    settles: float
    of_counts: bool = False


def _refuse_alpha(model: Any, alpha: bool) -> None:
    if alpha:
        raise InvalidInput(f"model {model.name} has no alpha to learn; leave alpha out")


_OF_DOCUMENTS = Passes(
    polishing.ExpectedCounts,
    lambda model, foundation: polishing.Reader(model),
    lambda model, expected, foundation, alpha: polishing.improved(model, expected, alpha),
    ("topics", "weights", "raw_topics", "word_probabilities"),
    polishing.RULES,
    lambda model: (model.n_words, model.n_topics),
    polishing.require_alpha,
    OF_DOCUMENTS,
    of_counts=True,
)
_OF_ROWS = Passes(
    mixture_passes.ExpectedRows,
    lambda model, foundation: mixture_passes.MixtureReader(model, foundation.grid),
    lambda model, expected, foundation, alpha: mixture_passes.improved(
        model, expected, foundation.grid
    ),
    ("means", "weights", "variances"),
    mixture_passes.RULES,
    mixture_passes.shape_of,
    _refuse_alpha,
    OF_EM,
)
_OF_SETS = Passes(
    set_passes.ExpectedSets,
    lambda model, foundation: set_passes.SetReader(model),
    lambda model, expected, foundation, alpha: set_passes.improved(model, expected),
    ("probabilities", "weights"),
    set_passes.RULES,
    lambda model: (model.n_features, model.n_topics),
    _refuse_alpha,
    OF_EM,
    of_counts=True,
)
PASSES: Mapping[str, Passes] = MappingProxyType(
    {
        TopicModel.name: _OF_DOCUMENTS,
        PoissonMixture.name: _OF_DOCUMENTS,
        Communities.name: _OF_DOCUMENTS,
        GaussianMixture.name: _OF_ROWS,
        BernoulliMixture.name: _OF_SETS,
    }
)


def passes_of(model: type[Any]) -> Passes:
    """Passes of a class of models; raises InvalidInput, with a remedy, if it has none.

    Examples
    --------
    >>> passes_of(GaussianMixture).arrays
    ('means', 'weights', 'variances')
    """
    return row_of(PASSES, model.name, "polish")
