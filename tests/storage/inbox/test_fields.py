"""Fields of records: accepted values, written values, and errors."""

import jsonschema
import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.storage.inbox.fields import (
    counts_field,
    end_field,
    ids_field,
    number_field,
    said,
    symbols_field,
    text_field,
    value_field,
    values_field,
    vector_field,
    view_of_text,
)

LARGEST_ID, LARGEST_COUNT = 2**63 - 1, 2**31 - 1
HUGE = 10**400
FIELDS = {
    "text": text_field("body"),
    "view": view_of_text("a"),
    "value": value_field("year"),
    "values": values_field("author"),
    "symbols": symbols_field("steps"),
    "ids": ids_field("words"),
    "counts": counts_field("times"),
    "vector": vector_field("vector", 2),
    "number": number_field("x"),
    "end": end_field("source"),
}


def test_fields_are_sent_by_one_name_and_read_by_another():
    names = {kind: (one.name, one.column, one.counts_of) for kind, one in FIELDS.items()}
    assert names == {
        "text": ("text", "body", None),
        "view": ("a", "a", None),
        "value": ("year", "year", None),
        "values": ("author", "author", None),
        "symbols": ("steps", "steps", None),
        "ids": ("ids", "words", None),
        "counts": ("counts", "times", "ids"),
        "vector": ("vector", "vector", None),
        "number": ("x", "x", None),
        "end": ("source", "source", None),
    }


TAKEN = [
    ("text", "the sea", "the sea"),
    ("text", "", ""),
    ("view", "the sea", "the sea"),
    ("view", None, ""),
    ("value", "law", "law"),
    ("value", None, None),
    ("value", False, False),
    ("value", 1.5, 1.5),
    ("values", "ann", ["ann"]),
    ("values", ["ann", None, 7], ["ann", None, 7]),
    ("values", None, []),
    ("values", [], []),
    ("symbols", ["a", 1, True, 0.5], ["a", 1, True, 0.5]),
    ("symbols", [], []),
    ("ids", [0, LARGEST_ID], [0, LARGEST_ID]),
    ("counts", [0, LARGEST_COUNT], [0, LARGEST_COUNT]),
    ("counts", [LARGEST_COUNT - 1, 1], [LARGEST_COUNT - 1, 1]),
    ("vector", [0, -1.5], [0, -1.5]),
    ("number", -2, -2),
    ("number", 0.0, 0.0),
    ("end", "ann", "ann"),
    ("end", "a", "a"),
    ("end", 0, 0),
]


@pytest.mark.parametrize(("kind", "sent", "written"), TAKEN)
def test_what_is_taken_is_written_and_fits_the_schema(kind, sent, written):
    found = FIELDS[kind].written(sent)
    assert (found, type(found)) == (written, type(written))
    jsonschema.validate(sent, FIELDS[kind].schema)


REFUSED = [
    ("text", None, "it is null, expected a string"),
    ("text", 7, "it is a number, expected a string"),
    ("view", 7, "it is a number, expected a string"),
    ("value", [1], "it is a list, expected a single value"),
    ("value", {}, "it is an object, expected a single value"),
    ("value", float("inf"), "it is inf, expected a finite number"),
    ("values", [["ann"]], "it is a list, expected a single value"),
    ("values", {}, "it is an object, expected a single value"),
    ("values", [float("nan")], "it is nan, expected a finite number"),
    ("symbols", "ab", "it is a string 'ab', expected a list"),
    ("symbols", ["a", None], "entry 1: it is null, expected a symbol"),
    ("symbols", [["a"]], "entry 0: it is a list, expected a symbol"),
    ("symbols", ["a", "b", {}], "entry 2: it is an object, expected a symbol"),
    ("symbols", [float("inf")], "it is inf, expected a finite number"),
    ("ids", 7, "it is a number, expected a list"),
    ("ids", [3, -1], f"entry 1 is -1, expected a whole number from 0 to {LARGEST_ID}"),
    ("ids", [LARGEST_ID + 1], f"entry 0 is {LARGEST_ID + 1}, expected a whole number"),
    ("ids", [True], "entry 0 is a truth value, expected a whole number"),
    ("ids", [1.0], "entry 0 is a number, expected a whole number"),
    ("ids", ["1"], "entry 0 is a string '1', expected a whole number"),
    ("counts", [0, LARGEST_COUNT + 1], f"entry 1 is {LARGEST_COUNT + 1}, expected a whole"),
    ("counts", [LARGEST_COUNT, 1], f"they sum to {LARGEST_COUNT + 1}, expected at most"),
    ("vector", [0.5], "it has 1 entries, expected 2 finite numbers"),
    ("vector", [1, 2, 3], "it has 3 entries, expected 2 finite numbers"),
    ("vector", "ab", "it is a string 'ab', expected a list"),
    ("vector", [1, float("nan")], "entry 1: it is a number, expected a finite number"),
    ("vector", [HUGE, 1], "entry 0: it is a number, expected a finite number"),
    ("vector", [True, 1], "entry 0: it is a truth value, expected a finite number"),
    ("vector", ["1", 1], "entry 0: it is a string '1', expected a finite number"),
    ("number", None, "it is null, expected a finite number"),
    ("number", False, "it is a truth value, expected a finite number"),
    ("number", HUGE, "it is a number, expected a finite number"),
    ("end", "", "it is a string '', expected the name or the number of a node"),
    ("end", True, "it is a truth value, expected the name or the number of a node"),
    ("end", 1.5, "it is a number, expected the name or the number of a node"),
    ("end", None, "it is null, expected the name or the number of a node"),
]
# JSON has no word for them, or a whole number that is written as 1.0 is one to a schema
BEYOND_SCHEMAS = [HUGE, float("inf"), float("nan"), 1.0]


@pytest.mark.parametrize(("kind", "sent", "message"), REFUSED)
def test_what_is_refused_is_said_and_breaks_the_schema(kind, sent, message):
    with pytest.raises(InvalidInput) as refused:
        FIELDS[kind].written(sent)
    assert str(refused.value).startswith(message)
    parts = sent if isinstance(sent, list) else [sent]
    summed = kind == "counts" and message.startswith("they sum")
    if not summed and not any(repr(one) in map(repr, BEYOND_SCHEMAS) for one in parts):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(sent, FIELDS[kind].schema)


def test_a_long_string_is_shown_by_its_beginning():
    assert said("x" * 60) == f"it is a string {'x' * 60!r}"
    assert said("x" * 61) == f"it is a string {'x' * 60!r}"
    assert said(np.float64(1)) == "it is a float64"
