"""Measures of drift: each number has its row, and each place that shows them knows it."""

from dataclasses import fields

import pytest

from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES, night_cells
from streaming_moments.pipelines.reports.html_report import content_of
from streaming_moments.pipelines.reports.metrics import RunMetrics, metrics_registry
from streaming_moments.pipelines.reports.page import ReportPage, RunPoint
from streaming_moments.quality.drift import Drift

KEYS = [one.key for one in DRIFT_MEASURES]


def names(kind):
    return [one.name for one in fields(kind)]


def test_each_number_of_drift_has_its_row_and_its_place_in_metrics():
    assert names(Drift) == KEYS
    assert set(KEYS) <= {*names(RunMetrics)}
    drift = dict(zip(KEYS, (0.5, 0.25, 900.0, 0.125), strict=True))
    told = RunMetrics("store", 1, 2, 3, 4, 5, 6.0, 7.0, 0, **drift)
    registry = metrics_registry(told)
    for one in DRIFT_MEASURES:
        name = f"streaming_moments_{one.metric}"
        assert registry.get_sample_value(name, {"store": "store"}) == drift[one.key]


def test_columns_of_nights_show_percent_and_what_is_unknown():
    assert night_cells(Drift(0.714, 0.12345, 900.0, None)) == ["0.71", "12.35", "\N{EN DASH}"]


@pytest.mark.parametrize("drift", [None, Drift(0.5, 0.25, 900.0, 0.125)])
def test_each_number_of_drift_has_its_chart_on_pages_and_its_value_in_runs(drift):
    runs = (RunPoint("2026-05-01", drift=drift, documents=7),)
    content = content_of(ReportPage("page", "store", "2026-05-01", "published", runs=runs))
    charts = [chart["key"] for chart in content["run_charts"]]
    assert charts == [*KEYS, "documents"]
    [run] = content["runs"]
    assert [run[key] for key in charts] == [drift and getattr(drift, key) for key in KEYS] + [7]


@pytest.mark.parametrize(
    ("counted", "title", "note"),
    [
        (("documents", "tokens", "outside"), "Tokens outside the vocabulary", "tokens"),
        (("rows", "numbers", "left out"), "Rows left out", "rows"),
    ],
)
def test_what_lies_outside_is_called_by_what_a_store_counts(counted, title, note):
    page = ReportPage("page", "store", "2026-05-01", "published", counted=counted)
    titles = {one["key"]: (one["title"], one["note"]) for one in content_of(page)["run_charts"]}
    assert titles["outside_share"] == (title, f"share of all {note}")
    assert titles["documents"][0] == f"{counted[0].capitalize()} counted"
