"""Columns: rows by name, unknown ones among them."""

import numpy as np
import pytest

from streaming_moments.columns import Column, Columns, likeliest

LISTS = Column(np.array([5, 6, 7]), offsets=np.array([0, 2, 2, 3]))
TEXTS = Column(np.array([1, 0, 1]), np.array([False, True, False]), texts=("sea", "law"))


def test_values_are_plain_with_none_where_they_are_unknown():
    assert LISTS.plain() == [(5, 6), (), (7,)]
    assert TEXTS.plain() == ["law", None, "law"]
    shares = Column(np.array([[0.25, 0.75], [1.0, 0.0]]), np.array([True, False]))
    assert shares.plain() == [None, (1.0, 0.0)]
    assert Column(np.array([0.123456789])).plain(3) == [0.123]
    assert [type(one) for one in Column(np.array([True, False])).plain()] == [bool, bool]
    assert [one.number for one in (LISTS, TEXTS, shares)] == [3, 3, 2]


def test_columns_of_kept_rows_stand_among_all_rows():
    kept = np.array([False, True, True, False, True])
    said = Columns.of(word=TEXTS, shares=np.eye(3)).among(kept)
    assert said.number == 5
    assert said["word"].plain() == [None, "law", None, None, "law"]
    assert said["shares"].plain()[2:4] == [(0.0, 1.0, 0.0), None]
    assert said["shares"].array.shape == (5, 3)
    none = Columns.of(topic=np.empty(0, np.int32)).among(np.zeros(2, bool))
    assert none.plain() == [{"topic": None}] * 2


def test_columns_may_hold_columns():
    row = Columns({"a": TEXTS, "b": Column(np.arange(3))})
    said = Columns.of(completed=row, log_likelihood=np.zeros(3))
    assert [*said] == ["completed", "log_likelihood"]
    assert said.plain()[1] == {"completed": {"a": None, "b": 1}, "log_likelihood": 0.0}
    assert {**row} == {"a": TEXTS, "b": row["b"]}
    with pytest.raises(KeyError):
        said["other"]


def test_the_likeliest_is_the_first_of_equals():
    found = likeliest(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([False, True]))
    assert (found.plain(), found.array.dtype) == ([0, None], np.int32)
