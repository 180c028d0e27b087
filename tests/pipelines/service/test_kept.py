"""What the service holds in memory: budgets, rates, pages, and nothing that a log may not show."""

from dataclasses import replace
from datetime import timedelta
from time import monotonic

import fsspec
import pytest

from streaming_moments.pipelines.service.counting_progress import Counting
from streaming_moments.pipelines.service.gauges import Gauges
from streaming_moments.pipelines.service.ingest_worker.steps import NAMES, FailingStep
from streaming_moments.pipelines.service.limits import Budget
from streaming_moments.pipelines.service.page_cache import PageCache
from streaming_moments.pipelines.service.recent_counts import MINUTES, Rates
from streaming_moments.storage.inbox.inbox import Backlog
from streaming_moments.storage.inbox.set_aside import SetAside
from streaming_moments.storage.shards import as_shard


def test_a_budget_is_taken_to_its_end_and_given_back():
    budget = Budget(10)
    assert [budget.take(6), budget.take(4), budget.take(1)] == [True, True, False]
    budget.give(4)
    assert [budget.take(5), budget.take(4), budget.take(0), budget.take(1)] == [
        False,
        True,
        True,
        False,
    ]


def test_rates_are_of_the_last_minutes_with_the_one_that_runs():
    now = [0.0]
    rates = Rates(lambda: now[0])
    assert (MINUTES, dict(rates.last(60))) == (60, {})
    rates.add("a")
    rates.add("a", 2)
    now[0] = 59.9
    rates.add("b", 5)
    assert (dict(rates.last(1)), dict(rates.last(60))) == ({"a": 3, "b": 5}, {"a": 3, "b": 5})
    now[0] = 60.0
    assert dict(rates.last(1)) == {}
    assert dict(rates.last(2)) == {"a": 3, "b": 5}
    now[0] = 59 * 60.0
    rates.add("a", 7)
    assert (rates.last(59)["a"], rates.last(60)["a"]) == (7, 10)
    now[0] = 60 * 60.0
    rates.add("a", 100)
    assert rates.last(60)["a"] == 107
    assert sorted(rates._minutes) == [59, 60], "no more is held than is asked for"


def test_of_pages_sixteen_are_held_those_asked_for_last():
    pages, made = PageCache(), []

    def kept(key):
        return pages.get_or_create(key, lambda: made.append(key) or f"page {key}")

    assert [kept(number) for number in range(16)] == [f"page {number}" for number in range(16)]
    assert kept(0) == "page 0"
    assert len(made) == 16
    kept(16)
    assert (kept(0), kept(2), made[16:]) == ("page 0", "page 2", [16])
    kept(1)
    assert made[16:] == [16, 1], "the one that was asked for first went"
    pages.clear()
    kept(0)
    assert made[18:] == [0]


def test_what_is_held_is_not_shown_and_lines_are_in_memory_for_a_while():
    budget, rates, pages = Budget(3), Rates(), PageCache()
    budget.take(2)
    rates.add("planted")
    pages.get_or_create("planted", lambda: "planted")
    assert repr(budget) == "Budget(nbytes=3)"
    assert "planted" not in repr(rates)
    assert repr(pages) == "PageCache()"
    with as_shard(b"abc") as shard:
        assert shard.size == 3
        url = shard.url
    assert not fsspec.filesystem("memory").exists(url)


def samples(text):
    """Values of metrics by name and labels."""
    lines = [line for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@pytest.fixture
def view(caller):
    return caller.service.view


def test_calls_are_counted_by_name_status_and_seconds(view):
    gauges = Gauges.new()
    gauges.answered("GET /b", 401, 0.002, asked=True)
    for status in (200, 399, 400, 499, 500, 502, 503):
        gauges.answered("GET /a", status, 0.002)
    gauges.answered("GET /b", 200, 29.9)
    gauges.accepted(3, 400)
    gauges.read(5)
    assert dict(gauges.rates.last(60)) == {
        "calls": 9,
        "refused": 2,
        "failed": 3,
        "documents": 3,
        "texts": 5,
    }
    found = samples(gauges.text(view))
    name = "streaming_moments_service"
    assert found[f'{name}_calls_total{{call="GET /a",status="200"}}'] == 1
    assert found[f'{name}_seconds_count{{call="GET /a"}}'] == 7
    edges = ["0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1.0", "2.0", "5.0"]
    edges += ["10.0", "30.0", "+Inf"]
    within = {
        key.split('le="')[1].removesuffix('"}'): value
        for key, value in found.items()
        if key.startswith(f'{name}_seconds_bucket{{call="GET /b"')
    }
    assert within == dict.fromkeys(edges, 1.0) | {"30.0": 2.0, "+Inf": 2.0}
    told = [found[f"{name}_{what}_total"] for what in ("documents", "bytes", "texts")]
    assert told == [3, 400, 5]


def test_store_and_inbox_are_told_as_they_are_known(view):
    aside = SetAside("a", 3, "full"), SetAside("b", 4, "full")
    steps = tuple(
        FailingStep(step, failures, "", "", "")
        for step, failures in (("count", 2), ("delete x", 3), ("delete y", 4), ("delete again", 5))
    )
    seen = replace(
        view,
        backlog=Backlog(2, 5, 700, timedelta(seconds=9)),
        sealed=8,
        counting=Counting(6, set_aside=aside, since=monotonic() - 50),
        problems={"store": "away", "model": "damaged"},
        steps=steps,
    )
    found = samples(Gauges.new().text(seen, 7.5))
    stalled = found.pop("streaming_moments_counting_stalled_seconds")
    assert 50 <= stalled < 110
    filled = found.pop("streaming_moments_sum_filled")
    largest = sum(part.largest for part in view.store.commit.segments if part.sign > 0)
    assert filled == pytest.approx(largest / 2**62)
    commit = view.store.commit
    told = {
        name.removeprefix("streaming_moments_"): value
        for name, value in found.items()
        if not name.startswith("streaming_moments_service")
    }
    failing = {"count": 2, "delete": 7, "delete again": 5}
    assert told == {
        "version": 4,
        "documents": commit.documents,
        "tokens": commit.tokens,
        "shards": 2,
        "inbox_batches": 2,
        "inbox_documents": 5,
        "inbox_bytes": 700,
        "inbox_age_seconds": 9,
        "inbox_seals": 8,
        "inbox_seals_uncounted": 6,
        "set_aside_shards": 2,
        "set_aside_documents": 7,
        "model_loaded": 1,
        "problems": 2,
        "accumulator_silence_seconds": 7.5,
        **{f'step_failures{{step="{name}"}}': failing.get(name, 0) for name in NAMES},
    }
    bare = samples(Gauges.new().text(replace(view, published=None)))
    assert bare["streaming_moments_model_loaded"] == 0
    assert bare["streaming_moments_counting_stalled_seconds"] == 0
    assert "streaming_moments_accumulator_silence_seconds" not in bare
