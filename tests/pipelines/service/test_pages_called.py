"""What pages are made of and what their forms may change, called in this process."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from types import SimpleNamespace
from urllib.parse import urlencode, urljoin

import numpy as np
import pytest
from service_answers import problem

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.models.factors.independent_factors import IndependentFactors
from streaming_moments.models.states import states_of
from streaming_moments.pipelines.jobs import select_states
from streaming_moments.pipelines.nightly.report import NightReport, report_as_json
from streaming_moments.pipelines.reports.page import ReportPage, ShareOverTime, TopicReport
from streaming_moments.pipelines.service.http import changing, pages, parts
from streaming_moments.pipelines.service.http.app import prefers_page
from streaming_moments.pipelines.service.http.pages import html, links_of
from streaming_moments.pipelines.service.http.version_rows import grouped
from streaming_moments.pipelines.service.ingest_worker.selecting import (
    Compared,
    ask_selection,
    found_selection,
    why_not_compared,
)
from streaming_moments.pipelines.service.ingest_worker.steps import FailingStep
from streaming_moments.pipelines.service.tokens import Role, add_token
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.files.sealed import seal
from streaming_moments.storage.inbox.inbox import Backlog
from streaming_moments.storage.log.ledger import outside_of
from streaming_moments.storage.store.store import MomentStore

FORM = "application/x-www-form-urlencoded"
OWN = {"content_type": FORM, "sec_fetch_site": "same-origin"}


@pytest.fixture
def values(monkeypatch):
    """What each page is rendered of."""
    found, rendered = [], pages.rendered

    def noted(template, **told):
        found.append((template, SimpleNamespace(**told)))
        return rendered(template, **told)

    monkeypatch.setattr(pages, "rendered", noted)
    return found


def told(caller, values, path, **headers):
    """What the page of a path is rendered of."""
    answer = caller("GET", path, **headers)
    assert answer.status == 200, answer.text
    return values[-1][1]


def sent(caller, path, form, **headers):
    return caller("POST", path, [urlencode(form).encode()], **{**OWN, **headers})


def test_a_page_allows_its_own_scripts_alone():
    scripts = ["one()", "two(\n)"]
    answer = html("<p>".join(f"<script>{one}</script>" for one in scripts))
    hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    policy = answer.headers["content-security-policy"]
    assert f"script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}';" in policy
    assert "script-src 'none';" in html("<p>").headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["content-type"].startswith("text/html")


def test_pages_are_linked_by_what_the_model_has_for_topics(caller, call_at):
    assert links_of(caller.service.view, "../")[0] == ("Topics", "../")
    assert [path for _, path in links_of(caller.service.view, "../")][1:] == [
        *("../time", "../choice", "../versions", "../health", "../try", "../docs"),
    ]
    assert links_of(replace(caller.service.view, published=None), "./")[0] == ("Topics", "./")
    with call_at("vectors") as other:
        assert links_of(other.service.view, "")[0] == ("Clusters", "")
        assert links_of(other.service.view, "")[2] == ("Number of clusters", "choice")


def test_all_links_of_pages_stay_below_the_path_of_a_proxy(caller):
    below, stored = "/of/others/", "/versions/2/rollback"
    for path in ("/", "/topics/1", "/time", "/choice", "/versions?before=1&after=4", stored):
        page = caller("GET", path).text
        found = re.findall(r'(?:href|action)="([^#"]+)"', page.replace('href="data:,"', ""))
        where = {urljoin(below + path[1:], unescape(one)) for one in found}
        assert len(where) >= 7, path
        assert {one for one in where if not one.startswith(below)} == set(), path
        assert {below, f"{below}health", f"{below}docs"} <= where, path
        [here] = re.findall(r'href="([^"]+)" aria-current="(?:page|true)">[A-Z]', page)
        first = path.split("?")[0].split("/")[1]
        assert urljoin(below + path[1:], here) == below + first.replace("topics", ""), path
    # what lies too deep for any page has short links
    lost = caller("GET", "/" * 9_000, accept="text/html").text
    assert len(lost) < 20_000


def test_the_first_page_is_of_the_model_or_says_that_there_is_none(caller):
    answer = caller("GET", "/")
    assert (answer.status, "<script>" in answer.text) == (200, True)
    report = pages.report_of(caller.service, caller.service.view, caller.service.view.published)
    again = pages.report_of(caller.service, caller.service.view, caller.service.view.published)
    assert (again is report, report.each) == (True, "topics/")
    assert all(one.sample is None for one in report.topics)
    caller.service.current.view = replace(caller.service.view, published=None)
    assert "No model yet" in caller("GET", "/").text


def test_versions_are_shown_and_compared(caller, values, monkeypatch):
    found = told(caller, values, "/versions")
    assert [line.version for line in found.lines] == [4, 3, 2, 1, 0]
    assert (found.apart, found.chosen, found.latest, found.kept) == (
        None,
        (3, 4),
        4,
        {0, 1, 2, 3, 4},
    )
    assert [len(group) for group in found.groups] == [1] * 5, "each night counted once"
    assert (found.at, found.title, found.admin) == ("./versions", "Versions", True)
    found = told(caller, values, "/versions?before=1&after=3")
    assert (found.chosen, found.apart.documents > 0) == ((1, 3), True)
    assert found.models == {"New models": ["night-v1"], "Deleted models": []}
    assert told(caller, values, "/versions?before=3&after=1").apart is None
    assert told(caller, values, "/versions?before=2").chosen == (2, 4)
    found = told(caller, values, "/versions?after=3")
    assert (found.chosen, found.apart is None) == ((2, 3), False)
    assert "not earlier" not in caller("GET", "/versions").text
    assert "not earlier" in caller("GET", "/versions?before=3&after=1").text
    for query, field in (
        ("before=9", "before"),
        ("after=9", "after"),
        ("before=1&after=9", "after"),
    ):
        assert problem(caller("GET", f"/versions?{query}"), 404)["field"] == field
    assert problem(caller("GET", "/versions?before=0"), 422)["field"] == "before"
    monkeypatch.setattr(pages, "_SHOWN", 2)
    assert [line.version for line in told(caller, values, "/versions").lines] == [4, 3]
    view = caller.service.view
    gaps = replace(view.store.commit, expired=((1, 3),))
    caller.service.current.view = replace(view, store=replace(view.store, commit=gaps))
    assert told(caller, values, "/versions").chosen == (4, 4), "no other is left"
    caller.service.current.view = replace(view, store=view.store.at(0))
    found = told(caller, values, "/versions")
    assert (found.chosen, found.latest, len(found.lines)) == ((1, 1), 0, 1)


def test_commits_of_documents_under_one_lock_are_one_row(caller):
    head = caller.service.view.store.commit

    def versions(*told):
        commits = [
            replace(head, version=9 - place, fence=fence, operation=operation)
            for place, (fence, operation) in enumerate(told)
        ]
        return [[line.version for line in group] for group in grouped(commits)]

    night = [(3, "model"), (3, "append"), (3, "append"), (2, "append"), (2, "grow")]
    assert versions(*night) == [[9], [8, 7], [6], [5]]
    assert versions((0, "append"), (0, "append")) == [[9], [8]]


def test_health_has_numbers_rates_and_the_ledger(caller, values):
    now = [0.0]
    caller.service.gauges.rates.clock = lambda: now[0]
    caller.service.gauges.accepted(2, 9)
    now[0] = 60.0
    caller.service.gauges.accepted(3, 9)
    found = told(caller, values, "/health")
    assert [one["documents"] for one in found.rates] == [3, 5]
    assert (found.runs, found.failed, found.silence, found.title) == ([], None, None, "Health")
    assert [one.documents for one in found.ledger] == [120, 120]
    assert found.facts["row blocks"] == 3
    assert found.facts["documents"] == 240
    assert not any("_" in name for name in found.facts)
    assert all(isinstance(one, str | int | float) and one != "" for one in found.facts.values())
    assert (found.since, found.view) == (None, caller.service.view)
    object.__setattr__(caller.service, "silence", lambda: 7.0)
    assert told(caller, values, "/health").silence == 7.0
    assert "All is well" in caller("GET", "/health").text
    object.__setattr__(caller.service, "silence", lambda: 400.0)
    failing = FailingStep("count", 3, "2026-11-01T03:00:00", "2026-11-01T04:00:00", "<b>full</b>")
    caller.service.current.view = replace(caller.service.view, steps=(failing,))
    text = caller("GET", "/health").text
    assert "2 things need attention" in text
    assert "failed 3 times since 2026-11-01 03:00 UTC: &lt;b&gt;full" in text
    assert "has not reported for 7 min" in text
    view = caller.service.view
    backlog = Backlog(1, 1, 9, timedelta(seconds=3))
    start = replace(failing, step="start", error="no scheduler answers")
    counting = replace(view.counting, failing=start.error)
    problems = {"counting": counting.problem(60.0)}
    caller.service.current.view = replace(
        view, steps=(start,), backlog=backlog, counting=counting, problems=problems
    )
    text = caller("GET", "/health").text
    assert "1 thing needs attention" in text
    assert "It cannot start, and tries again." in text
    assert text.count("no scheduler answers") == 1
    assert "has not reported" not in text
    assert "1 document is pending" in text
    caller.service.current.view = replace(caller.service.view, published=None)
    assert told(caller, values, "/health").since is None


def test_health_says_that_documents_are_refused_and_that_topics_may_be_poor(
    caller, values, monkeypatch
):
    view = caller.service.view
    old = Backlog(1, 1, 9, caller.service.config.limits.inbox_age)
    caller.service.current.view = replace(view, backlog=old)
    text = caller("GET", "/health").text
    assert "1 thing needs attention" in text
    assert "It accepts no documents. 1 document is pending" in text
    assert "get 429, because documents have been pending for 900 seconds" in text
    warned = {"warning": "1.0 effective documents are few", "effective_documents": 1.0}
    rough = {**pages.facts_of(view.store), **warned}
    monkeypatch.setattr(pages, "facts_of", lambda store: rough)
    caller.service.current.view = view
    text = caller("GET", "/health").text
    assert "All works, with a warning" in text
    assert "A few of them outweigh all others" in text
    assert "<li>1.0 effective documents are few.</li>" in text


def test_words_outside_are_of_what_was_counted_since_the_model(caller, values, monkeypatch):
    view = caller.service.view
    reference = replace(view.store.models["night-v3"], version=2)
    store = view.store.at(2)
    new = [one for one in view.store.ledger() if one.url not in {two.url for two in store.ledger()}]
    assert len(new) == 1
    models = {**view.store.commit.models, "night-v3": reference}
    changed = replace(view.store, commit=replace(view.store.commit, models=models))
    caller.service.current.view = replace(view, store=changed)
    since = told(caller, values, "/health").since
    outside, tokens = sum(one.outside for one in new), sum(one.tokens for one in new)
    assert since.new == pytest.approx(outside / (outside + tokens))
    before = outside_of(store.ledger())
    assert (since.before, since.has_risen) == (before, since.new - before > 0.05)
    outside_since = pages._outside_since
    for risen, said in ((0.06, "All works. The model lacks many"), (0.05, "All is well.")):
        monkeypatch.setattr(pages, "_outside_since", lambda *_, new=risen: pages.Outside(new, 0.0))
        text = caller("GET", "/health").text
        assert said in text
        assert ("streaming-moments grow" in text) is (risen > 0.05)
    monkeypatch.setattr(pages, "_outside_since", outside_since)

    def expired(self, version):
        raise StoreError("expired")

    caller.service.pages.clear()
    monkeypatch.setattr(MomentStore, "at", expired)
    assert told(caller, values, "/health").since is None


def test_health_shows_the_last_ten_nights_and_that_the_last_one_failed(
    call_at, archived, tmp_path, values
):
    place = archived("night")
    (tmp_path / "out").mkdir()

    def night(number, outcome, drift=True):
        measured = Drift(0.5 + number / 100, 0.1, 900.0, 0.5) if drift else None
        time = f"2026-11-{number + 1:02d}T03:00:00+00:00"
        report = NightReport(str(place), time, outcome=outcome, drift=measured)
        name = f"night-202611{number + 1:02d}T030000000000Z.json"
        (tmp_path / "out" / name).write_text(json.dumps(report_as_json(report)))

    (tmp_path / "night.toml").write_text(
        f'store = "{place}"\nshards = "x"\noutput = "{tmp_path}/out"\n[refit]\ntopics = 2\n'
    )
    accumulate = {"night": str(tmp_path / "night.toml"), "refit_every": "24h"}
    with call_at("night", accumulate=accumulate) as caller:
        for number in range(12):
            night(number, "published")
        night(12, "nothing new", drift=False)
        found = told(caller, values, "/health")
        assert [one.drift.captured for one in found.runs] == pytest.approx(
            [0.5 + number / 100 for number in range(11, 1, -1)]
        )
        assert found.failed is None
        night(13, "rejected")
        assert told(caller, values, "/health").failed.outcome == "rejected"
        assert told(caller, values, "/choice").compared is None
        candidates = [{"n_topics": k, "alpha0": 0.3, "npmi": 0.1 / k} for k in (2, 3)]
        content = {"store": str(place), "version": 3, "candidates": candidates}
        (tmp_path / "out" / "night-20261120T.json").write_text(json.dumps(content))
        found = told(caller, values, "/choice")
        assert (found.compared.version, found.compared.by_night) == (3, True)
        assert [one.n_topics for one in found.lines] == [2, 3]
        assert "Chosen: 2 topics" in caller("GET", "/choice").text
        for one in candidates:
            one["npmi"] = one["n_topics"] / 10
        (tmp_path / "out" / "night-20261121T.json").write_text(json.dumps(content))
        assert "3 is the largest number that was compared" in caller("GET", "/choice").text
        folder, store = pages.night_reports(caller.service)
        assert (folder.url, store) == (f"{tmp_path}/out", str(place))
        (tmp_path / "night.toml").unlink()
        assert pages.night_reports(caller.service) is None
    with call_at("counts_2") as caller:
        assert pages.night_reports(caller.service) is None


def test_a_text_is_tried(caller, values, call_at):
    assert told(caller, values, "/try").takes is True
    terms = caller.service.view.published.index.vocabulary.terms
    text = f"{terms[0]} {terms[0]} {terms[1]} zz"
    answer = sent(caller, "/try", {"text": text})
    found = values[-1][1]
    assert (answer.status, found.text, found.takes, found.found.words) == (200, text, True, 4)
    shares = [one.share for one in found.spoken]
    assert shares == sorted(shares, reverse=True)
    assert shares == sorted((one for one in found.found.proportions if one >= 0.01), reverse=True)
    by = caller.service.view.published.words_for(text, found.found.proportions, 8)
    for one in found.spoken:
        assert one.share == found.found.proportions[one.topic]
        assert one.words == by[one.topic]
        assert len(one.name.split()) == 2
    long = "a" * 100_001
    sent(caller, "/try", {"text": long})
    assert values[-1][1].text == long[:-1]
    assert problem(sent(caller, "/try", {"txt": "a"}), 422)["field"] == "text"
    other = problem(sent(caller, "/try", {"text": "a"}, content_type="x" * 61), 415)
    assert other["detail"] == f"the content type is {'x' * 60!r}; send the form"
    assert sent(caller, "/try", {"text": ""}).status == 200
    assert values[-1][1].found.words == 0
    large = caller("POST", "/try", [b"text=" + b"a" * 1_200_000], **OWN)
    assert problem(large, 413)["detail"].startswith("the body is above 1200000B")
    assert caller.service.budget._held == 0
    caller.service.current.view = replace(caller.service.view, published=None)
    assert problem(sent(caller, "/try", {"text": "a"}), 404)
    assert told(caller, values, "/try").takes is False
    with call_at("vectors") as other:
        assert told(other, values, "/try").takes is False


def test_of_the_words_of_a_text_the_eight_that_speak_most_are_told(caller, values, monkeypatch):
    asked, published = [], caller.service.view.published
    words_for = type(published).words_for
    monkeypatch.setattr(
        type(published),
        "words_for",
        lambda self, *told: asked.append(told[2]) or words_for(self, *told),
    )
    sent(caller, "/try", {"text": "a"})
    assert asked == [8]


def test_of_a_text_topics_of_a_hundredth_are_told(caller, values, monkeypatch):
    published = caller.service.view.published
    [one] = published.infer(["a"])
    for share, number in ((0.01, 2), (0.0099, 1)):
        found = replace(one, proportions=(1 - share, share))
        monkeypatch.setattr(type(published), "infer", lambda self, texts, found=found: [found])
        assert sent(caller, "/try", {"text": "a"}).status == 200
        assert len(values[-1][1].spoken) == number


def test_topics_of_a_text_have_their_labels(call_at, values):
    with call_at("counts_3") as caller:
        sent(caller, "/try", {"text": "wa wa wb"})
        names = {one.topic: one.name for one in values[-1][1].spoken}
        assert names[1] == "law & <sea>"


@pytest.mark.parametrize(("fields", "status"), [(10, 200), (11, 422)])
def test_a_form_has_few_fields(caller, fields, status):
    form = {"text": "a", **{f"f{number}": "x" for number in range(fields - 1)}}
    assert sent(caller, "/try", form).status == status
    assert caller.service.budget._held == 0


def test_the_page_of_the_calls_lists_them(caller, values):
    found = told(caller, values, "/docs")
    assert len(found.calls) == 29
    assert (found.at, found.title, found.document["openapi"]) == ("./docs", "API", "3.1.0")


def test_a_topic_is_shown_with_what_lies_nearest(caller, values):
    found = told(caller, values, "/topics/1")
    assert (found.number, found.parts, found.part.topic) == (1, 2, 1)
    assert found.content["only"] == 1
    assert (found.follows, found.note) == (True, "")
    assert found.measured.startswith("Distance: Jensen-Shannon")
    assert found.facts["share"] == f"{found.part.weight:.1%}"
    assert found.facts["coherence, NPMI"] == f"{found.part.npmi:.2f}"
    assert found.facts["error bar, L1"] == f"{found.part.bar:.3g}"
    (near,) = found.near
    other = found.page.topics[0]
    assert (near.number, near.share) == (0, other.weight)
    assert near.correlation == found.page.correlations[1][0]
    assert 0 < near.distance < 1
    assert found.title == " ".join(word for word, *_ in found.part.words[:2])
    assert told(caller, values, "/topics/0").near[0].name == found.title
    for number in (2, 3):
        answer = problem(caller("GET", f"/topics/{number}"), 404)
        assert (answer["field"], answer["detail"]) == (
            "topic",
            f"model night-v3 has no topic {number}",
        )


def test_states_and_clusters_are_shown_with_their_numbers(call_at, values):
    with call_at("vectors") as caller:
        found = told(caller, values, "/topics/1")
        assert (found.parts, found.title, found.measured) == (
            2,
            "law & <sea>",
            "Distance: between the means, in the unit of the rows.",
        )
        means = states_of(caller.service.view.published.model).means
        assert found.near[0].distance == pytest.approx(np.linalg.norm(means[0] - means[1]))
        assert found.near[0].correlation is None
        assert "error bar" in found.facts
        assert problem(caller("GET", "/topics/2"), 404)["detail"].endswith("has no cluster 2")
    with call_at("sequences") as caller:
        found = told(caller, values, "/topics/0")
        words = found.words["symbols"]
        assert [word for word, _ in words][:2] == ["b", "f"]
        assert sum(share for _, share in words) == pytest.approx(1, abs=1e-6)
        assert (found.facts["weight"], found.documents) == ("67.8%", ())
        assert found.content["only"] == 0
    with call_at("vectors_fourth") as caller:
        assert caller("GET", "/topics/0").status == 200


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (999.4, "999"),
        (1000, "1,000"),
        (-1000, "-1,000"),
        (0.12345, "0.123"),
        (1234567.8, "1,234,568"),
    ],
)
def test_numbers_are_short(value, shown):
    assert parts._short(value) == shown


def test_facts_are_of_what_is_known_of_a_part():
    report = ReportPage(
        "",
        "",
        "",
        "",
        states={"weight": (0.25, 0.375), "length": (0.25, 2000.0)},
        notes={1: "as before"},
    )
    assert parts._facts(report, None, 1) == {"weight": "37.5%", "length": "2,000"}
    part = TopicReport(1, 0.25, None, (), (), told={"words a document": 30.0}, bar=0.5)
    topics = replace(report, topics=(part, part))
    assert parts._facts(report, part, 0) == {"weight": "25.0%", "length": "0.25"}
    assert parts._facts(topics, part, 1) == {
        "share": "25.0%",
        "error bar": "0.5",
        "words a document": "30",
        "since the model before": "as before",
    }
    assert "since the model before" not in parts._facts(topics, part, 0)
    known = parts._Known((part,), "", [], "", {})
    assert parts._near(known, {1: "one"}, report, 0) == []
    assert parts._documents(None) == parts._documents(part) == ()


@pytest.mark.parametrize(
    ("said", "facts"),
    [("no error bars: it keeps no halves", {"error bar": "it keeps no halves"}), ("", {})],
)
def test_why_there_are_no_error_bars_is_told_in_their_place(monkeypatch, said, facts):
    asked = []
    monkeypatch.setattr(parts, "no_bars", lambda *told: asked.append(told) or said)
    view = SimpleNamespace(store=SimpleNamespace(halves=7))
    assert parts._missing(view, SimpleNamespace(model="a model")) == facts
    assert asked == [("a model", 7)]


def test_of_a_model_with_shares_by_day_nothing_is_said():
    shares = ShareOverTime(dates=("2026-11-20",))
    report = replace(ReportPage("", "", "", ""), shares=shares)
    assert parts._kept_models(report, None) == ""


def test_shares_over_time(caller, values, call_at, monkeypatch):
    found = told(caller, values, "/time")
    assert (found.by, found.said, len(found.over.dates)) == (None, "", 2)
    assert tuple(found.periods) == ("day", "week", "month")
    found = told(caller, values, "/time?by=month")
    assert (found.by, len(found.over.dates)) == ("month", 1)
    assert problem(caller("GET", "/time?by=year"), 422)["field"] == "by"
    for most, dates in ((2, 2), (1, 0)):
        monkeypatch.setattr(parts, "_MOST_PERIODS", most)
        found = told(caller, values, "/time?by=day")
        assert len(found.over.dates) == dates
    assert found.said.startswith("the documents are from 2 different days, and a page shows at most 1")
    with call_at("counts_3") as other:
        found = told(other, values, "/time")
        assert (found.over.dates, found.said) == ((), parts._NO_DAYS)
        assert told(other, values, "/time?by=day").said != parts._NO_DAYS
    with call_at("vectors") as other:
        found = told(other, values, "/time")
        assert (found.periods, found.by) == ((), None)
        assert found.said == (
            "spherical is a model of gaussian_mixture. Its clusters have no shares by day; "
            "topics do."
        )


def test_a_state_has_thirty_words(call_at, monkeypatch):
    asked, state_lines = [], parts.state_lines
    monkeypatch.setattr(
        parts, "state_lines", lambda *told: asked.append(told[2]) or state_lines(*told)
    )
    with call_at("views") as caller:
        assert caller("GET", "/topics/0").status == 200
        assert caller("GET", "/topics/1").status == 200
    assert asked == [30], "made once for a version"


def test_documents_of_shards_that_are_read_once_are_shown(call_at, values, monkeypatch):
    asked, found_of = [], parts.found_of
    monkeypatch.setattr(parts, "found_of", lambda *told: asked.append(told) or found_of(*told))
    with call_at("counts_3") as caller:
        view, published = caller.service.view, caller.service.view.published
        one, other = (told(caller, values, f"/topics/{number}") for number in (0, 1))
        known = parts._known(caller.service, view, published)
        assert len(asked) == 1
        assert asked[0] == (view.store, "topics", published.model, True, None, None)
        for found, part in zip((one, other), known.parts, strict=True):
            assert found.documents == ((part.sample, *part.further) if part.sample else ())
            assert (found.note, found.part) == (known.note, part)


def test_documents_of_a_folder_are_without_those_that_were_forgotten(call_at, values, monkeypatch):
    content = {"documents": "memory://documents"}
    monkeypatch.setattr(parts, "found_of", lambda *told: {0: "all"})
    asked, options = [], {"auto_mkdir": True}
    for gone, note in ((False, ""), (True, parts._LEFT_OUT)):
        monkeypatch.setattr(
            parts, "still_counted", lambda *told, gone=gone: asked.append(told) or ({}, gone)
        )
        with call_at("night", **content, storage_options=options) as caller:
            view = caller.service.view
            assert parts._found(caller.service, view, view.published) == ({}, note)
            assert asked[-1] == (view.store, "night-v3", {0: "all"}, options)

    def damaged(*told):
        raise StoreError("damaged")

    monkeypatch.setattr(parts, "found_of", damaged)
    with call_at("night", **content) as caller:
        view = caller.service.view
        assert parts._found(caller.service, view, view.published) == ({}, "damaged")


@pytest.mark.parametrize(
    ("folder", "forgotten", "looks"),
    [(None, (), 1), (None, ("a",), 2), ("memory://documents", (), 2)],
)
def test_documents_are_looked_for_again_where_a_version_may_have_others(
    call_at, monkeypatch, folder, forgotten, looks
):
    found = []
    monkeypatch.setattr(parts, "_found", lambda *told: found.append(1) or ({}, ""))
    monkeypatch.setattr(parts, "forgotten_since", lambda *told: forgotten)
    with call_at("night", documents=folder) as caller:
        assert caller("GET", "/topics/0").status == 200
        assert caller("GET", "/topics/1").status == 200
        view = caller.service.view
        view.store.save_model("other", view.store.load_any_model("night-v1"), tag=None)
        caller.service.current.look()
        assert caller("GET", "/topics/0").status == 200
    assert len(found) == looks


def test_documents_of_the_shards_are_shown_if_that_is_wanted(call_at, values):
    with call_at("night", sample_documents=False) as caller:
        assert told(caller, values, "/topics/0").documents == ()
    with call_at("counts_2", documents="memory://nowhere") as caller:
        found = told(caller, values, "/topics/0")
        assert (found.documents, bool(found.note)) == ((), True)


def test_choice_shows_what_was_compared_last(caller, values):
    inbox = caller.service.current.inbox
    found = told(caller, values, "/choice")
    assert (found.compared, found.lines, found.taken, found.latest) == (None, (), None, 240)
    assert (found.asked, found.refusal, found.page.what) == (False, "", "topic")
    token = found.token
    answer = sent(caller, "/choice", {"token": token})
    assert (answer.status, answer.headers["location"]) == (303, "choice")
    assert told(caller, values, "/choice").asked is True
    ask_selection(inbox, 4)
    inbox.folder.write("selection/found.json", seal({"version": 3, "refusal": "none fits"}))
    assert found_selection(inbox) == Compared(3, refusal="none fits")
    found = told(caller, values, "/choice")
    assert (found.compared.refusal, found.compared.why) == ("none fits", "")
    text = caller("GET", "/choice").text
    assert "none fits" in text
    assert "The accumulator compared these numbers for 240 documents." in text
    inbox.folder.write("selection/found.json", seal({"version": 2, "refusal": "none fits"}))
    text = caller("GET", "/choice").text
    assert "these numbers for 120 documents; the latest version has 240." in text
    view = caller.service.view
    gaps = replace(view.store.commit, expired=((1, 3),))
    caller.service.current.view = replace(view, store=replace(view.store, commit=gaps))
    assert "numbers at version 2, which has expired." in caller("GET", "/choice").text
    assert problem(sent(caller, "/choice", {"token": "x"}), 403)["field"] == "token"


def test_of_some_stores_no_numbers_are_compared(archived, monkeypatch):
    assert why_not_compared(MomentStore.open(str(archived("night")))) == ""
    assert why_not_compared(MomentStore.open(str(archived("tables_4")))) == ""
    # of a kind whose only model compares nothing
    monkeypatch.setattr(select_states, "models_of", lambda kind: [IndependentFactors])
    refused = why_not_compared(MomentStore.open(str(archived("vectors_fourth"))))
    assert refused.startswith("held-out data cannot choose the number of states of factors")


def test_a_rollback_is_shown_and_done_once_it_is_confirmed(call_at, values, monkeypatch):
    waits, locked = [], changing.locked
    monkeypatch.setattr(
        changing, "locked", lambda *told: waits.append(told[1].total_seconds()) or locked(*told)
    )
    with call_at("night") as caller:
        path = "/versions/2/rollback"
        found = told(caller, values, path)
        assert (found.found.version, found.found.head, found.found.models) == (
            2,
            4,
            tuple(name for name in ("night-v1", "night-v3") if name == "night-v3"),
        )
        assert found.found.tags == {"published": ("night-v3", "night-v1")}
        assert (found.shown, found.title) == (50, "Roll back to version 2?")
        assert found.found.apart.documents == -120
        assert "answers no texts" not in caller("GET", path).text
        first = caller("GET", "/versions/0/rollback").text
        assert "no model at all, so the service answers no texts" in first
        assert "they wait" not in first
        assert problem(caller("GET", "/versions/4/rollback"), 409)
        assert problem(caller("GET", "/versions/9/rollback"), 404)["field"] == "version"
        form = {"token": found.token, "head": "4"}
        assert problem(sent(caller, path, {**form, "head": "3"}), 409)["field"] == "head"
        shown = problem(sent(caller, path, {**form, "head": "x" * 21}), 409)["detail"]
        assert f"but the form was made for version {'x' * 20!r}" in shown
        assert caller.service.view.store.version == 4
        answer = sent(caller, path, form)
        assert (answer.status, answer.headers["location"]) == (303, "../../versions")
        store = caller.service.view.store
        assert (store.version, store.commit.operation, store.commit.documents) == (
            5,
            "rollback",
            120,
        )
        assert store.commit.message == "rollback to version 2"
        assert set(waits) == {5.0}, "for a turn that counts"
        tags = changing._return_to(store, 0).tags
        assert tags == {"published": ("night-v1", None)}


def test_forms_are_of_this_place_and_of_who_asked(caller, values, monkeypatch):
    path = "/topics/1/label"
    token = told(caller, values, "/topics/1").token
    good = {"token": token, "label": " the sea "}
    assert problem(sent(caller, path, {"label": "x"}), 403)["field"] == "token"
    for site in ("cross-site", "same-site", "none", ""):
        refused = sent(caller, path, good, sec_fetch_site=site)
        assert problem(refused, 403)["field"] == "Sec-Fetch-Site"
    body, own = [urlencode(good).encode()], {"content_type": FORM}
    for origin in (None, "null", "http://evil", "http://localhost.evil"):
        headers = own if origin is None else {**own, "origin": origin}
        assert problem(caller("POST", path, body, **headers), 403)["field"] == "Origin"
    assert caller("POST", path, body, **own, origin="http://LOCALHOST").status == 303
    assert caller.service.view.store.models["night-v3"].labels == {1: "the sea"}
    assert sent(caller, path, {**good, "label": ""}).headers["location"] == "../1"
    assert caller.service.view.store.models["night-v3"].labels == {}
    assert problem(sent(caller, "/topics/0/label", good), 403)["field"] == "token"
    long = sent(caller, path, {**good, "label": "x" * 10_000})
    assert problem(long, 413)["detail"].startswith("the body is above 10000B")
    with monkeypatch.context() as patch:
        patch.setitem(vars(caller.service), "secret", b"of another process")
        assert problem(sent(caller, path, good), 403)["field"] == "token"
    caller.service.current.view = replace(caller.service.view, published=None)
    assert problem(sent(caller, path, good), 404)


def test_a_rollback_of_somebody_is_told_by_name_and_pages_of_readers_have_no_forms(
    call_at, tmp_path, values
):
    path = tmp_path / "tokens.json"
    made = {role: add_token(path, role.name.lower(), role) for role in Role}
    with call_at("night", tokens=str(path)) as caller:
        admin = {"authorization": f"Bearer {made[Role.ADMIN]}"}
        for role in Role:
            asked = {"authorization": f"Bearer {made[role]}"}
            assert told(caller, values, "/versions", **asked).admin is (role is Role.ADMIN)
        token = told(caller, values, "/versions/2/rollback", **admin).token
        form = {"token": token, "head": "4"}
        # whichever instance showed the page
        vars(caller.service)["secret"] = b"of another process"
        assert sent(caller, "/versions/2/rollback", form, **admin).status == 303
        assert caller.service.view.store.commit.message == "rollback to version 2 by admin"


def test_errors_are_pages_for_browsers(caller, monkeypatch):
    answer = caller("GET", "/topics/9", accept="text/html", x_request_id="mine")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    for part in ("Not found", "mine", "has no topic 9", "404"):
        assert part in answer.text
    caller.service.current.view = replace(caller.service.view, problems={"owner": "of another"})
    refused = caller("PUT", "/v1/documents", accept="text/html")
    assert set(refused.headers["allow"].split(", ")) == {"POST", "DELETE"}
    found = caller("GET", "/v1/topics?words=0", accept="application/json")
    assert found.headers["content-type"] == "application/problem+json"

    def crowded(view):
        raise InvalidInput("so")

    monkeypatch.setattr(parts, "_published", crowded)
    assert caller("GET", "/time", accept="text/html").status == 422


@pytest.mark.parametrize(
    ("accept", "page"),
    [
        (["text/html"], True),
        (["text/html, application/json"], True),
        (["text/html;q=0.5, application/json;q=0.6"], False),
        (["text/html;q=0.6, application/problem+json;q=0.5"], True),
        (["text/html;q=0.5, application/problem+json"], False),
        (["TEXT/HTML; q=1.0"], True),
        (["text/html;q=x"], False),
        (["text/html;q=1.0.0"], False),
        (["text/html;level=1;q=0"], False),
        (["application/json", "text/html"], True),
        (["*/*"], False),
        ([], False),
    ],
)
def test_who_prefers_a_page(accept, page):
    headers = [(b"accept", one.encode()) for one in accept]
    assert prefers_page({"headers": [(b"x", b"text/html"), *headers]}) is page


def test_visible_words_have_no_scripts(call_at):
    with call_at("counts_3") as caller:
        text = caller("GET", "/topics/1").text
        assert "law &amp; &lt;sea&gt;" in text
        assert not re.search(r"<sea>", text)
