"""What is shown of a store and a run: tables, a page, a plot, metrics."""

from typing import TYPE_CHECKING

from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.reports.metrics import RunMetrics, write_metrics
    from streaming_moments.pipelines.reports.page import ReportPage
    from streaming_moments.pipelines.reports.status import Status, status_of

__all__ = ["ReportPage", "RunMetrics", "Status", "status_of", "write_metrics"]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "metrics": ("RunMetrics", "write_metrics"),
            "page": ("ReportPage",),
            "status": ("Status", "status_of"),
        },
    )
