"""Raise clear errors if a user calls a function with a wrong argument.

The errors name the argument, the type that it must have, and a remedy.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, TypeVar, cast

from streaming_moments.errors import InvalidInput, StreamingMomentsError
from streaming_moments.printing.nearest import nearest
from streaming_moments.printing.remedies import Spell, of_arguments

# Exceptions that an argument of the wrong type can cause in Python code. Compiled code raises the
# exceptions of Numba instead.
_OF_TYPES = (TypeError, AttributeError, ValueError, LookupError, OSError, OverflowError)
_LOOKED_AT = 100  # at most this many values of a list or other collection are checked
# Each set holds the argument names that this package and other libraries use for the same quantity.
_SAME = (
    frozenset(
        (
            *("topics", "n_topics", "n_components", "num_topics", "n_states", "nr_topics"),
            *("n_clusters", "k"),
        )
    ),
    frozenset(("seed", "random_state", "random_seed")),
    frozenset(("max_topics", "max_components")),
    frozenset(("languages", "language")),
    frozenset(("tokeniser", "tokenizer")),
    frozenset(("min_documents", "min_df")),
    frozenset(("max_document_fraction", "max_df")),
    frozenset(("vocabulary_size", "max_features")),
)

D = TypeVar("D", bound=Callable[..., Any])


def checked(door: D, spell: Spell = of_arguments) -> D:
    """Wrap a function, or the public methods of a class, so that errors name the wrong argument.

    An error caused by a wrong type becomes an `InvalidInput`. An unknown argument becomes a
    `TypeError` that names the closest argument. Arguments are checked only after a failure, so a
    function accepts every value that its code can handle. `spell` writes the options that messages
    name, by default as arguments in Python.

    Examples
    --------
    >>> @checked
    ... def doubled(numbers: list[int]) -> list[int]:
    ...     return [2 * number for number in numbers]
    >>> doubled(3)
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: numbers is of type int; doubled takes a list of int
    """
    if not inspect.isclass(door):
        return cast("D", _naming_arguments(door, spell))
    for name, member in [*vars(door).items()]:
        if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
            setattr(door, name, _naming_arguments(member, spell))
    return door


def _naming_arguments(function: Callable[..., Any], spell: Spell) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except StreamingMomentsError as error:
            error.spell = spell
            raise
        except Exception as error:
            if isinstance(error, TypeError) and (
                unknown := unknown_argument(function, named, args)
            ):
                raise TypeError(unknown) from None
            typed = isinstance(error, _OF_TYPES) or type(error).__module__.startswith("numba.")
            refusal = _refusal(function, args, named) if typed else None
            if refusal is None:
                raise
            raise InvalidInput(refusal) from error

    return called


def unknown_argument(
    function: Callable[..., Any], named: Iterable[str], args: tuple[Any, ...] = ()
) -> str:
    """Return an error message for the first of the names that is not an argument of a function.

    Returns "" if the function has all of these arguments.

    If the name is a field of an options class that the function takes, such as `text_column`, the
    message shows how to pass it.

    Examples
    --------
    >>> def fit(statistics: object, n_topics: int) -> None: ...
    >>> unknown_argument(fit, ["topics"])
    'fit has no argument topics; give n_topics'
    """
    parameters = inspect.signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return ""
    known = [name for name in parameters if name != "self"]
    for name in named:
        if name not in known:
            held = _fields_of_options(function)
            near = _nearest(name, known)
            if name in held or near is None:
                field = _nearest(name, held)
                near = near if field is None else held[field]
            # the function may have a variant with more arguments, such as `fit_by` for `fit`
            wider = f"{function.__name__}_by"
            if near is None and name in _parameters(
                getattr(function, "__globals__", {}).get(wider)
            ):
                what = f"call {wider}, which takes it"
            else:
                what = f"give {near or 'one of ' + ', '.join(known)}"
            return f"{_called(function, args)} has no argument {name}; {what}"
    return ""


def _nearest(name: str, known: Collection[str]) -> str | None:
    if name in known:
        return name
    same = next((group for group in _SAME if name in group), frozenset())
    return next((one for one in known if one in same), None) or nearest(name, known)


def _fields_of_options(function: Callable[..., Any]) -> dict[str, str]:
    """Return the code that sets each field of the options classes which a function takes."""
    try:
        hints = typing.get_type_hints(inspect.unwrap(function))
    except (TypeError, NameError):
        return {}
    return {
        own.name: f"{argument}={kind.__name__}({own.name}=...)"
        for argument, hint in hints.items()
        if argument != "return"
        for kind in (typing.get_args(hint) if _is_union(hint) else (hint,))
        if isinstance(kind, type) and is_dataclass(kind) and kind.__name__.endswith("Options")
        for own in fields(kind)
    }


def require_fitting(function: Callable[..., Any], **named: Any) -> None:
    """Raise InvalidInput if an argument for a function has the wrong type, before it is called."""
    refusal = _refusal(function, (), named)
    if refusal is not None:
        raise InvalidInput(refusal)


def _refusal(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> str | None:
    try:
        given = inspect.signature(function).bind_partial(*args, **named).arguments
        hints = typing.get_type_hints(inspect.unwrap(function))
    except (TypeError, NameError):
        return None
    for name, value in given.items():
        hint = hints.get(name, Any)
        if not fits(value, hint):
            what = f"of type {type(value).__name__}"
            if isinstance(value, str) and _choices(hint):
                what = repr(value)
            return f"{name} is {what}; {_called(function, args)} takes {_in_words(hint)}"
    held = (one for value in given.values() for one in _each(value))
    return next(filter(None, map(_refused_field, held)), None)


def _parameters(function: Any) -> Collection[str]:
    return inspect.signature(function).parameters if callable(function) else ()


def _called(function: Callable[..., Any], args: tuple[Any, ...] = ()) -> str:
    """Return the name of a function for messages. A method gets the name of its class in front."""
    name = function.__qualname__.rpartition("<locals>.")[2]
    owner, _, own = name.rpartition(".")
    if args and owner in [one.__name__ for one in type(args[0]).__mro__]:
        name = f"{type(args[0]).__name__}.{own}"
    return name.removesuffix(".__init__")


def _each(value: object) -> Iterable[object]:
    return islice(value, _LOOKED_AT) if isinstance(value, (list, tuple)) else (value,)


def _refused_field(one: Any) -> str | None:
    """Return an error message for the first field of a dataclass with a value of the wrong type.

    Returns None if there is no such field, or if `one` is not a dataclass.
    """
    if isinstance(one, type) or not is_dataclass(one):
        return None
    kind = type(one).__name__
    try:
        hints = typing.get_type_hints(type(one))
    except (TypeError, NameError):
        return None
    for name in (field.name for field in fields(one)):
        value, hint = getattr(one, name, None), hints.get(name, Any)
        if not fits(value, hint):
            if isinstance(value, str) and typing.get_origin(hint) is tuple:
                return f"{name} of a {kind} is {value!r}; give {(value,)!r}"
            what = type(value).__name__
            return f"{name} of a {kind} is of type {what}; {kind} takes {_in_words(hint)}"
    return None


def fits(value: object, hint: Any) -> bool:
    """Whether a value fits a type hint. Runs no code of the value, such as an iterator.

    Examples
    --------
    >>> fits(3, float), fits("3", int | None), fits(["a", 3], list[str])
    (True, False, False)
    """
    if isinstance(hint, TypeVar):
        hint = hint.__bound__
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if _is_union(hint):
        return any(fits(value, one) for one in inner)
    if origin is typing.Annotated:
        return fits(value, inner[0])
    if origin is typing.Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if hint is NoneType:
        return value is None
    if hint in (int, float):
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    kind = origin or hint
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in _members(kind))
    if not isinstance(kind, type) or kind in (object, Any):
        return True
    if not isinstance(value, kind):
        return False
    if inner[1:] == (...,):
        inner = inner[:1]
    if len(inner) == 1 and isinstance(value, Collection):
        return all(fits(one, inner[0]) for one in islice(value, _LOOKED_AT))
    return True


def _members(protocol: type) -> set[str]:
    parts = [part for part in protocol.__mro__ if getattr(part, "_is_protocol", False)]
    names = {name for part in parts for name in (*vars(part), *inspect.get_annotations(part))}
    return {name for name in names if not name.startswith("_")}


def _choices(hint: Any) -> bool:
    """Whether a type allows only certain strings, as `Literal` types do."""
    parts = typing.get_args(hint) if _is_union(hint) else (hint,)
    return any(typing.get_origin(one) is typing.Literal for one in parts) and str not in parts


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, UnionType)


def _in_words(hint: Any) -> str:
    inner = typing.get_args(hint)
    if _is_union(hint):
        return " or ".join(dict.fromkeys(map(_in_words, inner)))
    if typing.get_origin(hint) is typing.Literal:
        return " or ".join(map(repr, inner))
    if hint is NoneType:
        return "None"
    if isinstance(hint, TypeVar):
        return _in_words(hint.__bound__)
    origin = typing.get_origin(hint)
    if origin is type and inner:
        return f"a class of {_in_words(inner[0])}"
    if inspect.isclass(origin) and issubclass(origin, Sequence) and origin is not tuple:
        return f"a list of {_in_words(inner[0])}"
    if origin is Callable:
        return "a function"
    if isinstance(hint, type) and not inner:
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")
