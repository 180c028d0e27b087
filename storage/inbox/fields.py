"""Fields of records: how each field of a document is sent, checked and written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streaming_moments.errors import InvalidInput

_SHOWN = 60
_LARGEST_ID = int(np.iinfo(np.int64).max)
# largest count, and largest sum of the counts of a document
_LARGEST_COUNT = int(np.iinfo(np.int32).max)
_VALUE: Mapping[str, Any] = {"type": ["string", "number", "boolean", "null"]}


@dataclass(frozen=True)
class RecordField:
    """A field of a document in a request, and how its values are written to shards.

    name, column : the name of the field as clients send it, and as the store reads it
    written : converts a JSON value to the written value. For a refused value it raises
        InvalidInput, which describes this value and the expected one
    schema : JSON Schema of the values
    counts_of : for a field of counts, the field of ids; it has one count for each id, or is left
        out if all counts are 1
    """

    name: str
    column: str
    written: Callable[[object], object] = field(repr=False)
    schema: Mapping[str, Any] = field(repr=False)
    counts_of: str | None = None


def text_field(column: str = "text") -> RecordField:
    """Return the field of a text, which is sent as `text`.

    Examples
    --------
    >>> text_field("body").written("the sea")
    'the sea'
    """
    return RecordField("text", column, _text, {"type": "string", "description": "The whole text."})


def view_of_text(column: str) -> RecordField:
    """Return the field of a text among other columns; null is an empty text."""
    schema = {"type": ["string", "null"], "description": "The whole text."}
    return RecordField(column, column, lambda value: "" if value is None else _text(value), schema)


def value_field(column: str) -> RecordField:
    """Return the field of a value that is one category; null means missing.

    Examples
    --------
    >>> value_field("year").written([1789])
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: it is a list, expected a single value
    """
    return RecordField(column, column, _value, _VALUE)


def values_field(column: str) -> RecordField:
    """Return the field of one or more values, each counted as a word; it is written as a list.

    Examples
    --------
    >>> values_field("author").written("ann"), values_field("author").written(None)
    (['ann'], [])
    """
    schema = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}
    return RecordField(column, column, _values, schema)


def truth_field(column: str) -> RecordField:
    """Return the field of a feature: true, 1, false, 0 or null; written as 1 or 0.

    Examples
    --------
    >>> truth_field("smokes").written(True), truth_field("smokes").written(None)
    (1, 0)
    """
    schema = {"anyOf": [{"type": ["boolean", "null"]}, {"enum": [0, 1]}]}

    def written(value: object) -> object:
        if value not in (None, 0, 1):
            raise InvalidInput(f"{said(value)}, expected true, false, 0 or 1")
        return int(bool(value))

    return RecordField(column, column, written, schema)


def symbols_field(column: str) -> RecordField:
    """Return the field of a sequence, a list of symbols."""
    schema = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
    return RecordField(column, column, _symbols, schema)


def ids_field(column: str) -> RecordField:
    """Return the field of the token ids of a document, which are sent as `ids`.

    Examples
    --------
    >>> ids_field("words").written([3, -1])
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: entry 1 is -1, expected a whole number from 0 to ...
    """
    schema = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": _LARGEST_ID}}
    return RecordField("ids", column, lambda value: _whole(value, _LARGEST_ID), schema)


def counts_field(column: str) -> RecordField:
    """Return the field of the counts of ids, sent as `counts`; without it each count is 1."""
    items = {"type": "integer", "minimum": 0, "maximum": _LARGEST_COUNT}
    schema = {
        "type": "array",
        "items": items,
        "description": "One count for each id; 1 by default.",
    }
    return RecordField("counts", column, _counts, schema, "ids")


def vector_field(column: str, dimension: int) -> RecordField:
    """Return the field of a row of numbers, a list.

    Examples
    --------
    >>> vector_field("vector", 3).written([0.5, 1])
    Traceback (most recent call last):
        ...
    streaming_moments.errors.InvalidInput: it has 2 entries, expected 3 finite numbers
    """
    schema = {"type": "array", "items": {"type": "number"}}
    bounds = {"minItems": dimension, "maxItems": dimension}

    def written(value: object) -> object:
        listed = _list(value)
        if len(listed) != dimension:
            raise InvalidInput(f"it has {len(listed)} entries, expected {dimension} finite numbers")
        for place, one in enumerate(listed):
            if not _is_finite(one):
                raise InvalidInput(f"entry {place}: {said(one)}, expected a finite number")
        return listed

    return RecordField(column, column, written, {**schema, **bounds})


def number_field(column: str) -> RecordField:
    """Return the field of one number of a row."""

    def written(value: object) -> object:
        if not _is_finite(value):
            raise InvalidInput(f"{said(value)}, expected a finite number")
        return value

    return RecordField(column, column, written, {"type": "number"})


def end_field(column: str) -> RecordField:
    """Return the field of a node at an end of an edge: its name or number."""
    schema = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "integer"}]}

    def written(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise InvalidInput(f"{said(value)}, expected the name or the number of a node")
        return value

    return RecordField(column, column, written, schema)


def said(value: object) -> str:
    """Describe a value in an error.

    Examples
    --------
    >>> said("the sea"), said([1])
    ("it is a string 'the sea'", 'it is a list')
    """
    kinds = {str: "a string", bool: "a truth value", int: "a number", float: "a number"}
    kinds |= {list: "a list", dict: "an object", type(None): "null"}
    what = kinds.get(type(value), f"a {type(value).__name__}")
    shown = f" {value[:_SHOWN]!r}" if isinstance(value, str) else ""
    return f"it is {what}{shown}"


def _text(value: object) -> object:
    if not isinstance(value, str):
        raise InvalidInput(f"{said(value)}, expected a string")
    return value


def _value(value: object) -> object:
    if isinstance(value, list | Mapping):
        raise InvalidInput(f"{said(value)}, expected a single value")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"it is {value}, expected a finite number")
    return value


def _values(value: object) -> list[object]:
    if not isinstance(value, list):
        return [] if value is None else [_value(value)]
    return [_value(one) for one in value]


def _symbols(value: object) -> list[object]:
    listed = _list(value)
    for place, one in enumerate(listed):
        if one is None or isinstance(one, list | Mapping):
            raise InvalidInput(f"entry {place}: {said(one)}, expected a symbol")
    return _values(listed)


def _whole(value: object, largest: int) -> list[Any]:
    listed = _list(value)
    for place, one in enumerate(listed):
        if type(one) is not int or not 0 <= one <= largest:
            shown = one if type(one) is int else said(one).removeprefix("it is ")
            raise InvalidInput(
                f"entry {place} is {shown}, expected a whole number from 0 to {largest}"
            )
    return listed


def _counts(value: object) -> list[Any]:
    listed = _whole(value, _LARGEST_COUNT)
    if sum(listed) > _LARGEST_COUNT:
        raise InvalidInput(f"they sum to {sum(listed)}, expected at most {_LARGEST_COUNT}")
    return listed


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidInput(f"{said(value)}, expected a list")
    return value


def _is_finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
