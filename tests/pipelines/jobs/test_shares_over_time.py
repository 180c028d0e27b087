"""Shares of topics over time, from the counts of a store alone."""

import json
import re
import shutil
from datetime import date, timedelta

import matplotlib as mpl
import numpy as np
import pytest

from streaming_moments.errors import InvalidInput
from streaming_moments.models.topics import TopicModel
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.compact import compact
from streaming_moments.pipelines.jobs.create import PilotOptions, create
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.refit import refit
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.reports.plot import plot_shares
from streaming_moments.quality.mixture_shares import mixture_shares
from streaming_moments.storage.counting.reading import read_shard
from streaming_moments.storage.counting.tokens import TokenPolicy
from streaming_moments.storage.dates import DateRange, DateSource
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.shares_over_time import (
    PeriodShares,
    finest_period,
    shares_over_time,
)
from streaming_moments.storage.shards import ShardFormat
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")
DAYS = ("2026-10-29", "2026-10-31", "2026-11-02", "2026-11-03")


@pytest.fixture(scope="module")
def dated(planted, embedded, tmp_path_factory):
    """A store of one shard a day, and a model of it."""
    folder, run = tmp_path_factory.mktemp("days"), Run(embedded)
    for number, day in enumerate(DAYS):
        (folder / f"{day}.txt").write_text("\n".join(planted[number::4][:150]))
    listed = list_shards([str(folder / "*.txt")])
    pilot = PilotOptions(max_topics=4, pilot_documents=600)
    store = create(str(folder / "store"), listed, ShardFormat(), TokenPolicy(), pilot, run)
    store = update(store, listed, run).store
    return store.save_model("fitted", refit(store, 4, 1.0, run))


def counts_of(store, days):
    """Words of the documents of some days, and how many these are in effect, read again."""
    counts, lengths = np.zeros(store.basis.n_words, dtype=np.int64), []
    for shard in list_shards([record.url for record in store.ledger()]):
        if any(day in shard.url for day in days):
            for read in read_shard(shard, store.form, store.vocabulary, store.policy):
                np.add.at(counts, read.batch.words, read.batch.counts)
                lengths.append(read.batch.lengths)
    lengths = np.concatenate(lengths)
    return counts, ((lengths / lengths.sum()) ** 2).sum()


@pytest.mark.parametrize(
    ("by", "periods"),
    [
        ("day", [[day] for day in DAYS]),
        ("week", [DAYS[:2], DAYS[2:]]),
        ("month", [DAYS[:2], DAYS[2:]]),
    ],
)
def test_periods_have_the_shares_of_their_documents(dated, by, periods):
    model = dated.load_model("fitted")
    found = shares_over_time(dated, model, by)
    assert [str(one.days.first) for one in found] == [days[0] for days in periods]
    assert [str(one.days.last) for one in found] == [days[-1] for days in periods]
    for one, days in zip(found, periods, strict=True):
        counts, concentration = counts_of(dated, days)
        shares, bars = mixture_shares(model, counts, concentration=concentration)
        assert one.tokens == counts.sum()
        assert one.shares == tuple(shares.tolist())
        assert one.bars == pytest.approx(bars.tolist())


FORTNIGHT = [f"2026-11-{day:02}" for day in range(1, 15)]


@pytest.fixture(scope="module", params=["documents", "passages"])
def steady(request, embedded, tmp_path_factory):
    """A store of 14 days of 285 documents of one corpus without a trend, as it is or cut."""
    folder, run = tmp_path_factory.mktemp("steady"), Run(embedded)
    rng, policy = np.random.default_rng(3), TokenPolicy()
    mean = 4
    if request.param == "passages":
        mean, policy = 5.5, TokenPolicy(passage_words=100)
    topics = rng.dirichlet(np.full(300, 0.1), 6)
    words = np.array([f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(300)])
    for day in FORTNIGHT:
        lengths = np.maximum(rng.lognormal(mean, 0.8, 285), 3).astype(int)
        shares = rng.dirichlet(np.full(6, 0.5 / 6), 285)
        texts = (
            " ".join(rng.choice(words, length, p=own @ topics))
            for length, own in zip(lengths, shares, strict=True)
        )
        (folder / f"{day}.txt").write_text("\n".join(texts))
    listed = list_shards([str(folder / "*.txt")])
    pilot = PilotOptions(max_topics=6, pilot_documents=2000, max_document_fraction=1.0)
    store = create(str(folder / "store"), listed, ShardFormat(), policy, pilot, run)
    store = update(store, listed, run).store
    return request.param, store.save_model("fitted", refit(store, 6, 0.5, run))


def test_days_without_a_trend_differ_by_what_their_bars_say(steady):
    cut, store = steady
    found = shares_over_time(store, store.load_model("fitted"), "day")
    assert len(found) == len(FORTNIGHT)
    shares, bars = (np.array([getattr(one, name) for one in found]) for name in ("shares", "bars"))
    pairs = np.triu_indices(len(found), 1)
    ratios = (shares[pairs[0]] - shares[pairs[1]]) / np.hypot(bars[pairs[0]], bars[pairs[1]])
    # of documents that were cut the bars are estimated, rather too wide
    least = 0.4 if cut == "passages" else 0.85
    assert least < np.sqrt(np.square(ratios).mean()) < 1.15
    assert (np.abs(ratios) > 2).mean() < 0.1


def test_what_was_forgotten_or_summed_up_counts_as_it_is(dated, embedded, tmp_path):
    run, model = Run(embedded), dated.load_model("fitted")
    shutil.copytree(dated.url, tmp_path / "store")
    whole, dated = dated, MomentStore.open(str(tmp_path / "store"))
    gone = [shard.url for shard in dated.ledger() if DAYS[1] in shard.url]
    less = forget(dated, list_shards(gone), run)
    found = shares_over_time(less, model, "day")
    kept = [one for one in shares_over_time(whole, model, "day") if str(one.days) != DAYS[1]]
    assert list(found) == kept
    months = compact(less, run, "month")
    assert finest_period(dated) == "day"
    assert shares_over_time(months, model, "month") == shares_over_time(less, model, "month")
    assert finest_period(months) == "week"
    with pytest.raises(InvalidInput, match="more than one day; choose longer periods"):
        shares_over_time(months, model, "day")
    # there is no longer period than a month
    with pytest.raises(InvalidInput, match="more than one month; create a new store"):
        shares_over_time(compact(months, run, "all"), model, "month")


def test_weeks_begin_on_monday_and_months_end():
    days = DateRange(date(2028, 2, 29), date(2028, 2, 29))
    assert str(days.period("week")) == "2028-02-28 to 2028-03-05"
    assert str(days.period("month")) == "2028-02-01 to 2028-02-29"
    assert days.period("day") == days


def test_a_store_without_dates_says_so(dated, embedded, tmp_path):
    (tmp_path / "a.txt").write_text("law sea\nsea law\n" * 20)
    listed, run = list_shards([str(tmp_path / "a.txt")]), Run(embedded)
    pilot = PilotOptions(max_topics=1, min_documents=1, max_document_fraction=1.0)
    none = DateSource(pattern="none")
    place = str(tmp_path / "store")
    store = create(place, listed, ShardFormat(), TokenPolicy(), pilot, run, dates=none)
    store = update(store, listed, run).store
    assert finest_period(store) is None
    model = TopicModel.from_topics(np.full((2, 1), 0.5), np.ones(1))
    with pytest.raises(InvalidInput, match="have no dates"):
        shares_over_time(store, model)


def test_a_plot_says_names_and_unit_and_repeats_no_day(tmp_path):
    days = [date(2026, 1, 5) + timedelta(7 * week) for week in range(30)]
    periods = [PeriodShares(DateRange(day, day), 9, (0.5,) * 4, (0.1,) * 4) for day in days]
    drawn = tmp_path / "shares.svg"
    with mpl.rc_context({"svg.fonttype": "none"}):
        plot_shares(periods, ["law tax", "sea $x_{", "ship", "navy"], str(drawn))
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawn.read_text())
    assert {"0 law tax", "1 sea $x_{", "share of the tokens, %"} <= {*texts}
    ticks = [text for text in texts if re.fullmatch("20[0-9]{2}|[A-Z][a-z]{2}", text)]
    assert "Mar" in ticks
    # three panels show days: those with none below them
    assert max(map(ticks.count, ticks)) <= 3


def test_the_command_prints_and_draws_them(dated, run, tmp_path):
    drawn = tmp_path / "shares.png"
    code, printed, told = run(
        "topics", dated.url, "--over-time", "week", "--plot", drawn, "--json", "--model", "fitted"
    )
    assert (code, told) == (0, "")
    weeks = json.loads(printed)["over_time"]
    assert [week["first"] for week in weeks] == [DAYS[0], DAYS[2]]
    assert all(abs(sum(week["shares"]) - 1) < 1e-9 for week in weeks)
    assert all(0 < bar < 0.2 for week in weeks for bar in week["bars"])
    assert drawn.read_bytes().startswith(b"\x89PNG")
    code, printed, _ = run("topics", dated.url, "--over-time", "day", "--model", "fitted")
    assert code == 0
    assert DAYS[3] in printed
    assert "±" in printed
    assert f"No change beyond noise from {DAYS[0]} to {DAYS[3]}." in printed
    code, _, told = run("topics", dated.url, "--plot", drawn)
    assert code == 2
    assert "--over-time" in told
