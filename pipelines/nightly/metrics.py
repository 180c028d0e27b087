"""Metrics of a nightly run, from its report and earlier ones."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime

from streaming_moments.pipelines.nightly.history import NightHistory, night_of
from streaming_moments.pipelines.nightly.report import NightReport
from streaming_moments.pipelines.reports.metrics import RunMetrics


def night_metrics(report: NightReport, history: NightHistory, exit_code: int) -> RunMetrics:
    """Return the metrics to monitor after a run.

    A run that ended early has no numbers of the store, and a run without new data has no drift. The
    metrics of such a run repeat the numbers of the run before. `exit_code` is that of the command.

    Examples
    --------
    >>> time = "2026-05-01T03:15:00+00:00"
    >>> metrics = night_metrics(NightReport("store", time, time), NightHistory(), 2)
    >>> metrics.finished, metrics.documents, metrics.last_success
    (1777605300.0, None, None)
    """
    runs = (night_of(report), *reversed(history.nights))
    state = next((run.state for run in runs if run.state is not None), None)
    drift = next((run.drift for run in runs if run.drift is not None), None)
    seconds: dict[str, float] = {}
    for step in report.steps:
        seconds[step.step] = seconds.get(step.step, 0.0) + step.seconds
    return RunMetrics(
        store=report.store,
        version=None if state is None else state.version,
        documents=None if state is None else state.documents,
        tokens=None if state is None else state.tokens,
        shards=None if state is None else state.shards,
        state_bytes=None if state is None else state.state_bytes,
        commit_time=None if state is None or state.time is None else _unix(state.time),
        finished=_unix(report.finished),
        exit_code=exit_code,
        last_success=None if report.last_published is None else _unix(report.last_published),
        step_seconds=seconds,
        left_out=len(report.bad),
        warnings=len(report.warnings),
        **({} if drift is None else asdict(drift)),
    )


def _unix(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()
