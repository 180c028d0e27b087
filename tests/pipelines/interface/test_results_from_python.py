"""What a store gives in Python prints in a line, reports, and is a table, a frame and a plot."""

import re
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from streaming_moments import create_store
from streaming_moments.errors import InvalidInput, ShardError, StoreError
from streaming_moments.pipelines.cluster.progress_lines import ProgressLines
from streaming_moments.pipelines.interface import running
from streaming_moments.pipelines.interface.partitions import period_of, windows
from streaming_moments.pipelines.interface.records import Fields
from streaming_moments.pipelines.jobs.candidates import Candidate, HeldOut, Selection
from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions

pytestmark = pytest.mark.usefixtures("few_blocks")
COUNTING = CountingOptions(date_column="day")


@pytest.fixture(scope="module")
def records(planted):
    return [
        {"text": text, "day": date(2026, 11, 1 + place // 450)}
        for place, text in enumerate(planted)
    ]


@pytest.fixture(scope="module")
def store(records, tmp_path_factory):
    """A store of two days, and a model of it."""
    url = str(tmp_path_factory.mktemp("results") / "store")
    made = create_store(
        url,
        records,
        source="days",
        max_topics=3,
        counting=COUNTING,
        pilot=PilotOptions(min_documents=2),
    )
    made = made.update(records[:450], source="one").update(records[450:], source="two")
    made.refit(3, name="first")
    return made


@pytest.fixture(scope="module")
def selection(store):
    return store.select([2, 3], [0.1])


def test_jobs_report_their_steps(store, records, capsys):
    store.update(records[:450], source="one", verbose=1)
    store.refit("auto", verbose=1)
    lines = [line.rpartition(" (")[0] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"[Store] version {store.snapshot.latest().version} holds 900 documents"
    assert any(line.lower().startswith("[store] chose 3 topics") for line in lines)
    assert any(line.startswith("[Store] refinement: ") for line in lines)
    assert lines[-1] == "[Store] fitted 3 topics to 900 documents"
    assert len(lines) == len({*lines})
    store.refit(3)
    assert capsys.readouterr().out == ""


def test_steps_are_reported_as_they_first_end_and_now_and_then():
    lines = []
    steps = ProgressLines(lines.append, every=1e9, ends=True)
    for _ in range(2):
        for done in range(1, 4):
            steps.advance("reading", done, 3)
    steps.advance("writing", 1, 2000)
    assert lines == ["reading: 3 of 3"]
    seconds = iter([0.0, 0.0, 10.0])
    often = ProgressLines(lines.append, every=10.0, clock=lambda: next(seconds), ends=True)
    for done in (0, 500):
        often.advance("writing", done, 2000)
    assert lines[1:] == ["writing: 500 of 2,000 (25%) after 10 s, about 30 s left"]


def test_a_selection_prints_a_line_and_is_a_frame(selection):
    assert repr(selection).startswith("Selection(2, 3 topics: ")
    assert "predict best" in repr(selection)
    frame = selection.to_frame()
    assert frame["topics"].tolist() == [2, 3]
    assert frame["held_out"].tolist() == [one.held_out.mean for one in selection.candidates]
    assert {"alpha0", "npmi", "captured", "seconds"} <= {*frame.columns}
    assert "refusal" not in frame.columns
    assert selection.to_table().column_names == frame.columns.tolist()
    assert selection._repr_html_().count("<tr>") == 3


def test_a_selection_draws_a_line_for_each_alpha0(selection):
    axis = selection.plot(Figure().subplots())
    curve, *marks = axis.lines
    assert [*curve.get_xdata()] == [2, 3]
    assert curve.get_label() == "alpha0 0.1"
    assert [line.get_label() for line in marks] == [*selection.marks]
    known = [
        Candidate(number, alpha0, held_out=HeldOut(-9.0, -8.0))
        for alpha0 in (0.1, 1.0)
        for number in (2, 4)
    ]
    refused = Candidate(40, 1.0, refusal="40 topics are asked for")
    several = Selection((*known, refused), 0.0)
    axis = several.plot(Figure().subplots())
    assert [line.get_label() for line in axis.lines] == ["alpha0 0.1", "alpha0 1", "2 predict best"]
    assert several.to_frame()["refusal"].tolist()[-1] == "40 topics are asked for"
    silent = Selection((Candidate(2, 0.1, npmi=0.2), Candidate(3, 0.1, npmi=0.1)), 0.0)
    axis = silent.plot(Figure().subplots())
    assert axis.get_ylabel() == "mean NPMI"
    assert repr(silent) == "Selection(2, 3 topics: 2 most coherent)"


def test_a_selection_says_what_is_refused_and_that_its_best_is_the_most_tried(store):
    found = store.select([2, 99], [0.1])
    assert repr(found) == "Selection(2 topics: 2 separable, 2 predict best; 99 refused)"
    [refusal] = [one.refusal for one in found.candidates if one.refusal]
    assert "max_topics" in refusal
    assert "`create --" not in refusal
    known = [Candidate(k, 0.1, held_out=HeldOut(-9.0 + k, -8.0 + k)) for k in (2, 4, 8)]
    edge = Selection((*known, Candidate(99, 0.1, refusal="too many")), 0.0)
    assert repr(edge).endswith("8 predict best, the largest number tried; 99 refused)")
    assert "8 predict best, the largest number tried" in edge.search.marks
    assert edge.why.endswith(". It is the largest number tried: try 8 to 16")
    beside = Selection((*known, Candidate(9, 0.1, refusal="too many")), 0.0)
    assert beside.why.endswith(". More do not fit")
    assert "they also predict best, the largest number tried;" in beside.search.sentence()
    limits = {12: "try 8 to 12", 20: "try 8 to 16"}
    assert {one: Selection((*known,), 0.0, limit=one).more for one in limits} == limits
    assert Selection((*known,), 0.0, limit=8).why.endswith(". More do not fit")
    rebased = {10: "--max-topics 10`", 99: "--max-topics 16`", 8: "it has 8 core words"}
    for core, told in rebased.items():
        assert Selection((*known,), 0.0, limit=8, core=core).why.endswith(told)
    inside = Selection((*known, Candidate(16, 0.1, held_out=HeldOut(-9.0, -8.0))), 0.0)
    assert "number tried" not in repr(inside) + inside.why


def test_topics_are_a_table_and_plots(store, planted):
    topics = store.topics()
    assert topics.to_table().to_pandas().equals(topics.to_frame().reset_index(drop=True))
    named = topics.to_frame()
    assert named["name"].tolist() == topics.names
    assert np.array_equal(named["bar"], topics.model.topic_bars)
    texts = pd.DataFrame({"text": ["the law", "the sea"], "day": [1, 2]})
    with pytest.raises(InvalidInput, match=r"columns text, day; give .* frame\['text'\]"):
        topics.transform(texts)
    for missing in (None, float("nan")):
        with pytest.raises(InvalidInput, match="text 2 is missing; leave it out"):
            topics.read(["the law", missing])
    with pytest.raises(InvalidInput, match="text 1 is of type list; join its words by blanks"):
        topics.read([["law", "sea"]])
    panels = topics.plot(4, Figure())
    words = [label.get_text() for label in panels[0].get_yticklabels()]
    assert words == [topics.vocabulary.terms[word] for word in topics.model.top_words(4)[0]]
    assert panels[0].get_title().startswith(f"0 {' '.join(topics.top_words(2)[0])} (")
    names = [text.get_text() for text in topics.plot_map(Figure().subplots()).texts]
    assert names[1] == f"1 {' '.join(topics.top_words(2)[1])}"
    said = topics.read(planted[:5])
    shares = said.to_frame().filter(like="proportions").to_numpy()
    assert np.allclose(shares, topics.transform(planted[:5]))
    assert said.to_table().num_rows == 5
    series = pd.Series(planted[:5], index=list("abcde"))
    assert topics.read(series).to_frame().index.tolist() == list("abcde")
    arrow = topics.transform(pa.array(planted[:5]))
    assert np.array_equal(arrow, topics.transform(planted[:5]))


def test_documents_are_cut_by_periods_for_shares_over_time(planted):
    days = pd.Series(pd.date_range("2026-01-15", periods=900).strftime("%Y-%m-%d"))
    frame = pd.DataFrame({"text": planted, "day": days})
    few = PilotOptions(min_documents=2)
    store = create_store(
        "memory://by-month", frame, source="f", max_topics=3, counting=COUNTING, pilot=few
    )
    spring = frame[frame["day"] < "2026-04-01"]
    store = store.update(spring.sample(frac=1.0, random_state=1), source="f", by="month")
    store.refit(3, name="first")
    assert [str(one.days) for one in store.shares_over_time("month").periods] == [
        "2026-01-15 to 2026-01-31",
        "2026-02-01 to 2026-02-28",
        "2026-03-01 to 2026-03-31",
    ]
    more = pd.concat([spring.sample(frac=1.0, random_state=1), frame[76:106]])
    grown = store.update(more, source="f", by="month")
    assert grown.documents == 106
    assert len(grown.shares_over_time("month").periods) == 4
    left = grown.forget(frame[76:106], source="f", by="month")
    assert left.documents == store.documents
    for wrong in (None, "week"):
        with pytest.raises(InvalidInput, match="'f' was cut by periods, such as 2026-01-01"):
            grown.update(more, source="f", by=wrong)
    grown = grown.update(frame[:40], source="whole")
    with pytest.raises(InvalidInput, match="'whole' was not cut by periods when it was counted"):
        grown.update(frame[:40], source="whole", by="month")
    with pytest.raises(InvalidInput, match=r"collections by `update\(by=\"month\"\)`"):
        grown.shares_over_time("month")
    for refused in (grown.update, grown.forget, grown.shares_over_time):
        takes = f"^by is 'year'; Store.{refused.__name__} takes 'day' or 'week' or 'month'"
        with pytest.raises(InvalidInput, match=takes):
            refused(by="year") if refused == grown.shares_over_time else refused(frame, by="year")
    with pytest.raises(InvalidInput, match="has no date, so it belongs to no month"):
        grown.update(frame.assign(day=None), source="none", by="month")
    with pytest.raises(ShardError, match="'May' does not begin with a date"):
        grown.update([{"text": "sea", "day": "May"}], source="may", by="month")
    with pytest.raises(InvalidInput, match="only iterables with a source are cut"):
        grown.update("shards/*.parquet", by="month")
    undated = create_store("memory://undated", planted, source="f", max_topics=3, pilot=few)
    with pytest.raises(InvalidInput, match=r"CountingOptions\(date_column="):
        undated.update(planted, source="f", by="month")


def test_one_progress_covers_all_periods(planted, capsys, monkeypatch):
    days = pd.Series(pd.date_range("2026-01-01", periods=100).strftime("%Y-%m-%d"))
    frame = pd.DataFrame({"text": planted[:200], "day": days.repeat(2).to_numpy()})
    [window] = windows(frame, "f", Fields(date="day"), "day")
    assert [period_of(part.shard.url).isoformat() for part in window] == days.tolist()
    monkeypatch.setattr(running, "EVERY", 0.0)
    frame, few_days = frame[:12], days.tolist()[:6]
    few = PilotOptions(min_documents=2)
    empty = create_store(
        "memory://progress", frame, source="f", max_topics=3, counting=COUNTING, pilot=few
    )
    whole = create_store("memory://whole", like=empty.url).update(frame, source="f")
    store = empty.update(frame[:2], source="f", by="day", compact_after=0)
    capsys.readouterr()
    store = store.update(frame, source="f", by="day", verbose=1, compact_after=0)
    shown = re.findall(r"reading shards: (\d+) of (\d+)", capsys.readouterr().out)
    assert {int(total) for _, total in shown} == {5}
    assert [int(done) for done, _ in shown] == sorted(int(done) for done, _ in shown)
    assert shown[-1][0] == "5"
    assert store.snapshot.load() == whole.snapshot.load()
    assert [str(one.dates) for one in store.snapshot.commit.segments] == few_days


def test_a_model_of_a_collection_is_polished_from_python(store, records, tmp_path):
    with pytest.raises(InvalidInput, match="give `polish` the documents and their source"):
        store.polish()
    polished = store.polish(records, source="all", name="polished", passes=2)
    assert polished.model.polishing.documents == 900
    assert polished.model.polishing.parent == "first"
    again = store.topics("polished").model
    assert np.array_equal(again.topics, polished.model.topics)
    aside = store.polish([one["text"] for one in records[:50]], source="few", model="first")
    assert aside.model.polishing.documents == 50
    with pytest.raises(StoreError, match="already a model 'first'"):
        store.polish(records, source="all", name="first")
    files = tmp_path / "texts.jsonl"
    files.write_text("".join(f'{{"text": "{one["text"]}"}}\n' for one in records))
    few = PilotOptions(min_documents=2)
    whole = create_store(str(tmp_path / "s"), str(files), max_topics=3, pilot=few)
    whole = whole.update(str(files))
    whole.refit(3, name="first")
    assert whole.polish(passes=1).model.polishing.documents == 900


def test_shares_over_time_are_a_frame_and_a_plot(store):
    shares = store.shares_over_time("day")
    assert repr(shares) == "SharesOverTime(2 periods, 3 topics, 2026-11-01 to 2026-11-02)"
    frame = shares.to_frame()
    assert frame["first"].tolist() == ["2026-11-01", "2026-11-02"]
    assert np.allclose(frame.filter(regex=r"^share_").sum(axis=1), 1)
    assert shares.to_table()["bar"].type.list_size == 3
    panels = shares.plot(Figure())
    assert len(panels) == 3
    assert np.allclose(panels[0].containers[0][0].get_ydata(), 100 * shares.shares[:, 0])
    nothing = type(shares)((), shares.names)
    assert repr(nothing) == "SharesOverTime(0 periods, 3 topics)"
    with pytest.raises(InvalidInput, match="nothing to draw"):
        nothing.plot(Figure())


def test_transform_reads_more_documents_than_one_block(store, planted, tmp_path):
    # texts and ids are read side by side, in blocks of 1 MiB
    texts = [f"{text} {number}" for number, text in enumerate(planted * 12)]
    assert sum(map(len, texts)) > 2**20
    written = store.transform(texts, str(tmp_path / "out"), source="many").to_table()
    assert written.num_rows == len(texts)
    few = store.transform(texts[-9:], str(tmp_path / "few"), source="few").to_table()
    assert written["proportions"].to_pylist()[-9:] == few["proportions"].to_pylist()


def test_what_transform_wrote_is_a_table(store, planted, tmp_path):
    written = store.transform(planted[:9], str(tmp_path / "out"), source="new")
    assert written.to_table().num_rows == 9
    assert "proportions" in written.to_table().column_names
    assert "\n" not in repr(written)
    assert len(repr(written)) < 400
