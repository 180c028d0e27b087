"""Reports on a store and a run: tables, a page, a plot, metrics."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.reports.metrics import RunMetrics as RunMetrics
    from streaming_moments.pipelines.reports.metrics import write_metrics as write_metrics
    from streaming_moments.pipelines.reports.page import ReportPage as ReportPage
    from streaming_moments.pipelines.reports.status import Status as Status
    from streaming_moments.pipelines.reports.status import status_of as status_of
