"""Columns: rows by name, unknown ones among them."""

import sys

import numpy as np
import pandas as pd
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


def test_columns_are_a_table_of_their_first_rows_in_notebooks():
    lists = Column(np.arange(12), offsets=np.array([0, 1, *[2] * 9, 12]))
    said = Columns.of(name=Column.of_values(["<b>", *"cdefghijkl"]), lists=lists, wide=np.eye(11))
    shown = said._repr_html_()
    assert shown.count("<tr>") == 11
    assert "Columns(11 rows of name, lists, wide); the first 10 rows</caption>" in shown
    assert "<td>&lt;b&gt;</td><td>0</td><td>1, 0, 0, 0, 0, 0, ...</td>" in shown
    whole = said.html("all")
    assert whole.count("<tr>") == 12
    assert "<td>l</td><td>2, 3, 4, 5, 6, 7, ...</td>" in whole
    nested = Columns.of(both=said.first(1), far=np.array([np.nan]))
    assert "<td>name &lt;b&gt;, lists 0, wide 1, 0, 0, 0, 0, 0, ...</td><td>\u2013</td>" in (
        nested.html("nested")
    )


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


MIXED = Columns.of(
    length=np.array([2, 0, 5]),
    topic=Column(np.array([1, 0, 0]), np.array([False, True, False])),
    share=Column(np.array([0.5, 0.0, 1.0]), np.array([False, True, False])),
    proportions=Column(np.array([[0.5, 0.5], [0, 0], [1, 0]]), np.array([False, True, False])),
    word=TEXTS,
    list=LISTS,
)


def test_a_frame_has_a_column_for_each_number():
    frame = MIXED.to_frame("document")
    names = ["length", "topic", "share", "proportions_0", "proportions_1", "word", "list"]
    assert frame.columns.tolist() == names
    assert frame.index.name == "document"
    assert frame["topic"].tolist() == [1, pd.NA, 0]
    assert frame[["share", "proportions_0"]].isna().to_numpy().tolist() == [
        [False] * 2,
        [True] * 2,
        [False] * 2,
    ]
    assert frame["word"].isna().tolist() == [False, True, False]
    assert frame["list"].tolist() == [(5, 6), (), (7,)]
    assert frame["length"].dtype.kind == "i"


def test_a_table_keeps_lists_and_has_nulls():
    table = MIXED.to_table()
    assert table.column_names == [*MIXED]
    assert table["proportions"].to_pylist() == [[0.5, 0.5], None, [1.0, 0.0]]
    assert table["topic"].to_pylist() == [1, None, 0]
    assert table["list"].to_pylist() == [[5, 6], [], [7]]
    assert table["word"].to_pylist() == ["law", None, "law"]
    assert MIXED.to_table().to_pylist() == [
        {name: [*one] if isinstance(one, tuple) else one for name, one in row.items()}
        for row in MIXED.plain()
    ]


def test_columns_in_columns_are_structs_and_named_in_frames():
    nested = Columns.of(view=MIXED, row=np.arange(3))
    assert nested.to_table()["view"].to_pylist()[0]["length"] == 2
    assert nested.to_frame().columns.tolist()[:2] == ["view_length", "view_topic"]


def test_a_table_without_pyarrow_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pyarrow"):
        Columns.of(topic=np.array([1, 0])).to_table()


def test_a_frame_without_pandas_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'streaming-moments\[pandas\]'"):
        MIXED.to_frame()
