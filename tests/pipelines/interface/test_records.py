"""Records: values of columns as JSON has them."""

import json
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.interface.records import Fields, lines_of

NOON = "2026-11-23T12:00:00"


def told(value):
    [line] = lines_of([{"value": value}], Fields(columns=("value",)), "a")

    def refused(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(line.content, parse_constant=refused)["value"]


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_a_time_is_told_alike_whatever_holds_it(unit):
    instant = np.datetime64(NOON, unit)
    assert told(instant) == told(pd.Timestamp(NOON)) == told(datetime.fromisoformat(NOON)) == NOON
    assert told(np.array([instant, np.datetime64("NaT", unit)])) == [NOON, None]


def test_a_time_keeps_its_nanoseconds():
    later = f"{NOON}.000000001"
    assert told(np.datetime64(later)) == told(pd.Timestamp(later)) == later
    assert told(np.datetime64("2026-11-23")) == "2026-11-23"


def test_a_number_that_is_not_finite_is_missing():
    assert told(np.inf) is None
    assert told([1.5, -np.inf, np.nan, np.float64(np.inf), 2.0]) == [1.5, None, None, None, 2]
    assert told(np.array([np.inf, 0.5])) == [None, 0.5]


@pytest.mark.parametrize("made", [pd.DataFrame, lambda columns: [{"v": columns["v"][0]}]])
def test_a_missing_column_of_vectors_names_the_options_of_its_kind(made):
    with pytest.raises(ShardError, match=r"'v'.*choose (another|one) by KindOptions\(KIND, "):
        list(lines_of(made({"v": [[1.0, 2.0]]}), Fields(columns=("w",)), "partition://a/0.jsonl"))
