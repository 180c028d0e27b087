"""Measures of drift: each number has its row, and each place that shows them knows it."""

from dataclasses import fields
from pathlib import Path

import streaming_moments.pipelines.reports as reports
from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES
from streaming_moments.pipelines.reports.metrics import RunMetrics, metrics_registry
from streaming_moments.pipelines.reports.page import RunPoint
from streaming_moments.quality.drift import Drift

KEYS = [one.key for one in DRIFT_MEASURES]


def names(kind):
    return [one.name for one in fields(kind)]


def test_each_number_of_drift_has_its_row_and_its_place_in_runs_and_metrics():
    assert names(Drift) == KEYS
    assert set(KEYS) <= {*names(RunPoint)} & {*names(RunMetrics)}
    drift = dict(zip(KEYS, (0.5, 0.25, 900.0, 0.125), strict=True))
    told = RunMetrics("store", 1, 2, 3, 4, 5, 6.0, 7.0, 0, **drift)
    registry = metrics_registry(told)
    for one in DRIFT_MEASURES:
        name = f"streaming_moments_{one.metric}"
        assert registry.get_sample_value(name, {"store": "store"}) == drift[one.key]


def test_each_number_of_drift_has_its_chart_on_pages():
    charts = Path(reports.__file__).parent / "templates" / "charts.js"
    assert [key for key in KEYS if f'["{key}", ' not in charts.read_text()] == []
