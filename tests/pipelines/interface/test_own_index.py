"""The frame of a transform is called as the caller calls the documents, with the caller's types."""

from datetime import date

import dask.dataframe
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from streaming_moments import create_store
from streaming_moments.errors import StoreError
from streaming_moments.pipelines import PilotOptions
from streaming_moments.pipelines.interface import partitions
from streaming_moments.pipelines.jobs.create import CountingOptions

pytestmark = pytest.mark.usefixtures("few_blocks")
PILOT = PilotOptions(vocabulary_size=120, core=100, min_documents=2)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, planted):
    """A store of planted topics with a model."""
    url = str(tmp_path_factory.mktemp("index") / "store")
    store = create_store(url, planted, source="pilot", max_topics=4, pilot=PILOT)
    store = store.update(planted, source="all")
    store.refit(2, name="first")
    return store


@pytest.fixture
def small_cuts(monkeypatch):
    """Every few documents are a partition of their own."""
    monkeypatch.setattr(partitions, "_CUT_BYTES", 300)


INDEXES = {
    "numbers": pd.Index([40, 7, 13, 2, 99, 1], name="n"),
    "a range": pd.RangeIndex(10, 22, 2),
    "fractions": pd.Index([0.5, 1.25, 1e22, 3.0, 4.0, 5.0]),
    "truths": pd.Index([True, False] * 3),
    "days": pd.date_range("2026-11-20", periods=6, name="day"),
    "nanoseconds": pd.to_datetime([*range(1, 7)], unit="ns"),
    "times of a zone": pd.date_range("2026-10-25", periods=6, freq="h", tz="Europe/Rome"),
    "durations": pd.to_timedelta([1.5, 2, 3, 4, 5, 6], unit="h"),
    "texts": pd.Index(["1", "02", "c", "d", "e", "NaN"]),
    "two levels": pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]], names=["site", "n"]),
    "categories": pd.CategoricalIndex([*"abcabd"], ordered=True),
    "months": pd.period_range("2026-01", periods=6, freq="M"),
}


@pytest.mark.filterwarnings("ignore:the index repeats")
@pytest.mark.parametrize("kind", INDEXES)
def test_a_frame_of_topics_joins_the_frame_that_was_given(
    kind, fitted, planted, tmp_path, small_cuts
):
    index, texts = INDEXES[kind], planted[:6]
    frame = pd.DataFrame({"text": texts}, index=index)
    expected = fitted.topics().transform(texts)

    def written(documents, name, **how):
        out = str(tmp_path / name)
        return fitted.transform(documents, out, source="some", **how)

    result = written(frame, "frame")
    assert "<td>documents</td><td>6</td>" in result._repr_html_()
    found = result.to_frame()
    pd.testing.assert_index_equal(found.index, index)
    if index.is_unique:
        joined = frame.join(found)
        np.testing.assert_allclose(joined[["share_0", "share_1"]], expected, atol=1e-9)
    pd.testing.assert_index_equal(written(frame["text"], "series").to_frame().index, index)
    if kind != "two levels" and index.is_unique:
        column = frame.rename_axis("known").reset_index()
        by_column = written(column, "column", id_column="known").to_frame()
        pd.testing.assert_index_equal(
            by_column.index, pd.Index(column["known"]), exact="equiv", check_names=True
        )
        # Dask sorts what it partitions, unless its index is in order or it is told not to
        lazy = dask.dataframe.from_pandas(frame, npartitions=2, sort=False)
        for given in (lazy, lazy["text"]):
            by_dask = written(given, f"dask {type(given).__name__}").to_frame()
            pd.testing.assert_index_equal(
                by_dask.index, given.compute().index, exact="equiv", check_freq=False
            )


def test_an_index_that_repeats_is_warned_of_once(fitted, planted, tmp_path):
    texts = pd.Series(planted[:6], index=[1, 1, 2, 2, 3, 3])
    said = r"the index repeats: 3 values of 6 documents.*reset_index\(drop=True\), or id_column"
    with pytest.warns(UserWarning, match=said) as found:
        fitted.transform(texts, str(tmp_path / "series"), source="some")
    assert len(found) == 1


def test_a_frame_of_passages_has_the_index_for_each(tmp_path, planted, small_cuts):
    counting = CountingOptions(passage_words=20)
    texts = pd.Series(planted[:40], index=pd.RangeIndex(0, 7 * 40, 7))
    store = create_store(
        str(tmp_path / "s"), texts, source="p", max_topics=2, counting=counting, pilot=PILOT
    ).update(texts, source="p")
    store.refit(2, name="first")
    cut = store.transform(texts, str(tmp_path / "out"), source="p", passages=True).to_frame()
    whole = store.transform(texts, str(tmp_path / "whole"), source="p").to_frame()
    assert len(cut) > len(texts)
    pd.testing.assert_index_equal(whole.index, texts.index)
    assert cut["length"].groupby(level=0).sum().equals(whole["length"])


def test_ids_of_pairs_mappings_and_tables_keep_their_type(fitted, planted, tmp_path):
    texts, days = planted[:3], [date(2026, 11, day) for day in (3, 1, 2)]
    given = {
        "pairs": list(zip(days, texts, strict=True)),
        "mappings": [{"text": text, "n": day} for text, day in zip(texts, days, strict=True)],
        "a table": pa.table({"text": texts, "n": days}),
    }
    for kind, documents in given.items():
        column = None if kind == "pairs" else "n"
        out = str(tmp_path / kind)
        result = fitted.transform(documents, out, source="some", id_column=column)
        assert list(result.to_frame().index) == days, kind
    numbers = list(enumerate(texts, 5))
    frame = fitted.transform(numbers, str(tmp_path / "numbers"), source="some").to_frame()
    assert (frame.index.dtype, [*frame.index]) == (np.int64, [5, 6, 7])
    # a document without an id is called by its place, and all of them by texts
    numbers[1] = (None, texts[1])
    frame = fitted.transform(numbers, str(tmp_path / "some"), source="some").to_frame()
    assert [*frame.index] == ["5", "partition://some/00000.jsonl#1", "7"]


def test_a_frame_of_files_that_were_changed_since_is_refused(fitted, planted, tmp_path):
    out = str(tmp_path / "out")
    first = fitted.transform(pd.Series(planted[:6]), out, source="some")
    fitted.transform(pd.Series(planted[:4]), out, source="some")
    with pytest.raises(StoreError, match="holds? 4 documents.*6 were transformed.*transform again"):
        first.to_frame()
