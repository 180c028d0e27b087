"""Parts of a request as values: the ends of what is taken, and what is said of the rest."""

import json
import math
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from streaming_moments.pipelines.service.http.problems import Problem
from streaming_moments.pipelines.service.http.request_params import (
    LARGEST,
    choice,
    flag,
    json_answer,
    named_number,
    number,
)


def request(query=None, **path):
    """A request with a query, and with parts of its path."""
    content = urlencode(query or {}).encode()
    return Request({"type": "http", "query_string": content, "path_params": path})


def refused(act, status, detail):
    with pytest.raises(Problem) as told:
        act()
    assert (told.value.status, told.value.detail, told.value.field) == (status, detail, "n")


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ({}, False),
        ({"n": "true"}, True),
        ({"n": "TRUE"}, True),
        ({"n": "1"}, True),
        ({"n": "false"}, False),
        ({"n": "0"}, False),
    ],
)
def test_a_flag(query, value):
    assert flag(request(query), "n") is value


def test_what_is_no_flag():
    for value in ("", "2", "yes"):
        refused(
            lambda value=value: flag(request({"n": value}), "n"),
            422,
            f"n is {value!r}; give true or false",
        )


@pytest.mark.parametrize("value", ["1", "7", "12"])
def test_a_number_in_its_range(value):
    assert number(request({"n": value}), "n", 5, 12) == int(value)
    assert number(request(), "n", 5, 12) == 5


@pytest.mark.parametrize(
    "value", ["0", "13", "012", "-1", "+1", "1.0", "x", "", "\u0663", "\u00b2"]
)
def test_a_number_out_of_its_range(value):
    detail = f"n is {value!r}; give a number of 1 to 12"
    refused(lambda: number(request({"n": value}), "n", 5, 12), 422, detail)


def test_a_number_of_the_path():
    assert LARGEST == 2**53 - 1
    assert named_number(request(n="0"), "n") == 0
    assert named_number(request(n="9" * 16), "n") == 10**16 - 1
    for value in ("9" * 17, "-1", "x", "", "\u0663", "\u00b2"):
        refused(
            lambda value=value: named_number(request(n=value), "n"), 404, f"there is no n {value!r}"
        )


def test_a_choice_is_the_first_by_default():
    several = ("day", "week")
    assert choice(request(), "n", several) == "day"
    assert choice(request({"n": "week"}), "n", several) == "week"
    refused(
        lambda: choice(request({"n": "hour"}), "n", several),
        422,
        "n is 'hour'; give one of day, week",
    )


def test_of_a_long_value_the_beginning_is_told():
    long, shown = "x" * 41, repr("x" * 40)
    for act in (
        lambda: flag(request({"n": long}), "n"),
        lambda: number(request({"n": long}), "n", 5, 12),
        lambda: named_number(request(n=long), "n"),
        lambda: choice(request({"n": long}), "n", ("day",)),
    ):
        with pytest.raises(Problem, match=f" {shown}"):
            act()


def test_an_answer_of_json():
    answer = json_answer({"a": math.nan, "b": [math.inf, 1]})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert json.loads(answer.body) == {"a": None, "b": [None, 1]}
    other = json_answer([], 503, {"X-A": "1"})
    assert (other.status_code, other.headers["x-a"], other.body) == (503, "1", b"[]")
