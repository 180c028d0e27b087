"""What nights leave beside their report: the page, and the metrics."""

import json
import re
import shlex
import shutil
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from streaming_moments.errors import StoreError
from streaming_moments.pipelines.jobs.drift.measures import sentence_case
from streaming_moments.pipelines.nightly.config import config_of
from streaming_moments.pipelines.nightly.history import Night, NightHistory, read_history
from streaming_moments.pipelines.nightly.index import nights_index
from streaming_moments.pipelines.nightly.night import nightly
from streaming_moments.pipelines.nightly.page import night_page
from streaming_moments.pipelines.nightly.plain_words import in_words
from streaming_moments.pipelines.nightly.report import NightReport, report_as_json
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.quality.matching import KeptTopic, TopicMatching
from streaming_moments.storage.counting.reading import count_texts
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.operations.shares_over_time import shares_over_time
from streaming_moments.storage.store.store import MomentStore

pytestmark = pytest.mark.usefixtures("few_blocks")


def configured(place, **more):
    content = {
        "store": f"{place}/store",
        "shards": f"{place}/2026*.txt",
        "output": f"{place}/reports",
        "create": {"min_documents": 2, "vocabulary_size": 120, "max_topics": 4},
        "refit": {"topics": [2, 3], "alpha0": 1},
        "gates": {"max_pair_distance": 0.9, "min_documents": 100},
        "metrics": {"textfile": f"{place}/moments.prom"},
    }
    return config_of({**content, **more}, "night.toml")


def content_of(html):
    [content] = re.findall(r'id="content">(.*?)</script>', html)
    return json.loads(content)


def metrics_of(place):
    """Value by name and step."""
    text = (place / "moments.prom").read_text()
    return {
        (sample.name.removeprefix("streaming_moments_"), sample.labels.get("step")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def unix(time):
    return datetime.fromisoformat(time).timestamp()


@dataclass
class Seen:
    """A night, and what it left."""

    report: object
    html: str
    page: dict
    metrics: dict


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("nights")


@pytest.fixture(scope="module")
def nights(place, planted, embedded):
    """Two nights with a shard each, and one without any."""
    seen = []
    for number in range(3):
        if number < 2:
            texts = planted[200 * number : 200 * number + 200]
            (place / f"2026-11-2{number}.txt").write_text("\n".join(texts))
        report = nightly(configured(place), embedded, lambda step: None)
        html = (place / "reports" / "latest.html").read_text()
        seen.append(Seen(report, html, content_of(html), metrics_of(place)))
    return seen


def test_the_page_holds_the_night_and_the_one_before(nights, place):
    first, second, _ = nights
    report, page = second.report, second.page
    assert (report.outcome, page["outcome"]) == ("published", "published")
    assert [topic["words"] for topic in page["topics"]] == [
        [list(word) for word in topic.words] for topic in report.topics
    ]
    assert [(gate["name"], gate["value"]) for gate in page["gates"]] == [
        ("distance of pair distributions", report.drift.pair_distance),
        ("documents", 400),
    ]
    assert [run["date"] for run in page["runs"]] == [first.report.started, report.started]
    assert [run["documents"] for run in page["runs"]] == [200, 400]
    assert [run["captured"] for run in page["runs"]] == [
        first.report.drift.captured,
        report.drift.captured,
    ]
    [tried] = [one for one in page["tried"] if [one["n_topics"], one["alpha0"]] == page["chosen"]]
    assert (len(page["tried"]), tried["n_topics"]) == (2, len(report.topics))
    assert [row[topic] for topic, row in enumerate(page["correlations"])] == pytest.approx(
        [1.0] * len(report.topics)
    )
    assert page["facts"]["alpha0 that pairs imply"] >= 0
    assert [row["shard"][-14:] for row in page["ledger"]] == ["2026-11-20.txt", "2026-11-21.txt"]
    assert page["spectrum"] == list(report.spectrum)
    assert [step["step"] for step in page["steps"]] == [
        in_words(step.step) for step in report.steps
    ]


def test_shares_of_each_day_are_of_its_documents(nights, place):
    first, second, _ = nights
    periods = second.page["periods"]
    assert first.page["periods"]["dates"] == ["2026-11-20"]
    assert periods["dates"] == ["2026-11-20", "2026-11-21"]
    store = MomentStore.open(str(place / "store"), second.report.version)
    model = store.load_model(second.report.model)
    found = shares_over_time(store, model, "day")
    assert periods["shares"] == [list(one.shares) for one in found]
    assert periods["bars"] == [list(one.bars) for one in found]


def test_shares_are_those_of_the_nights_before(nights):
    first, second, _ = nights
    shares = second.page["shares"]
    assert shares["dates"] == ["2026-11-20", "2026-11-21"], "days of the documents, not of the runs"
    assert [run["until"] for run in second.page["runs"]] == shares["dates"]
    assert shares["shares"][1] == [topic.weight for topic in second.report.topics]
    before = {topic.topic: topic.weight for topic in first.report.topics}
    kept = {pair.after: before[pair.before] for pair in second.report.matching.kept}
    assert kept
    topics = range(len(second.report.topics))
    assert shares["shares"][0] == [kept.get(topic, 0.0) for topic in topics]


def test_a_topic_that_was_kept_has_moved_or_is_within_noise(nights):
    _, second, _ = nights
    assert second.report.matching.kept
    for pair in second.report.matching.kept:
        bar = max(
            night.report.topics[topic].bar
            for night, topic in ((nights[0], pair.before), (second, pair.after))
        )
        assert pair.moved == (2 * pair.distance > bar)
        if pair.after not in {mix.whole for mix in second.report.matching.merged}:
            said = second.page["notes"][str(pair.after)]
            assert said == ("moved" if pair.moved else "within noise")


def test_a_topic_is_followed_where_its_number_was_anothers(nights, place):
    weights = {0: 0.5, 1: 0.125, 2: 0.375}
    report = nights[1].report
    topics = len(report.topics)
    kept = (KeptTopic(2, 0, 0.1), KeptTopic(0, 1, 0.1))
    matching = TopicMatching(kept, (), (), (), ())
    report = replace(report, published_before="m2", matching=matching)
    nothing = Night("s", "2026-11-01T", "", None, None, None, None, {}, {}, None, None)
    older = replace(nothing, model="m1", weights=weights)
    # the topic that is 2 there was 1 before
    newer = replace(
        nothing,
        started="2026-11-02T",
        model="m2",
        published_before="m1",
        weights=weights,
        origins={2: 1},
    )
    store = MomentStore.open(f"{place}/store", report.version)
    found = night_page(report, store, NightHistory((older, newer))).shares
    nobody = (0.0,) * (topics - 2)
    assert found.dates[:2] == ("2026-11-01", "2026-11-02")
    assert found.shares[:2] == ((0.125, 0.0, *nobody), (0.375, 0.5, *nobody))


def test_a_night_without_news_shows_what_is_published(nights):
    _, second, third = nights
    assert third.page["outcome"] == "nothing new"
    assert third.page["topics"] == second.page["topics"]
    assert third.page["shares"] == second.page["shares"]
    assert third.page["distances"] == second.page["distances"]
    assert [run["outcome"] for run in third.page["runs"]] == ["published"] * 2 + ["nothing new"]
    assert third.page["runs"][-1]["captured"] is None


def test_the_table_of_gates_shows_which_side_of_a_bound_is_allowed(nights):
    cells = re.sub(r"<[^>]*>", " ", nights[1].html)
    assert re.search(r"documents\s+✓ holds\s+400\s+at least 100\s", cells)
    assert re.search(r"distance of pair distributions\s+✓ holds\s+[\d.]+\s+at most 0.9\s", cells)


def test_the_list_of_nights_says_what_a_night_without_details_is(nights):
    report, other = (
        nights[1].report,
        Night("other", "2026-11-01T03:15", "published", *[None] * 4, {}, {}, None, None),
    )
    names = [f"night-202611{day:02d}T031500000000Z" for day in range(1, 32)]
    pages = tuple(f"{name}.html" for name in names)
    others = (replace(other, page=pages[-1], words_added=1),)
    read = tuple(f"{name}.json" for name in names[1:-1])
    cells = nights_index(report, NightHistory((), others, read[1:], pages)).decode()
    rows = dict(re.findall(r'<a href="(night-[^"]*)">(.*?)</td>', cells, re.DOTALL))
    assert "2026-11-01 03:15" in rows[pages[-1]], "the run of the other store"
    assert "of the store other" in rows[pages[-1]]
    assert "1 word added" in rows[pages[-1]]
    assert "its report is missing or cannot be read" in rows[pages[1]]
    assert "2026-11-02 03:15" in rows[pages[1]]
    assert "of the store" not in rows[report.file_name(".html")]
    cells = nights_index(report, NightHistory((), others, read, pages)).decode()
    rows = dict(re.findall(r'<a href="(night-[^"]*)">(.*?)</td>', cells, re.DOTALL))
    assert "older than the last 30 reports" in rows[pages[0]]


def test_the_list_of_nights_gives_unknown_values_and_reasons_in_words(nights):
    first, *_ = nights
    shown = nights_index(first.report, NightHistory()).decode()
    assert (
        "distance of pair distributions (no earlier model to compare with), documents 200" in shown
    )
    assert "<td" in shown
    cells = re.sub(r"<[^>]*>", " ", first.html)
    assert re.search(r"holds\s+no earlier model to compare with\s+at most 0.9\s", cells)
    # only the first line, and as it was written
    failed = NightReport("s", "2026-05-01T03:15", error="s3://Bucket is missing\nsecond line")
    shown = nights_index(failed, NightHistory()).decode()
    assert "✗ s3://Bucket is missing</div>" in shown
    assert "second line" not in shown
    # a report of an earlier release has no reason
    [gate] = _old_gates({"name": "drop", "value": None, "bound": 1, "holds": True})
    assert (gate.measured, gate.allowed) == ("not known", "1")


def _old_gates(*gates):
    report = NightReport("s", "2026-05-01T03:15")
    content = {**report_as_json(report), "gates": gates}
    folder = Folder.at("memory://old-gates")
    folder.write("night-1.json", json.dumps(content).encode())
    [night] = read_history(folder, "s").nights
    return night.gates


def test_a_report_of_an_earlier_release_has_a_rejected_model_that_waits(nights):
    folder = Folder.at("memory://old-words")
    content = {**report_as_json(nights[1].report), "outcome": "refused", "reasons": ["few"]}
    del content["undecided"], content["warnings"]
    folder.write("night-1.json", json.dumps(content).encode())
    [night] = read_history(folder, content["store"]).nights
    assert (night.outcome, night.undecided.reasons) == ("rejected", ("few",))
    assert night.undecided.command.endswith(f" published {content['model']}")


def test_the_page_of_a_failed_night_keeps_what_the_user_wrote():
    error = "s3://Nobucket/a: no such bucket; run `aws s3 mb s3://Nobucket`"
    html = html_report(
        night_page(NightReport("s", "2026-05-01", error=error), None, NightHistory())
    )
    shown = html[: html.index('id="content"')]
    assert (
        "<li>s3://Nobucket/a: no such bucket; run <code>aws s3 mb s3://Nobucket</code></li>"
        in shown
    )
    assert "S3://" not in shown
    assert "<section" not in shown, "nothing was measured, so no chart has a heading"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one shard is left", "One shard is left"),
        ("night-20261101T.json is no report", "night-20261101T.json is no report"),
        ("held-out values are missing", "Held-out values are missing"),
        ("a: b", "A: b"),
        ("s3://b", "s3://b"),
        ("data/a.txt is empty", "data/a.txt is empty"),
        ("max_topics is 3", "max_topics is 3"),
        ("`[create] language`", "`[create] language`"),
        ("", ""),
    ],
)
def test_a_sentence_begins_with_a_capital_but_for_names(text, shown):
    assert sentence_case(text) == shown


def test_every_page_lies_beside_its_report(nights, place):
    names = {path.name for path in (place / "reports").iterdir()} - {"index.html"}
    assert {name for name in names if name.endswith(".json")} == {
        name.replace(".html", ".json") for name in names if name.endswith(".html")
    }
    assert {"latest.html", "latest.json"} < names
    started = datetime.fromisoformat(nights[1].report.started)
    own = place / "reports" / f"night-{started:%Y%m%dT%H%M%S%f}Z.html"
    assert own.read_text() == nights[1].html


def test_a_page_leads_to_the_night_before_to_all_and_to_its_data(nights, place, visiting, examined):
    own = [f"night-{datetime.fromisoformat(one.report.started):%Y%m%dT%H%M%S%f}Z" for one in nights]
    page = visiting(place / "reports" / "latest.html")
    links = page.locator(".elsewhere a")
    assert [link.get_attribute("href") for link in links.all()] == [
        f"{own[1]}.html",
        f"{own[2]}.html",
        "index.html",
        f"{own[2]}.json",
    ]
    assert page.locator('.elsewhere a[aria-current="page"]').text_content() == "This night"
    links.nth(0).click()
    page.wait_for_selector(".card")
    assert page.locator("#changes tbody tr").count() == len(nights[1].report.topics)
    page.locator(".elsewhere a:text('All nights')").click()
    page.wait_for_selector("h1:text('All nights')")
    examined(page, "nights")
    assert page.locator('.elsewhere a[aria-current="page"]').text_content() == "All nights"
    assert page.locator("svg .bar").count() == len(nights)
    pages = [link.get_attribute("href") for link in page.locator("tbody a").all()]
    assert pages == [f"{name}{kind}" for name in own[::-1] for kind in (".html", ".json")]
    assert page.locator("tbody tr").nth(0).text_content().count("nothing new") == 1
    page.locator("tbody a").nth(4).click()
    page.wait_for_selector(".card")
    assert page.locator(".elsewhere a").count() == 3, "there was no night before the first"


def test_the_changes_are_from_the_model_that_was_published_before(nights, run):
    first, second, _ = nights
    command, *told = shlex.split(second.page["diff"])
    assert f"<code>{second.page['diff']}</code>" in second.html
    assert command == "streaming-moments"
    code, printed, _ = run(*told, "--json")
    gained = json.loads(printed)
    assert code == 0
    assert (gained["before"], gained["after"]) == (first.report.version, second.report.version)
    before = {topic.topic: topic.weight for topic in first.report.topics}
    kept = {pair.after: pair for pair in second.report.matching.kept}
    changes = {one["topic"]: one for one in second.page["changes"] if one["topic"] is not None}
    assert set(changes) == set(range(len(second.report.topics)))
    for topic, pair in kept.items():
        assert changes[topic]["before"] == before[pair.before]
        assert changes[topic]["now"] == second.report.topics[topic].weight
        assert changes[topic]["distance"] == pair.distance
    assert second.page["since"] == "2026-11-20"
    assert first.page["changes"] == []
    assert "documents, no new topics; " in second.html
    assert "the largest: " in first.html


def test_a_topic_shows_a_document_that_is_mostly_of_it(nights, place):
    _, second, third = nights
    store = MomentStore.open(str(place / "store"), second.report.version)
    model = store.load_model(second.report.model)
    for topic in second.report.topics:
        sample = topic.sample
        texts = Path(sample.shard).read_text().splitlines()
        assert sample.text.removesuffix(" \N{HORIZONTAL ELLIPSIS}") in texts[sample.number - 1]
        counted = count_texts([texts[sample.number - 1]], store.vocabulary, store.policy).batch
        [proportions] = model.transform(counted)
        assert proportions.argmax() == topic.topic
        assert sample.share == pytest.approx(proportions.max())
    # a night without news has read none, and shows those that were found before
    assert third.report.topics == ()
    assert [one["sample"]["text"] for one in third.page["topics"]] == [
        topic.sample.text for topic in second.report.topics
    ]


def test_the_metrics_are_those_of_the_night(nights, place):
    _, second, third = nights
    report, store = second.report, MomentStore.open(f"{place}/store")
    found = second.metrics
    assert {step for name, step in found if name == "step_seconds"} == {
        step.step for step in report.steps
    }
    assert found["step_seconds", "refit"] > 0
    values = {name: value for (name, step), value in found.items() if step is None}
    assert values == {
        "version": report.version,
        "documents": 400,
        "tokens": sum(record.tokens for record in store.ledger()),
        "shards": 2,
        "shards_left_out": 0,
        "run_warnings": 0,
        "state_bytes": report.status.state_bytes,
        "commit_timestamp_seconds": unix(store.at(report.version).commit.time),
        "run_timestamp_seconds": unix(report.finished),
        "run_exit_code": 0,
        "last_success_timestamp_seconds": unix(report.finished),
        "captured_spectrum": report.drift.captured,
        "outside_share": report.drift.outside_share,
        "effective_documents": report.drift.effective_documents,
        "pair_distance": report.drift.pair_distance,
    }
    # without news there is no drift to measure: it is as it was
    assert third.metrics["run_exit_code", None] == 10
    assert third.metrics["run_timestamp_seconds", None] == unix(third.report.finished)
    same = ("last_success_timestamp_seconds", "pair_distance", "documents")
    assert all(third.metrics[name, None] == values[name] for name in same)


@pytest.fixture
def as_it_was(nights, place, tmp_path):
    """The folder of the nights, which is put back after a test that adds to it."""
    kept = shutil.copytree(place, tmp_path / "kept")
    yield place
    shutil.rmtree(place)
    shutil.copytree(kept, place)


def test_a_run_that_breaks_off_is_told_of_and_leaves_no_lock(nights, as_it_was, embedded):
    place = as_it_was

    def broken(step):
        raise BrokenPipeError("nobody reads")

    with pytest.raises(BrokenPipeError):
        nightly(configured(place), embedded, broken)
    report = json.loads((place / "reports" / "latest.json").read_text())
    assert (report["outcome"], report["exit_code"]) == ("failed", 1)
    assert "nobody reads" in report["error"]
    html = (place / "reports" / "latest.html").read_text()
    assert "BrokenPipeError: nobody reads" in html
    assert content_of(html)["runs"][-1]["outcome"] == "failed"
    found = metrics_of(place)
    assert found["run_exit_code", None] == 1
    assert found["documents", None] == 400
    assert found["last_success_timestamp_seconds", None] == unix(nights[1].report.finished)
    # what is not a report is said, and the rest is shown
    (place / "reports" / "night-20261101T.json").write_text('{"store": ')
    assert nightly(configured(place), embedded, lambda step: None).outcome == "nothing new"
    html = (place / "reports" / "latest.html").read_text()
    assert "night-20261101T.json is not a report" in html
    assert [run["outcome"] for run in content_of(html)["runs"]][-2:] == ["failed", "nothing new"]


@pytest.mark.parametrize("taken", ["", "/latest.json", "/latest.html"])
def test_reports_that_cannot_be_written_fail_the_run_in_the_metrics(tmp_path, embedded, taken):
    # the folder is a file, or a file in it is a folder
    if taken:
        (tmp_path / f"reports{taken}").mkdir(parents=True)
    else:
        (tmp_path / "reports").write_text("no folder")
    with pytest.raises(StoreError, match=f"reports{taken}"):
        nightly(configured(tmp_path), embedded, lambda step: None)
    found = metrics_of(tmp_path)
    assert found["run_exit_code", None] == 2
    assert ("documents", None) not in found


def test_a_folder_for_metrics_that_is_not_there_stops_the_run_before_it_begins(tmp_path, embedded):
    absent = {"textfile": f"{tmp_path}/absent/moments.prom"}
    with pytest.raises(StoreError, match="create it"):
        nightly(configured(tmp_path, metrics=absent), embedded, lambda step: None)
    assert list(tmp_path.iterdir()) == []


def test_a_browser_draws_the_page_of_a_night(nights, place, visiting, examined):
    started = datetime.fromisoformat(nights[1].report.started)
    page = visiting(place / "reports" / f"night-{started:%Y%m%dT%H%M%S%f}Z.html")
    examined(page, "night")
    topics = len(nights[1].report.topics)
    assert page.locator(".card").count() == topics
    assert page.locator("#map .mark").count() == topics
    assert page.locator("#shares circle.mark").count() == topics * 2
    names = ("captured", "outside_share", "effective_documents", "pair_distance", "documents")
    runs = [[run[name] for run in nights[1].page["runs"]] for name in names]
    # the first night has no night before to differ from
    assert [values.count(None) for values in runs] == [0, 0, 0, 1, 0]
    known = [[value for value in values if value is not None] for values in runs]
    drawn = [values for values in known if len({f"{value:.1e}" for value in values}) > 1]
    alike = [values for values in known if values not in drawn and len({*values}) == 2]
    lines = page.locator("#drift .line").all_text_contents()
    assert sum(bool(re.match(r"[\d.,]+ to [\d.,]+ in all 2 runs", line)) for line in lines) == len(
        alike
    )
    assert len(drawn) > 1
    assert page.locator("#drift circle.mark").count() == sum(map(len, drawn))
    assert page.locator("#drift .line").count() == 5 - len(drawn)
    ticks = "all => all.map(svg => [...svg.querySelectorAll('.tick')].map(one => one.textContent))"
    told = page.eval_on_selector_all("svg", ticks)
    assert all(len(set(labels)) == len(labels) for labels in told)
    assert page.locator("#gates tbody tr").count() == 2
    assert page.locator("#ledger tbody tr").count() == 2
    best = nights[1].report.topics[0].relevant[0]
    assert best in page.locator("#topic-0 .word").all_text_contents()
