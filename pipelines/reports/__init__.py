"""Reports on a store and a run: tables, a page, a plot, metrics."""

from streaming_moments.storage.old_exports import old_exports

old_exports(
    __name__,
    metrics="RunMetrics write_metrics",
    page="ReportPage",
    status="Status status_of",
)
