"""The section `[refit]` in the configuration of the nightly run: the model and its options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from typing import Any, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from streaming_moments.models.base import FitOptions
from streaming_moments.models.passes.families import passes_of
from streaming_moments.models.registry import DEFAULT_MODEL, MODELS
from streaming_moments.models.states import compares_states
from streaming_moments.models.topic_options import TopicOptions
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.model_options import FOUND, finds_number
from streaming_moments.pipelines.nightly.keys import (
    STRICT,
    Alphas,
    Days,
    Family,
    HalfLife,
    Method,
    Topics,
)
from streaming_moments.pipelines.quantities import Number, Seed, Share
from streaming_moments.pipelines.toml_files import UnknownKeys, problems_of, with_misplaced_marked
from streaming_moments.quality.matching import MatchingRule
from streaming_moments.statistics.registry import KINDS

_TOPICS = TopicOptions(topics=1)  # provides the defaults of the section
# keys whose value a fit can find itself, each with the words that request this
_FOUND = {"topics": ("auto", "predict"), "refine": ("auto",)}
# keys that are fields of `RefitSection`; its field `further` holds all other options of a model
_TRIED = {"topics", "alpha0", "method", "seed"}


def _keys_of(model: Any) -> set[str]:
    return {one.name for one in fields(model.Options)}


def _by_fit(name: str) -> dict[str, Any]:
    """Return the options whose value a fit can find, each with the argument that requests this."""
    own = fields(MODELS[name].Options)
    return {one.name: one.metadata[FOUND] for one in own if FOUND in one.metadata}


def _finds(model: str, key: str, word: str) -> bool:
    """Whether the model of that name accepts a word such as "auto" for a key."""
    return finds_number(MODELS[model], key) or (word == "auto" and key in _by_fit(model))


@dataclass(frozen=True, config=STRICT)
class RefitSection:
    """How a nightly run fits its model.

    `topics` and `alpha0` are single values, or lists from which the run chooses the best value.
    After the fit, `polish` passes over the records follow; "auto" stops when more passes would
    change little. `topics` and `refine` may be "auto". Then the run compares values by scores on
    held-out halves of the records. The spectrum decides `topics` for a model of factors. `auto`
    holds the names of the options that are "auto".

    Every other option of the model can also be a key, and `further` holds its value.
    """

    topics: Topics
    model: Family = DEFAULT_MODEL
    alpha0: Alphas = (_TOPICS.alpha0,)
    method: Method = _TOPICS.method
    seed: Seed = _TOPICS.seed
    window_days: Days | None = None
    half_life_days: HalfLife | None = None
    same_topic_within: Share = MatchingRule().furthest
    polish: Number | Literal["auto"] = 0
    further: dict[str, Any] = Field(default_factory=dict)
    auto: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_the_model(cls, given: Any) -> Any:
        """Raise ValueError for a key that the model named by key `model` does not have."""
        name = str(given.get("model", DEFAULT_MODEL)) if isinstance(given, dict) else ""
        if name not in MODELS:
            return given  # the check of the key `model` reports the error
        own = _keys_of(MODELS[name])
        others = {key for one in MODELS.values() for key in _keys_of(one)} - own
        allowed = own | {one.name for one in fields(cls)} - others - {"further", "auto"}
        if unknown := [key for key in given if key not in allowed | others]:
            raise UnknownKeys(unknown, sorted(allowed))
        if refused := [key for key in given if key in others]:
            raise ValueError(
                f"{', '.join(refused)}: not an option of model {name!r}, which has "
                f"{', '.join(sorted(own))}"
            )
        for key, words in _FOUND.items():
            known = [word for word in words if _finds(name, key, word)]
            if key in own and isinstance(given.get(key), str) and given[key] not in words and known:
                numbers = ["a whole number", *["a list of them"] * (key == "topics")]
                *first, last = [*numbers, *map(repr, known)]
                raise ValueError(f"{key} is {given[key]!r}: write {', '.join(first)} or {last}")
        auto = {key: given[key] for key, words in _FOUND.items() if given.get(key) in words}
        idle = [key for key in auto if not _finds(name, key, auto[key])]
        if idle:
            names = [one for one in MODELS if _finds(one, idle[0], auto[idle[0]])]
            every = " and ".join(map(repr, names))
            raise ValueError(f"{idle[0]}: {auto[idle[0]]} works only for models {every}")
        # until the values are chosen, put placeholders: one topic, and the default rounds
        given = {key: given[key] for key in given if key not in auto} | (
            {"topics": 1} if "topics" in auto else {}
        )
        if "alpha0" in own:
            given = {"alpha0": MODELS[name].Options(topics=1).alpha0} | given
        further = {key: given[key] for key in given if key in own - _TRIED}
        try:
            checked = with_misplaced_marked(MODELS[name].Options, {"topics": 1, **further})
            TypeAdapter(MODELS[name].Options).validate_python(checked)
        except ValidationError as error:
            raise ValueError("; ".join(problems_of(error, MODELS[name].Options))) from error
        kept = {key: given[key] for key in given if key not in further}
        return {**kept, "further": further, "auto": auto}

    @model_validator(mode="after")
    def _fits_together(self) -> RefitSection:
        comparable = self.family.finds_topics or compares_states(self.family)
        if not comparable and len(self.topics) > 1:
            names = [name for name, one in MODELS.items() if compares_states(one)]
            every = " and ".join(map(repr, (DEFAULT_MODEL, *names)))
            raise ValueError(f"topics: a list works only for models {every}")
        for pair in product(self.topics, self.alpha0):
            self.options(*pair)  # raises an error for options that do not fit together
        if self.half_life_days is not None and not KINDS[self.family.kind].by_length:
            raise ValueError(
                f"half_life_days: statistics of kind {self.family.kind} are whole numbers, so "
                "documents cannot have a half-life; choose days with window_days instead"
            )
        if "topics" in self.auto and len(self.alpha0) > 1:
            raise ValueError(
                "topics: auto needs one alpha0; to compare several alpha0, give numbers of topics"
            )
        if self.polish:
            passes_of(self.family)  # raises an error for a model without passes
            if self.half_life_days is not None:
                raise ValueError(
                    "polish: passes count all documents equally, whatever their age; leave out "
                    "half_life_days"
                )
        return self

    @property
    def family(self) -> Any:
        """Class of the model."""
        return MODELS[self.model]

    @property
    def topical(self) -> bool:
        """Whether the model of the section is a model of topics."""
        return issubclass(self.family, TopicModel)

    def options(self, topics: int, alpha0: float | Literal["auto"]) -> FitOptions:
        """Return the options of a fit with this number of topics and this alpha0."""
        given = {"topics": topics, "alpha0": alpha0, "method": self.method, "seed": self.seed}
        given |= {key: one for key, one in _by_fit(self.model).items() if key in self.auto}
        own = _keys_of(self.family)
        kept = {key: value for key, value in given.items() if key in own}
        return cast("FitOptions", self.family.Options(**kept, **self.further))

    @property
    def rule(self) -> MatchingRule:
        """Rule that decides when two topics of different models count as the same."""
        return MatchingRule(furthest=self.same_topic_within)
