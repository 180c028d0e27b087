"""Measures of the model of a nightly run, and gates: bounds on measures that may reject it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass

from streaming_moments.models.base import Model
from streaming_moments.models.chains.hidden_markov import HiddenMarkovModel, window_perplexity
from streaming_moments.models.latent_trees.model import LatentTree
from streaming_moments.models.mixtures.gaussian_mixture import GaussianMixture
from streaming_moments.models.states import Clusters, compares_states, states_of
from streaming_moments.pipelines.nightly.keys import STRICT
from streaming_moments.pipelines.nightly.refit_config import RefitSection
from streaming_moments.pipelines.quantities import Number, Share
from streaming_moments.pipelines.reports.page import Gate
from streaming_moments.quality.clusters import furthest_move
from streaming_moments.quality.coherences.registry import followed
from streaming_moments.quality.drift import Drift
from streaming_moments.statistics.registry import KINDS

_Distance = Annotated[float, Field(ge=0)]
_Perplexity = Annotated[float, Field(ge=1)]


@dataclass(frozen=True, eq=False)
class Night:
    """Values of a nightly run from which gates judge its model.

    model : model of this run, with its coherence or held-out values
    published : the model published before; None in the first run
    drift : drift that this run measured
    """

    model: Any
    published: Any
    drift: Drift


class Better(Enum):
    """Type of a bound: the values that it accepts, and whether it accepts an unknown value."""

    LESS = "at most the bound; an unknown value is rejected"
    LESS_THAN_BEFORE = "at most the bound; an unknown value is accepted, as on a first night"
    MORE = "at least the bound; an unknown value is accepted if the bound is 0"

    def holds(self, value: float | None, bound: float) -> bool:
        """Whether a bound accepts a value."""
        if self is Better.MORE:
            return not bound if value is None else value >= bound
        if value is None:
            return self is Better.LESS_THAN_BEFORE
        return value <= bound


@dataclass(frozen=True, eq=False)
class Measure:
    """A number that describes the model of a nightly run, and the key of `[gates]` that bounds it.

    name : name in reports and messages, with its unit
    bound : type of its bound in the configuration
    of : function that computes its value; None if the value is unknown
    known : function that says whether the requested model has this value
    default : bound if the configuration gives none; None means no bound
    held_out : whether it needs held-out records, and so a store with halves
    coherence : whether it needs co-document counts
    """

    key: str
    name: str
    better: Better
    bound: Any
    of: Callable[[Night], float | None]
    known: Callable[[RefitSection], bool]
    default: float | None = None
    held_out: bool = False
    coherence: bool = False


def _coherence_drop(night: Night, key: str) -> float | None:
    now = night.model.mean_coherences.get(key)
    before = None if night.published is None else night.published.mean_coherences.get(key)
    return None if now is None or before is None else before - now


def _held_out_drop(night: Night) -> float | None:
    """Return how far the held-out log-likelihood fell below that of the published model.

    The log-likelihood is per pair or triple. Returns None if it is unknown.
    """
    model, published = night.model, night.published
    if published is None or published.vocabulary != model.vocabulary:
        return None
    now, before = (getattr(one, "held_out", None) for one in (model, published))
    if now is None or before is None:
        return None
    return float(before.mean - now.mean)


def _move(night: Night) -> float | None:
    """Return the largest distance that the mean of a cluster has moved since the published model.

    Returns None if a model has no clusters, or if the number of columns has changed.
    """
    if night.published is None:
        return None
    after, before = states_of(night.model), states_of(night.published)
    if not isinstance(before, Clusters) or not isinstance(after, Clusters):
        return None
    alike = before.means.shape[1] == after.means.shape[1]
    return furthest_move(before, after) if alike else None


def _perplexity(night: Night) -> float | None:
    held_out = getattr(night.model, "held_out", None)
    chain = isinstance(night.model, HiddenMarkovModel)
    return window_perplexity(held_out) if chain and held_out is not None else None


def _smallest_weight(night: Night) -> float | None:
    weights = getattr(night.model, "weights", None)
    return None if weights is None else float(weights.min())


def _of_topics(refit: RefitSection) -> bool:
    return refit.topical


def _by_length(refit: RefitSection) -> bool:
    return bool(KINDS[refit.family.kind].by_length)


def _of_clusters(refit: RefitSection) -> bool:
    return refit.family is GaussianMixture


def _held_out_of(refit: RefitSection) -> bool:
    # only some families of models store their held-out log-likelihood
    return bool(refit.family.holds_out) and hasattr(refit.family, "held_out")


def _has_weights(refit: RefitSection) -> bool:
    return refit.topical or _of_clusters(refit) or compares_states(refit.family)


MEASURES: tuple[Measure, ...] = (
    *(
        Measure(
            one.gate,
            one.gate_name,
            Better.LESS_THAN_BEFORE,
            _Distance,
            partial(_coherence_drop, key=one.key),
            _of_topics,
            coherence=True,
        )
        for one in followed()
    ),
    Measure(
        "max_held_out_drop",
        "drop of held-out likelihood",
        Better.LESS_THAN_BEFORE,
        _Distance,
        _held_out_drop,
        _held_out_of,
        held_out=True,
    ),
    Measure(
        "max_pair_distance",
        "distance of pair distributions",
        Better.LESS_THAN_BEFORE,
        Share,
        lambda night: night.drift.pair_distance,
        _by_length,
    ),
    Measure(
        "max_mean_move",
        "largest move of a mean, in standard deviations",
        Better.LESS_THAN_BEFORE,
        _Distance,
        _move,
        _of_clusters,
    ),
    Measure(
        "max_perplexity",
        "perplexity of a held-out symbol",
        Better.LESS,
        _Perplexity,
        _perplexity,
        lambda refit: refit.family is HiddenMarkovModel,
        held_out=True,
    ),
    Measure(
        "max_behind",
        "log-likelihood of a pair below Chow-Liu's tree, in nats",
        Better.LESS,
        _Distance,
        lambda night: getattr(night.model, "behind", None),
        lambda refit: refit.family is LatentTree,
    ),
    Measure(
        "min_captured",
        "captured spectrum",
        Better.MORE,
        Share,
        lambda night: getattr(night.model, "captured", None),
        _of_topics,
    ),
    Measure(
        "min_documents",
        "documents",
        Better.MORE,
        Number,
        lambda night: night.model.documents,
        lambda refit: True,
        default=0,
    ),
    Measure(
        "min_effective_documents",
        "effective documents",
        Better.MORE,
        _Distance,
        lambda night: night.drift.effective_documents,
        _by_length,
    ),
    Measure(
        "min_topic_weight",
        "weight of the smallest topic",
        Better.MORE,
        Share,
        _smallest_weight,
        _has_weights,
        default=0.0,
    ),
)


class _Bounds:
    """Bounds that a model must satisfy to be published; a bound of None requires nothing."""

    @property
    def given(self) -> tuple[Measure, ...]:
        """Measures with a bound other than the default."""
        return tuple(one for one in MEASURES if getattr(self, one.key) != one.default)

    @property
    def held_out(self) -> tuple[str, ...]:
        """Keys of the given bounds on held-out values."""
        return tuple(one.key for one in self.given if one.held_out)

    @property
    def coherences(self) -> tuple[str, ...]:
        """Keys of the given bounds on coherences."""
        return tuple(one.key for one in self.given if one.coherence)

    def require_known(self, refit: RefitSection) -> None:
        """Raise ValueError if bounds are given for measures that the model lacks; name these."""
        idle = [one.key for one in self.given if not one.known(refit)]
        if idle:
            raise ValueError(
                f"[gates] {', '.join(idle)}: model {refit.model!r} has no such value; leave it out"
            )


def _section() -> Any:
    """Make the class for section `[gates]` of the configuration, with a key for each measure."""
    keys = [
        (one.key, one.bound if one.default is not None else one.bound | None, one.default)
        for one in MEASURES
    ]
    made = make_dataclass("GatesSection", keys, bases=(_Bounds,), frozen=True)
    return checked_dataclass(frozen=True, config=STRICT)(made)


if TYPE_CHECKING:
    GatesSection = Any
else:
    GatesSection = _section()


def judged(
    model: Model, published: Model | None, drift: Drift, gates: GatesSection
) -> tuple[Gate, ...]:
    """Compare a model with each given bound; arguments as in `Night`."""
    night = Night(model, published, drift)
    found = [(one, one.of(night), getattr(gates, one.key)) for one in gates.given]
    return tuple(
        Gate(
            one.name,
            value,
            bound,
            one.better.holds(value, bound),
            one.better is Better.MORE,
            "" if value is not None else _unknown(one, night),
        )
        for one, value, bound in found
    )


def _unknown(measure: Measure, night: Night) -> str:
    """Say why a measure has no value."""
    if measure.better is not Better.LESS_THAN_BEFORE:
        return "not known"
    if night.published is None:
        return "no earlier model to compare with"
    return "cannot be compared with the published model"


def reasons_of(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the violated bounds in words.

    Examples
    --------
    >>> reasons_of([Gate("documents", 12, 100, False), Gate("captured spectrum", 0.9, 0.5, True)])
    ('documents: 12, the gate allows at least 100',)
    """
    return tuple(
        f"{gate.name}: {gate.measured}, the gate allows {gate.allowed}"
        for gate in gates
        if not gate.holds
    )
