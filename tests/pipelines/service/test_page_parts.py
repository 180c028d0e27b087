"""Pages of a topic, of time and of the choice of k, in a real browser, by mouse and keys."""

import json
from html import unescape

import numpy as np
import pytest
from playwright.sync_api import expect

from streaming_moments.errors import InvalidInput
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.jobs.forget import forget
from streaming_moments.pipelines.jobs.update import update
from streaming_moments.pipelines.service.config import service_of
from streaming_moments.pipelines.service.http import parts
from streaming_moments.pipelines.service.ingest_worker import selecting
from streaming_moments.pipelines.service.ingest_worker.accumulator import Accumulator, accumulate
from streaming_moments.pipelines.service.ingest_worker.selecting import (
    ask_selection,
    compare,
    found_selection,
    selection_is_asked,
)
from streaming_moments.storage.listing import list_shards
from streaming_moments.storage.operations.labels import label
from streaming_moments.storage.store.store import MomentStore

NASTY = "<script>alert(1)</script><img src=x onerror=alert(2)>"
WIDTHS = [(1280, "light"), (390, "dark")]


@pytest.fixture
def store(days):
    return MomentStore.open(str(days / "store"))


def documents(days, model, topics=4):
    """What a transform leaves of the documents of topics, with ids and texts that are hostile."""
    one = {"id": NASTY, "source": f"s3://{NASTY}", "row": 6, "share": 0.9, "bound": 0.8}
    found = [
        [{**one, "length": 30, "text": f"{NASTY} {n} {t}"} for n in (1, 2)] for t in range(topics)
    ]
    content = {"store": "", "model": model, "labels": {}, "number": 2, "topics": found}
    folder = days / "read"
    folder.mkdir()
    (folder / "_top_documents.json").write_text(json.dumps(content))
    return str(folder)


def columns_of(page, table):
    """Left and right of the numbers of each row of a table."""
    return page.eval_on_selector_all(
        f"{table} tr",
        "rows => rows.map(row => [...row.querySelectorAll('.number')].map(cell => {"
        " const b = cell.getBoundingClientRect(); return [b.left, b.right, b.height] }))",
    )


def fits(page, width):
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelectorAll('img').length") == 0


def in_columns(page, table, number, width):
    cells = columns_of(page, table)
    assert {len(row) for row in cells} == {number}
    wide = page.eval_on_selector_all(
        f"{table} .number", "cells => cells.map(cell => cell.scrollWidth - cell.clientWidth)"
    )
    assert max(wide) <= 0, "no number or heading is cut"
    for column in zip(*cells, strict=True):
        assert len({(round(left), round(right)) for left, right, _ in column}) == 1
        assert max(right for _, right, _ in column) <= width


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_a_topic_has_a_page_with_all_that_is_known_of_it(
    days, store, serve_days, seen, width, scheme
):
    label(store, 0, NASTY, "three")
    with serve_days(documents=documents(days, "three")) as client:
        page = seen(client, "/topics/0", width, scheme)
        assert page.locator("h1").inner_text() == NASTY
        facts = page.locator(".facts").inner_text()
        assert "coherence, NPMI" in facts
        assert "error bar, L1" in facts
        words = page.locator("#words .word").all_text_contents()
        assert len(words) == 30
        assert all("%" in one for one in page.locator("#words .value").all_text_contents())
        page.locator("#relevance").fill("0")
        assert page.locator("#words .word").all_text_contents() != words
        assert page.locator("#period-panels .panel").count() == 1
        assert page.locator("#periods circle.mark").count() == 3
        assert page.locator("#periods .foot").all_text_contents() == ["11-01", "11-03"]
        assert page.locator("#documents blockquote").all_text_contents() == [
            f"{NASTY} 1 0",
            f"{NASTY} 2 0",
        ]
        assert f"{NASTY} · s3://{NASTY}, document 7" in page.locator("#documents").inner_text()
        assert page.locator("#near tbody tr").count() == 3
        in_columns(page, "#near", 3, width)
        fits(page, width)


def test_without_a_transform_documents_are_of_the_shards(days, serve_days, seen, planted):
    with serve_days() as client:
        page = seen(client, "/topics/2")
        quote = page.locator("#documents blockquote").inner_text().strip(" \N{HORIZONTAL ELLIPSIS}")
        assert any(quote in text for text in planted)
        assert "onerror" in page.locator("#documents code").inner_text()
    with serve_days(sample_documents=False) as client:
        assert seen(client, "/topics/2").locator("#documents").count() == 0


def test_documents_that_are_not_counted_are_left_out_once_some_are_forgotten(
    days, store, serve_days, seen, embedded, planted
):
    run, name = Run(embedded), days / "2026-11-04.jsonl"
    name.write_text("".join(json.dumps({"text": text}) + "\n" for text in planted[:20]))
    counted = update(store, list_shards([str(name)]), run).store
    with serve_days(documents=documents(days, "three")) as client:
        page = seen(client, "/topics/1")
        assert page.locator("#documents blockquote").count() == 2, "more is counted, none forgotten"
        assert "counted since then are not in it" in page.locator(".reasons").inner_text()
        forget(counted, list_shards([str(name)]), run)
        client.service.current.look()
        page.reload()
        assert page.locator("#documents").count() == 0
        assert "forgotten since the model was fitted are not shown" in (
            page.locator("#note").inner_text()
        )


def test_documents_of_the_shards_go_with_those_that_are_forgotten(
    days, store, serve_days, embedded
):
    with serve_days() as client:
        shown = unescape(client("GET", "/topics/1").text)
        assert "<blockquote" in shown
        [url] = [one.url for one in store.ledger() if one.url in shown]
        forget(store, list_shards([url]), Run(embedded))
        client.service.current.look()
        after = unescape(client("GET", "/topics/1").text)
        assert "<blockquote" in after, "of another shard"
        assert url not in after


def test_documents_of_another_model_are_not_taken_for_its_own(days, serve_days, seen):
    with serve_days(documents=documents(days, "other")) as client:
        page = seen(client, "/topics/1")
        assert page.locator("#documents").count() == 0
        assert "has documents of model 'other'" in page.locator("#note").inner_text()


def test_keys_alone_lead_from_the_map_to_a_topic_to_its_label_and_back(serve_days, seen, days):
    with serve_days() as client:
        page = seen(client, "/")
        page.locator('#map [data-topic="1"]').focus()
        page.keyboard.press("Enter")
        name = page.locator("#topic-1 h3 a")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.getAttribute('href')") == "topics/1"
        told = name.inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector("#label")
        assert page.locator("h1").inner_text() == told
        page.get_by_role("textbox").focus()
        page.keyboard.type("the sea")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("the sea")
        page.get_by_role("link", name="on the map").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#place-1")).to_be_focused()
        assert "the" in page.locator("#map").inner_text()
        page.go_back()
        page.get_by_role("link", name="next").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/topics/2")
    assert MomentStore.open(str(days / "store")).models["three"].labels == {1: "the sea"}


@pytest.mark.parametrize(("width", "scheme"), WIDTHS)
def test_time_shows_shares_of_days_weeks_and_months(store, serve_days, seen, width, scheme):
    label(store, 3, NASTY, "three")
    with serve_days() as client:
        page = seen(client, "/time", width, scheme)
        assert page.locator("#period-panels .panel").count() == 4
        assert page.locator("#periods circle.mark").count() == 12
        answer = page.locator("#headline").inner_text()
        assert answer.startswith(("No clear change from ", "Biggest change from "))
        assert "2026-11-01 to 2026-11-03" in answer
        shown = page.locator("#sums tbody tr").all_inner_texts()
        shares = client("GET", "/v1/shares?by=day").json()["periods"]
        for topic, row in enumerate(shown):
            first, last = (100 * shares[place]["shares"][topic] for place in (0, -1))
            bar = 100 * np.hypot(*(shares[place]["bars"][topic] for place in (0, -1)))
            step = f"{last - first:+.1f}".replace("-", "\N{MINUS SIGN}")
            said = step if abs(last - first) > 2 * bar else "noise"
            assert row.split()[-1] == said
            for number in (f"{first:.1f}", f"{last:.1f}"):
                assert number in row.split()
        whiskers = page.locator("#periods path.whisker")
        assert whiskers.count() == 12
        assert min(mark.bounding_box()["height"] for mark in whiskers.all()) > 4, "they are seen"
        assert page.locator("#periods rect.range").count() == 4
        height = page.locator("#periods svg").first.bounding_box()["height"]
        page.get_by_role("button", name="Enlarge").nth(1).focus()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "Reduce"
        large = page.locator("#periods .panel.large svg")
        assert large.bounding_box()["height"] > 1.5 * height
        page.keyboard.press("Enter")
        assert large.count() == 0
        assert NASTY in shown[3]
        in_columns(page, "#sums", 4, width)
        fits(page, width)
        page.get_by_role("link", name="by week").click()
        page.wait_for_url("**/time?by=week")
        # a Sunday, and the Monday and Tuesday after it
        assert page.locator("#periods circle.mark").count() == 8
        page.get_by_role("link", name="by month").click()
        page.wait_for_url("**/time?by=month")
        assert "nothing to compare it with" in page.locator("#periods").inner_text()
        assert client("GET", "/time?by=hour").status_code == 422


def test_more_periods_than_a_page_shows_are_not_begun(serve_days, monkeypatch):
    monkeypatch.setattr(parts, "_MOST_PERIODS", 2)
    with serve_days() as client:
        assert "documents are from 3 different days" in client("GET", "/time?by=day").text


def test_numbers_of_topics_are_compared_beside_all_requests(
    days, store, serve_days, seen, embedded
):
    config = service_of({"store": str(days / "store")}, "service.toml")
    with serve_days() as client:
        page = seen(client, "/choice")
        assert "No numbers have been compared yet" in page.locator("#why").inner_text()
        page.get_by_role("button", name="Compare").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#asked")
        assert page.get_by_role("button").count() == 0, "once is enough"
        lines, waits = [], iter([False, False, True])
        accumulator = Accumulator.of(config, Run(embedded), lines.append)
        accumulate(accumulator, lambda seconds: next(waits))
        assert lines == [f"compared numbers of topics of version {store.version}"]
        compared = found_selection(client.service.current.inbox)
        known = [one for one in compared.selection.candidates if one.npmi is not None]
        for width, scheme in WIDTHS:
            page = seen(client, "/choice", width, scheme)
            why = page.locator("#why").text_content()
            assert why == compared.why
            taken = compared.selection.taken.n_topics
            assert f"Chosen: {taken} topics" in page.locator("#chosen").inner_text()
            assert why.endswith(compared.selection.why_separable)
            assert why.count("hose ") == 1
            tried = len(compared.selection.candidates)
            assert page.locator("#candidates tbody tr").count() == tried
            assert page.locator("#coherence circle.mark").count() == len(known) > 1
            assert page.locator("#held .ring").count() == 1
            assert "in nats" in page.locator("#held figcaption").inner_text()
            in_columns(page, "#candidates", 4, width)
            fits(page, width)
        assert page.get_by_role("button", name="Compare again").count() == 1
    assert MomentStore.open(str(days / "store")).version == store.version, "nothing is kept"


def test_what_is_killed_while_it_compares_compares_again(days, store, serve_days, monkeypatch):
    def killed(store, run):
        raise KeyboardInterrupt

    def refused(store, run):
        raise InvalidInput(f"none fits {NASTY}")

    with serve_days() as client:
        inbox = client.service.current.inbox
        ask_selection(inbox, store.version)
        monkeypatch.setattr(selecting, "_selection", killed)
        with pytest.raises(KeyboardInterrupt):
            compare(store, inbox, None)
        assert selection_is_asked(inbox)
        monkeypatch.setattr(selecting, "_selection", refused)
        compare(store, inbox, None)
        assert not selection_is_asked(inbox)
        text = client("GET", "/choice").text
        assert "none fits &lt;script&gt;" in text
        assert "<img" not in text


def test_the_night_that_compared_last_is_shown(days, store, serve_days):
    tried = [
        {
            "n_topics": k,
            "alpha0": 0.1,
            "npmi": 0.1 + k / 100,
            "seconds": (k - 3) * 1.2,
            "held_out": {"even": -8.0 - k, "odd": -8.1},
        }
        for k in (3, 5)
    ]
    report = {"store": store.url, "version": 3, "candidates": tried}
    (days / "out").mkdir()
    for day, content in enumerate((report, {**report, "candidates": tried[:1]}, {"store": "x"})):
        (days / "out" / f"night-2026110{day}T000000000000Z.json").write_text(json.dumps(content))
    (days / "out" / "night-20261109T000000000000Z.json").write_text("[half")
    (days / "night.toml").write_text(
        f'store = "{store.url}"\nshards = "x/*.jsonl"\noutput = "{days}/out"\n[refit]\ntopics = 4\n'
    )
    accumulate = {"night": str(days / "night.toml"), "refit_documents": 100}
    with serve_days(accumulate=accumulate) as client:
        text = client("GET", "/choice").text
        assert "Chose 3 topics" in text
        assert "3 topics, alpha0 0.1, under 0.1 s" in text
        assert "5 topics, alpha0 0.1, 2.4 s" in text
        assert "A night compared these numbers for 900 documents." in text
    (days / "night.toml").unlink()
    with serve_days(accumulate={}) as client:
        assert "No numbers have been compared yet" in client("GET", "/choice").text


def test_there_is_no_page_of_a_topic_that_is_not_there(serve_days):
    with serve_days() as client:
        for path in ("/topics/4", "/topics/-1", "/topics/x", "/topics/9999999999999999999999"):
            answer = client("GET", path)
            assert answer.status_code == 404, path
            assert answer.json()["field"] == "topic"
