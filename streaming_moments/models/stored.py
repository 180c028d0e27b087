"""StoredModel: base of all models; its fields define how a store saves them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import (
    MISSING,
    Field,
    asdict,
    dataclass,
    field,
    fields,
    is_dataclass,
    replace,
)
from operator import index
from types import MappingProxyType, UnionType
from typing import Any, ClassVar, Self, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from streaming_moments.columns import Column, Columns, DataFrame, Table
from streaming_moments.errors import InvalidInput
from streaming_moments.models.base import Arrays, Attributes
from streaming_moments.models.numbers.number_search import Trial, one_of
from streaming_moments.numerics.held_bytes import held_bytes
from streaming_moments.printing.plural import of_number
from streaming_moments.printing.short_repr import short_repr


@dataclass(frozen=True)
class Part:
    """How a store saves a field of a model.

    name : name in stores, if it differs from the field
    states : axes of the array that have one entry for each state
    required : whether to refuse a stored model that lacks the field, although the field has a
        default
    together : name of a group of fields; a store has all fields of a group or none
    arrays : names of the arrays, if the field is a dataclass of arrays
    prefix : prefix of the names of the arrays, if the field is a mapping of arrays
    own : whether the class of the model saves the field with its own code
    """

    name: str = ""
    states: tuple[int, ...] = ()
    required: bool = False
    together: str = ""
    arrays: tuple[str, ...] = ()
    prefix: str = ""
    own: bool = False


_PLAIN = Part()


def stored_as(**how: Any) -> Mapping[str, Part]:
    """Return the metadata of a field of a model: a `Part` made of these values."""
    return {"part": Part(**how)}


@dataclass(frozen=True, eq=False, repr=False)
class StoredModel:
    """Base class of all models: facts about the fitted records, and how a store saves the fields.

    A store saves a field as an array if it is annotated as an array, and as an attribute otherwise.
    Fields with the value None are left out. Arrays of a model are read-only.

    Parameters
    ----------
    documents : int
        Number of records of the fit.
    since, until : str, optional
        First and last day of the records, ISO 8601, for a fit on a window of time.
    half_life : float, optional
        Age in days at which the weight of a record is half.
    """

    name: ClassVar[str]
    of_numbers: ClassVar[bool] = False
    """Whether its arrays are parameters of numeric rows rather than distributions over words."""
    finds_topics: ClassVar[bool] = False
    """Whether it can find the number of topics by held-out pairs."""
    numbered: ClassVar[str] = "topics"
    """Plural noun for its topics, states, components or the like."""
    record: ClassVar[str] = "record"
    """Noun for the records of its fit."""
    holds_out: ClassVar[str] = ""
    """Plural noun for the held-out data that choose the number; empty if it holds nothing out."""
    fewest: ClassVar[tuple[int, int]] = (0, 0)
    """Fewest documents, in all and for each topic, for a meaningful fit."""
    nulls: ClassVar[tuple[str, ...]] = ("since", "until", "half_life")
    """Attributes that stores save as null if their value is missing."""
    halves_give: ClassVar[str] = "bars"
    """Name of the field with error bars from halves of the records."""

    documents: int = field(default=0, kw_only=True, metadata=stored_as(required=True))
    since: str | None = field(default=None, kw_only=True)
    until: str | None = field(default=None, kw_only=True)
    half_life: float | None = field(default=None, kw_only=True)

    __sizeof__ = held_bytes

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, np.ndarray) and value.flags.writeable:
                # make only a view read-only, so that the caller can still write to the array
                view = value.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        # pickles of earlier versions can name a field as it is named in stores, and can lack new
        # fields
        named = {how.name: one.name for one, how in _parts_of(type(self)) if how.name}
        held = {named.get(name, name): value for name, value in state.items()}
        new = {one.name: one.default_factory for one in fields(self) if one.name not in held}
        made = {name: make() for name, make in new.items() if make is not MISSING}
        vars(self).update(made, **held)
        StoredModel.__post_init__(self)

    __repr__ = short_repr

    @property
    def shown_facts(self) -> list[str]:
        """Numbers of states, words and records, alpha, and the days and weights of the records."""
        number = getattr(self, "n_topics", None) or getattr(self, "states", None)
        sizes = ((getattr(self, name, None), noun) for name, noun in _SIZES.items())
        alpha0 = getattr(self, "alpha0", None)
        alpha_sum = getattr(self, "alpha_sum", alpha0)
        parts = [
            _states_of(self, number) if number else "",
            *(of_number(size, noun) for size, noun in sizes if size is not None),
            of_number(self.documents, self.record) if self.documents else "",
            f"alpha0 {alpha0:.3g}" if alpha0 else "",
            f"sum of alpha {alpha_sum:.3g}" if alpha_sum != alpha0 else "",
            f"since {self.since}" if self.since else "",
            f"until {self.until}" if self.until else "",
            f"half-life {self.half_life:g} days" if self.half_life else "",
        ]
        return [*filter(None, parts)]

    @property
    def shown_columns(self) -> Columns:
        """Columns of the table in notebooks: a row for each state, with its `shown_values`."""
        known = {name: values for name, values in self.shown_values.items() if is_known(values)}
        places = np.arange(cast("Any", self).n_topics)
        return Columns.of(**{one_of(self.numbered): places, **known})

    @property
    def shown_values(self) -> dict[str, NDArray[np.float64]]:
        """Values of the states in the table that notebooks show, by name; NaN for unknown ones."""
        found: dict[str, NDArray[np.float64]] = cast("Any", self).described().columns
        return found

    def _repr_html_(self) -> str:
        return self.shown_columns.html(repr(self))

    @property
    def vocabulary(self) -> str:
        """Fingerprint of the vocabulary; empty if the store keeps the words in its foundation."""
        return ""

    @classmethod
    def trial(cls, rows: Any, options: Any) -> Trial | None:
        """Fit the number of states in `options`, and score it by held-out halves of the records.

        Returns None if a half is empty. Raises the same errors as `fit`.
        """
        found = getattr(cast("Any", cls).fit(rows, options), "held_out", None)
        return None if found is None else Trial(found)

    @property
    def scored(self) -> NDArray[np.float64] | None:
        """(n, k) distributions over words to compute coherence of; None if the model has none."""
        return None

    @property
    def mean_coherences(self) -> dict[str, float | None]:
        """Means of the coherences of `scored`, by kind of coherence; None if not computed."""
        return {}

    @property
    def captured_share(self) -> float | None:
        """Smallest share of an eigenvalue of the moments that the basis captures, if known."""
        return None

    @property
    def moments(self) -> tuple[int, float] | None:
        """Number of topics and alpha0 of a fit to moments of documents; None for other models."""
        return None

    @property
    def rough_sentence(self) -> str:
        """Warning that some states have large errors, with a remedy; empty if none have."""
        return ""

    def summary(self) -> dict[str, Any]:
        """Return the values that describe the fit in logs, by name."""
        held_out = getattr(self, "held_out", None)
        return {
            "model": self.name,
            "states": cast("Any", self).n_topics,
            "held_out": None if held_out is None else held_out.mean,
        }

    @property
    def per_state(self) -> Columns:
        """Fields of the model that have one number for each state, such as weights and error bars.

        Raises
        ------
        InvalidInput
            The model has no states that could be listed.
        """
        found: dict[str, Column] = {}
        for one, how in _parts_of(type(self)):
            value = getattr(self, one.name)
            named = value.items() if how.prefix else [(one.name, value)]
            if how.states == (0,):
                found |= {name: Column(array) for name, array in named if is_known(array)}
        if not found:
            raise InvalidInput(f"model {self.name} has no states to list; read its `described()`")
        return Columns(found)

    def to_table(self) -> Table:
        """Return an Arrow table with a row for each state: weight, error bar, coherence or mean."""
        return self.per_state.to_table()

    def to_frame(self) -> DataFrame:
        """Return what `to_table` returns as a pandas frame, with a row for each state.

        The index of the frame is called `topic`, `state` or the like.

        Raises
        ------
        InvalidInput
            The model has no states that could be listed.
        ModuleNotFoundError
            pandas is not installed; the message has the command that installs it.
        """
        return self.per_state.to_frame(one_of(self.numbered))

    def parts(self) -> tuple[Arrays, Attributes]:
        """Return the arrays and JSON attributes to store, as `from_parts` reads them."""
        arrays: dict[str, NDArray[Any]] = {}
        attributes: dict[str, Any] = {}
        for one, how in _parts_of(type(self)):
            value, name = getattr(self, one.name), how.name or one.name
            if how.prefix:
                arrays |= {how.prefix + key: array for key, array in value.items()}
            elif how.arrays and value is not None:
                own = (getattr(value, inner.name) for inner in fields(value))
                arrays |= zip(how.arrays, own, strict=True)
            elif isinstance(value, np.ndarray):
                arrays[name] = value
            elif value is not None or one.name in self.nulls:
                attributes[name] = _as_attribute(value)
        return arrays, attributes

    @classmethod
    def from_parts(cls, arrays: Arrays, attributes: Attributes) -> Self:
        """Restore the model from the arrays and attributes that `parts` returned.

        Raises
        ------
        InvalidInput
            An array or attribute is missing, unknown, or has another type than its field; the
            message names it.
        """
        return cls(**cls.fields_given(arrays, attributes))

    @classmethod
    def fields_given(cls, arrays: Arrays, attributes: Attributes) -> dict[str, Any]:
        """Return the fields of the model by name, from stored arrays and attributes.

        Raises the same errors as `from_parts`.
        """
        left, hints = {**arrays, **attributes}, get_type_hints(cls)
        found: dict[str, Any] = {}
        missing: list[str] = []
        mappings = [(one.name, how.prefix) for one, how in _parts_of(cls) if how.prefix]
        for field_name, prefix in mappings:
            own = [name for name in left if name.startswith(prefix)]
            found[field_name] = {
                name.removeprefix(prefix): np.asarray(left.pop(name), np.float64) for name in own
            }
        plain = [(one, how) for one, how in _parts_of(cls) if not how.prefix]
        kept = [(one, how, how.arrays or (how.name or one.name,)) for one, how in plain]
        groups = {how.together for _, how, names in kept if how.together and names[0] in left}
        for one, how, names in kept:
            absent = [name for name in names if name not in left]
            if not absent:
                found[one.name] = _read(cls, names, hints[one.name], [*map(left.pop, names)])
            elif len(absent) < len(names) or _is_required(one, how) or how.together in groups:
                missing += absent
        if missing:
            raise InvalidInput(f"the stored model {cls.name} lacks {', '.join(missing)}; refit it")
        if left:
            raise InvalidInput(
                f"model {cls.name} has no {', '.join(left)}; install the version of the package "
                "that fitted the stored one, or refit it"
            )
        return found

    def reordered(self, order: NDArray[np.int64]) -> Self:
        """Return the model with its states in another order: state j was state `order[j]` before.

        Raises
        ------
        InvalidInput
            `order` does not name each state once, or the model has no states.
        """
        moved: dict[str, Any] = {}
        for one, how in _parts_of(type(self)):
            value = getattr(self, one.name)
            if value is None or not how.states:
                continue
            if how.prefix:
                parts = value.items()
                moved[one.name] = {key: _reordered(array, order, how) for key, array in parts}
            else:
                moved[one.name] = _reordered(value, order, how)
        if not moved:
            raise InvalidInput(f"model {self.name} has no states to reorder")
        return replace(self, **moved)


# Properties of models that say how many words, features or numbers a record can have, with the noun
# for one of these.
_SIZES = MappingProxyType({"n_words": "word", "n_features": "feature", "dimension": "number"})


def outcome_of(model: Any, records: str = "") -> str:
    """Describe a fit in one line: the number of its states, and the number of records.

    `records` is a noun for the records; by default the model has one.
    """
    number = getattr(model, "n_topics", None) or model.states
    return f"fitted {_states_of(model, number)} to {_number_of(model, records)}"


def _states_of(model: Any, number: int) -> str:
    return f"{number} {model.numbered if number != 1 else one_of(model.numbered)}"


def _number_of(model: Any, records: str) -> str:
    return f"{model.documents:,} {records}" if records else of_number(model.documents, model.record)


def too_few_line(model: Any, records: str = "") -> str:
    """Return a warning if a model was fitted to too few records, otherwise "".

    `records` is a noun for the records; by default the model has one.

    Examples
    --------
    >>> from streaming_moments.models.topics import TopicModel
    >>> model = TopicModel.from_topics(np.eye(2), np.array([0.5, 0.5]))
    >>> too_few_line(replace(model, documents=4))
    '4 documents are too few for 2 topics, so the result is mostly chance; count at least 100, \
better some thousands'
    """
    fewest, each = model.fewest
    least = max(fewest, each * model.n_topics) if each else fewest
    if model.documents >= least:
        return ""
    return (
        f"{_number_of(model, records)} are too few for {_states_of(model, model.n_topics)}, so the "
        f"result is mostly chance; count at least {least:,}, better some thousands"
    )


def is_known(array: NDArray[np.float64] | None) -> bool:
    """Whether there is an array, and not all of its entries are NaN."""
    return array is not None and not np.isnan(array).all()


def _reordered(array: NDArray[Any], order: NDArray[np.int64], how: Part) -> NDArray[Any]:
    for axis in how.states:
        if sorted(order.tolist()) != list(range(array.shape[axis])):
            raise InvalidInput(
                f"{order.tolist()} does not name each of {array.shape[axis]} topics once; "
                "give a permutation"
            )
        array = np.ascontiguousarray(np.take(array, order, axis))
    return array


def _parts_of(model: type[StoredModel]) -> list[tuple[Field[Any], Part]]:
    """Return the fields of a model that the base class saves, each with its `Part`."""
    found = [(one, one.metadata.get("part", _PLAIN)) for one in _own_first(model)]
    return [(one, how) for one, how in found if not how.own]


def _own_first(model: type[StoredModel]) -> list[Field[Any]]:
    shared = [one.name for one in fields(StoredModel)]
    return sorted(fields(model), key=lambda one: one.name in shared)


def _is_required(one: Field[Any], how: Part) -> bool:
    return how.required or (one.default is MISSING and one.default_factory is MISSING)


def _as_attribute(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None  # store NaN as null, because JSON has no NaN
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def _read(model: type[StoredModel], names: tuple[str, ...], hint: Any, values: list[Any]) -> Any:
    """Convert stored values to the type of a field of a model.

    `names` are the names under which the values are stored.
    """
    try:
        return _of_type(hint, values)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise InvalidInput(
            f"{', '.join(names)} of the stored model {model.name} cannot be read ({error}); "
            "refit it"
        ) from error


def _of_type(hint: Any, values: list[Any]) -> Any:
    value = values[0]
    if isinstance(hint, UnionType):
        if value is None:
            return None
        [hint] = [one for one in get_args(hint) if one is not type(None)]
    kind = get_origin(hint) or hint
    if kind is np.ndarray:
        exact = get_args(get_args(hint)[1])[0] is np.float64
        return np.asarray(value, dtype=np.float64 if exact else None)
    if is_dataclass(kind):
        made = cast("Any", kind)
        return made(*values) if len(values) > 1 else made(**value)
    if kind is tuple:
        return tuple(map(get_args(hint)[0], value))
    if kind is Mapping:
        return {str(key): float(number) for key, number in value.items()}
    if kind is float:
        # leave a whole number an int, because the hash of a stored model depends on its type
        given = math.nan if value is None else value
        return given if isinstance(given, int | float) else float(given)
    if kind is bool:
        if not isinstance(value, bool):
            raise TypeError(f"{value!r} is not true or false")
        return value
    return index(value) if kind is int else str(value)
