"""Files of a nightly run: its report, its page and its metrics."""

from __future__ import annotations

from streaming_moments.pipelines.exit_codes import ExitCode
from streaming_moments.pipelines.nightly.config import NightlyConfig
from streaming_moments.pipelines.nightly.history import NightHistory
from streaming_moments.pipelines.nightly.index import nights_index
from streaming_moments.pipelines.nightly.metrics import night_metrics
from streaming_moments.pipelines.nightly.page import night_page
from streaming_moments.pipelines.nightly.report import (
    INDEX,
    NightReport,
    write_beside,
    write_report,
)
from streaming_moments.pipelines.reports.html_report import html_report
from streaming_moments.pipelines.reports.metrics import write_metrics
from streaming_moments.storage.files.folders import Folder
from streaming_moments.storage.store.store import MomentStore


def write_night(
    report: NightReport, config: NightlyConfig, history: NightHistory, latest: bool = True
) -> str:
    """Write all files of a run, and return the URL of its report.

    If the report or the page cannot be written, the metrics are still written, with the exit code
    of this failure.
    If `latest`, `report` also becomes the latest report, and its page the latest page.
    """
    code: int = ExitCode.INPUT
    try:
        output = Folder.at(config.output, config.storage_options)
        url = write_report(output, report, latest)
        store = None
        if report.version is not None:
            store = MomentStore.open(config.store, report.version, config.storage_options)
        page = html_report(night_page(report, store, history))
        write_beside(output, report, ".html", page.encode(), latest)
        output.write(INDEX, nights_index(report, history))
        code = report.exit_code
    finally:
        if config.metrics is not None:
            write_metrics(config.metrics.textfile, night_metrics(report, history, code))
    return url
