"""The report of a night, as it was written once, is read by every later version."""

import hashlib
import json
import math
from pathlib import Path

import pytest

from streaming_moments.pipelines.nightly.history import Night, StoreState, read_history
from streaming_moments.pipelines.nightly.index import nights_index
from streaming_moments.pipelines.nightly.metrics import night_metrics
from streaming_moments.pipelines.nightly.page import night_page
from streaming_moments.pipelines.nightly.report import NightReport
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.page import Gate
from streaming_moments.quality.drift import Drift
from streaming_moments.storage.files.folders import Folder

REPORTS = Path(__file__).parent / "reports"
NAME = "night-20261122T145213413744Z.json"
NIGHT = Night(
    store="/nights/store",
    started="2026-11-22T14:52:13.413744+00:00",
    outcome="published",
    last_published="2026-11-22T14:52:15.883512+00:00",
    model="night-v3",
    published="night-v3",
    published_before="night-v1",
    weights={0: 0.4000498410944762, 1: 0.29993306583973495, 2: 0.3000170930657889},
    origins={0: 0, 1: 1, 2: 2},
    drift=Drift(0.9970567062508012, 0.0, 160.0, 0.05785984848484848),
    state=StoreState(4, "2026-11-22T14:52:15.828+00:00", 160, 1920, 2, 6336),
    until="2026-11-21",
    names={0: "wind sea", 1: "tax duty", 2: "law trial"},
    seconds=2.469768,
    gates=(
        Gate("distance of pair distributions", 0.05785984848484848, 0.9, True),
        Gate("captured spectrum", 0.9970567062508012, 0.1, True),
        Gate("documents", 160, 50, True),
        Gate("weight of the smallest topic", 0.29993306583973495, 0.0, True),
    ),
)
TONIGHT = NightReport(NIGHT.store, "2026-11-23T03:15:00+00:00", "2026-11-23T03:16:00+00:00")


def read(content, folder):
    (folder / NAME).write_text(json.dumps(content))
    return read_history(Folder.at(str(folder)), NIGHT.store)


def mappings(content):
    """All objects in a report, the report itself first."""
    if isinstance(content, dict):
        yield content
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from mappings(part)


def written():
    return json.loads((REPORTS / NAME).read_text())


def test_the_report_is_that_which_was_written():
    assert [path.name for path in REPORTS.iterdir()] == [NAME]
    assert (
        hashlib.sha256((REPORTS / NAME).read_bytes()).hexdigest()
        == "419ba124380df1fbfcb4ec65f71b02377903dfde68cfcd1f8ae3ae772503f694"
    )


def test_the_report_is_read_as_it_was_written():
    history = read_history(Folder.at(str(REPORTS)), NIGHT.store)
    assert (history.nights, history.unread) == ((NIGHT,), ())
    assert history.last_published == NIGHT.last_published
    metrics = night_metrics(TONIGHT, history, 2)
    assert (metrics.documents, metrics.captured) == (160, 0.9970567062508012)
    page = night_page(TONIGHT, None, history)
    assert [run.drift and run.drift.pair_distance for run in page.runs] == [
        0.05785984848484848,
        None,
    ]


def test_keys_of_later_versions_are_no_matter(tmp_path):
    content = written()
    for part in list(mappings(content)):
        part["of a later version"] = {"x": [1, None]}
    history = read(content, tmp_path)
    assert (history.nights, history.unread) == ((NIGHT,), ())


def test_keys_that_are_missing_are_taken_for_unknown(tmp_path):
    places = [(number, key) for number, part in enumerate(mappings(written())) for key in part]
    needed = {(0, "store"), (0, "started")}
    for number, key in places:
        content = written()
        part = list(mappings(content))[number]
        names_a_topic = key in ("topic", "before", "after") and "step" not in part
        del part[key]
        history = read(content, tmp_path)
        if (number, key) in needed or names_a_topic:
            assert history.unread == (NAME,), key
            continue
        assert history.unread == (), key
        night_metrics(TONIGHT, history, 2)
        html_report(night_page(TONIGHT, None, history))
        nights_index(TONIGHT, history)


def test_a_drift_without_a_number_is_shown_as_unknown(tmp_path):
    content = written()
    del content["drift"]["effective_documents"]
    [night] = read(content, tmp_path).nights
    assert math.isnan(night.drift.effective_documents)
    assert night.drift.captured == NIGHT.drift.captured


@pytest.mark.parametrize("content", [None, [], 3, {"drift": 3}, {"topics": {"a": 1}}])
def test_what_is_no_report_is_named(tmp_path, content):
    said = {**written(), **content} if isinstance(content, dict) else content
    assert read(said, tmp_path).unread == (NAME,)
