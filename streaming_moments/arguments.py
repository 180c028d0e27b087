"""Arguments: a public function that fails of a value of the wrong type says which it was."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, is_dataclass
from itertools import islice
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, TypeVar

from streaming_moments.errors import InvalidInput, StreamingMomentsError

# what code raises that is given something else than it was written for, beside the compiler's
_OF_TYPES = (TypeError, AttributeError, ValueError, LookupError, OSError, OverflowError)
_LOOKED_AT = 100  # of the values in a collection


def checked(face: Callable[[str], object]) -> Callable[[str], object]:
    """A `__getattr__` of a package whose functions and classes name arguments of the wrong type.

    Examples
    --------
    >>> import streaming_moments.models
    >>> fit = checked(streaming_moments.models.__getattr__)("fit_by")
    >>> fit("many documents", 3)
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: statistics is of type str; fit_by takes \
MomentStatistics or WeightedStatistics
    """

    def found(name: str) -> object:
        value = face(name)
        if inspect.isclass(value):
            _name_arguments_within(value)
        return naming_arguments(value) if inspect.isfunction(value) else value

    return found


def _name_arguments_within(kind: type) -> None:
    """Let what makes a class of ours, and its public methods, name arguments as well."""
    for part in kind.__mro__:
        if part.__module__.partition(".")[0] != __name__.partition(".")[0]:
            continue
        for name, member in [*vars(part).items()]:
            function = getattr(member, "__func__", member)
            hidden = name.startswith("_") and name != "__init__"
            if hidden or not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
                continue
            named: Any = naming_arguments(function)
            setattr(part, name, named if function is member else type(member)(named))


@functools.cache
def naming_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of whose errors those of a wrong type are an `InvalidInput` that says so.

    What it is given is looked at only when it failed: whatever it can work with it may be given.
    """

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named)
        except StreamingMomentsError:
            raise
        except Exception as error:
            typed = isinstance(error, _OF_TYPES) or type(error).__module__.startswith("numba.")
            refusal = _refusal(function, args, named) if typed else None
            if refusal is None:
                raise
            raise InvalidInput(refusal) from error

    return called


def require_fitting(function: Callable[..., Any], **named: Any) -> None:
    """Refuse arguments of the wrong type before a function works with them.

    Raises
    ------
    InvalidInput
        Names the first, and what the function takes.
    """
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
            what = type(value).__name__
            taker = function.__qualname__.rpartition("<locals>.")[2].removesuffix(".__init__")
            return f"{name} is of type {what}; {taker} takes {_said(hint)}"
    held = (one for value in given.values() for one in _each(value))
    return next(filter(None, map(_refused_field, held)), None)


def _each(value: object) -> Iterable[object]:
    return islice(value, _LOOKED_AT) if isinstance(value, (list, tuple)) else (value,)


def _refused_field(one: Any) -> str | None:
    """Which field of a dataclass, whose values nobody looked at, does not fit."""
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
            what = type(value).__name__
            return f"{name} of a {kind} is of type {what}; {kind} takes {_said(hint)}"
    return None


def fits(value: object, hint: Any) -> bool:
    """Whether a value may be of a type, as far as that can be seen from outside.

    Examples
    --------
    >>> fits(3, float), fits("3", int | None), fits(["a", 3], list[str])
    (True, False, False)
    """
    if isinstance(hint, TypeVar):
        hint = hint.__bound__
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, UnionType):
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


def _said(hint: Any) -> str:
    inner = typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return " or ".join(dict.fromkeys(map(_said, inner)))
    if hint is NoneType:
        return "None"
    if isinstance(hint, type) and not inner:
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "")
