"""Windows from end to end: days of shards, groups of one day, refits of a window."""

import json
import shutil
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counted_alone import counted_at

from streaming_moments import METHODS, fit, fit_by
from streaming_moments.errors import ShardError
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.refit import coherence, refit
from streaming_moments.pipelines.jobs.select import select
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.statistics.counts.statistics import merge_blocks
from streaming_moments.statistics.counts.weighted import WeightedStatistics
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateSource
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.windows import Window, WindowedStore
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
OPTIONS = PilotOptions(vocabulary_size=140, core=110, max_topics=5, min_documents=1)
DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")


@pytest.fixture(scope="module")
def dated(planted, tmp_path_factory):
    """Two shards a day, the days in their paths."""
    folder = tmp_path_factory.mktemp("dated")
    for number, part in enumerate(planted[start : start + 150] for start in range(0, 900, 150)):
        path = folder / f"{number % 2}" / f"{DAYS[number // 2]}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(part))
    return folder


@pytest.fixture(scope="module")
def counted(dated, tmp_path_factory, embedded):
    listed = list_shards([str(dated / "*" / "*.txt")])
    place = str(tmp_path_factory.mktemp("windows") / "store")
    store = create(place, listed, ShardFormat(), TokenPolicy(), OPTIONS, Run(embedded))
    return update(store, listed, Run(embedded)).store


def merged(source):
    """All rows of the statistics of a window."""
    return merge_blocks([source.load_block(index) for index in range(source.row_blocks)])


def test_groups_of_an_update_are_of_one_day(counted):
    assert [str(part.dates) for part in counted.commit.segments] == list(DAYS)
    assert [part.shards for part in counted.commit.segments] == [2, 2, 2]


def test_a_refit_of_a_window_is_the_fit_of_its_shards(counted, dated, run):
    window = ("--since", DAYS[1], "--until", DAYS[2])
    options = ("--topics", 4, "--alpha0", 1, "--json")
    code, out, err = run("refit", counted.url, *options, *window)
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert (shown["documents"], shown["since"], shown["until"]) == (600, *DAYS[1:])
    assert shown["model"].endswith("-from2026-11-20-to2026-11-21")
    expected = fit(
        counted_at(counted, [*dated.glob(f"*/{DAYS[1]}*"), *dated.glob(f"*/{DAYS[2]}*")]), 4, 1.0
    )
    found = MomentStore.open(counted.url).load_model(shown["model"])
    np.testing.assert_allclose(found.topics, expected.topics, atol=1e-9)
    assert (found.since, found.until, found.half_life) == (*DAYS[1:], None)


def test_a_half_life_is_said_in_the_model_and_weighs_days(counted, dated, run):
    options = ("--topics", 4, "--alpha0", 1, "--half-life", "0.1", "--name", "recent")
    code, out, _ = run("refit", counted.url, *options)
    assert code == 0
    assert "half as much after every 0.1 days (in floating point)" in out
    found = MomentStore.open(counted.url).load_model("recent")
    assert (found.half_life, found.documents) == (0.1, 900)
    # what is a day older weighs 2^-10: the model is nearly that of the last day
    last = fit(counted_at(counted, dated.glob(f"*/{DAYS[2]}*")), 4, 1.0)
    whole = fit(counted.load(), 4, 1.0)
    assert np.abs(found.word_probabilities - last.word_probabilities).sum() < 0.01
    assert np.abs(found.word_probabilities - whole.word_probabilities).sum() > 0.01
    assert "half as much" in run("topics", counted.url, "--model", "recent")[1]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_weighted_days_on_the_cluster_as_in_one_process(
    counted, embedded, method
):
    recent = WindowedStore.of(counted, Window(half_life=1))
    found = refit(recent, 4, 1.0, Run(embedded), method, seed=3)
    days = [recent.load_block(index) for index in range(recent.row_blocks)]
    assert all(isinstance(day, WeightedStatistics) for day in days)
    parts = [
        (2.0 ** (place - 2), WindowedStore.of(counted, Window(day, day)))
        for place, day in enumerate(map(date.fromisoformat, DAYS))
    ]
    whole = WeightedStatistics.of((weight, merged(part)) for weight, part in parts)
    expected = fit_by(whole, 4, 1.0, method, seed=3)
    np.testing.assert_allclose(found.topics, expected.topics, atol=1e-8)
    assert (found.method, found.half_life) == (method, 1)


@pytest.mark.parametrize(
    "window", [Window(since=date.fromisoformat(DAYS[1])), Window(half_life=1)], ids=str
)
def test_select_compares_models_of_a_window(counted, embedded, window):
    source = WindowedStore.of(counted, window)
    selection = select(source, (2, 4), [1.0], Run(embedded))
    for one in selection.candidates:
        model = refit(source, one.n_topics, 1.0, Run(embedded))
        scores = coherence(source, model, Run(embedded))
        assert one.npmi == pytest.approx(scores.npmi.mean())
        assert one.umass == pytest.approx(scores.umass.mean())
        assert one.captured == pytest.approx(model.captured)


def test_select_tells_the_window_and_how_to_refit_it(counted, run):
    window = ("--since", DAYS[1], "--half-life", "7")
    arguments = ("select", counted.url, "--topics", "2-3", *window)
    code, out, _ = run(*arguments, "--json")
    assert code == 0
    shown = json.loads(out)
    assert (shown["since"], shown["until"], shown["half_life"]) == (DAYS[1], None, 7)
    code, out, _ = run(*arguments)
    assert code == 0
    assert f" --since {DAYS[1]} --half-life 7" in out


def test_a_window_that_is_none_is_wrong_input(counted, run):
    code, _, err = run("refit", counted.url, "--topics", 3, "--since", "2027-01-01")
    assert code == 2
    assert "documents: 2026-11-19 to 2026-11-21; choose among these days" in err
    code, _, err = run("refit", counted.url, "--topics", 3, "--since", "soon")
    assert code == 2
    assert "'soon' is not a day" in err


def test_what_is_forgotten_leaves_its_day(counted, dated, embedded, run, tmp_path):
    counted = MomentStore.open(shutil.copytree(counted.url, tmp_path / "store").as_posix())
    shard = dated / "0" / f"{DAYS[1]}.txt"
    less = forget(counted, list_shards([str(shard)]), Run(embedded))
    assert [str(part.dates) for part in less.commit.segments if part.sign < 0] == [DAYS[1]]
    small = compact(less, Run(embedded))
    assert sorted(str(part.dates) for part in small.commit.segments) == list(DAYS)
    window = ("--since", DAYS[1], "--until", DAYS[1], "--name", "without")
    assert run("refit", counted.url, "--topics", 3, *window)[0] == 0
    model = MomentStore.open(counted.url).load_model("without")
    expected = counted_at(counted, [dated / "1" / f"{DAYS[1]}.txt"])
    assert model.documents == expected.n_documents == 150
    probabilities = expected.moment_counts / expected.length_histogram.C1
    np.testing.assert_allclose(model.word_probabilities, probabilities)


def test_a_column_of_dates_is_read_and_a_bad_one_left_out(planted, tmp_path, embedded):
    for number, days in enumerate((DAYS[:1], DAYS[:1], DAYS, ("soon",))):
        texts = planted[number * 30 : number * 30 + 30]
        table = pa.table({"text": texts, "day": [days[i % len(days)] for i in range(30)]})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    listed = list_shards([str(tmp_path)])
    made = create(
        str(tmp_path / "store"),
        listed,
        ShardFormat(),
        TokenPolicy(),
        OPTIONS,
        Run(embedded),
        dates=DateSource(column="day"),
    )
    with pytest.raises(ShardError, match=r"3\.parquet: column 'day' .* does not begin with a date"):
        update(made, listed, Run(embedded))
    assert made.latest().version == 0
    result = update(MomentStore.open(made.url), listed, Run(embedded), skip_bad_shards=True)
    assert [error.url for error in result.bad] == [listed[3].url]
    assert result.store.log()[1].skipped[0][0] == listed[3].url
    found = [(str(part.dates), part.shards) for part in result.store.commit.segments]
    assert found == [(DAYS[0], 2), (f"{DAYS[0]} to {DAYS[2]}", 1)]


def test_bad_shards_of_several_days_are_one_commit(counted, dated, tmp_path, embedded):
    store = counted.latest()
    for number in range(3):
        (tmp_path / f"2026-11-2{4 + number}.txt").write_bytes(b"no \xff text")
    bad = list_shards([str(tmp_path / "*.txt")])
    result = update(store, bad, Run(embedded), skip_bad_shards=True)
    assert [error.url for error in result.bad] == [shard.url for shard in bad]
    assert (result.store.version, result.counted) == (store.version + 1, 0)
    assert len(result.store.commit.skipped) == 3
    # a shard that can be read takes them into its commit
    (tmp_path / "2026-11-27.txt").write_text((dated / "0" / f"{DAYS[0]}.txt").read_text())
    listed = list_shards([str(tmp_path / "*.txt")])
    result = update(result.store, listed, Run(embedded), skip_bad_shards=True)
    assert (result.store.version, result.counted) == (store.version + 2, 1)
    assert len(result.store.commit.skipped) == 3


@pytest.mark.parametrize(("zones", "day"), [(True, "2026-11-22"), (False, "2026-11-21")])
def test_what_is_taken_out_is_of_the_days_by_which_it_was_counted(
    planted, tmp_path, embedded, zones, day
):
    """A store of before has its own rule for texts with a zone, and goes on by it."""
    when = ["2026-11-21T23:30:00-05:00"] * 30
    for number in range(4):
        texts = planted[number * 30 : number * 30 + 30]
        table = pa.table({"text": texts, "day": when})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    listed, run = list_shards([str(tmp_path)]), Run(embedded)
    source = DateSource("day", zones=zones)
    told = ShardFormat(), TokenPolicy(), OPTIONS, run
    store = create(str(tmp_path / "store"), listed, *told, dates=source)
    written = dict(MomentStore.open(store.url).commit.lineage.dates)
    assert ("zones" in written) is zones
    store = update(MomentStore.open(store.url), listed, run).store
    store = forget(store, listed[:1], run)
    moved, kept = tmp_path / "1.parquet", tmp_path / "old.parquet"
    moved.rename(kept)
    pq.write_table(pa.table({"text": planted[200:230], "day": when}), moved)
    changed = list_shards([str(moved)])
    store = update(store, changed, run, old=list_shards([str(kept)])).store
    assert store.commit.documents == 90
    assert {str(part.dates) for part in store.commit.segments} == {day}
    assert {part.sign for part in store.commit.segments} == {1, -1}
    that = date.fromisoformat(day)
    window = WindowedStore.of(store, Window(since=that, until=that))
    for index in range(store.row_blocks):
        found, whole = window.load_block(index), store.load_block(index)
        np.testing.assert_array_equal(found.word_counts, whole.word_counts)
        np.testing.assert_array_equal(found.pair_counts, whole.pair_counts)
