"""Pipelines: Dask jobs over shards and stores, and the command line."""

from typing import TYPE_CHECKING

from streaming_moments.arguments import checked
from streaming_moments.faces import late

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster, connect
    from streaming_moments.pipelines.cluster.run import Run
    from streaming_moments.pipelines.jobs.compact import compact
    from streaming_moments.pipelines.jobs.create import CountingOptions, PilotOptions, create
    from streaming_moments.pipelines.jobs.forget import forget
    from streaming_moments.pipelines.jobs.grow import grow
    from streaming_moments.pipelines.jobs.measure_drift import drift_since
    from streaming_moments.pipelines.jobs.outputs.transform import transform
    from streaming_moments.pipelines.jobs.polish import polish
    from streaming_moments.pipelines.jobs.rebase import pilot_of, rebase
    from streaming_moments.pipelines.jobs.refit import coherence, refit
    from streaming_moments.pipelines.jobs.select import select
    from streaming_moments.pipelines.jobs.update import update
    from streaming_moments.pipelines.reports.html_report import html_report
    from streaming_moments.pipelines.reports.metrics import RunMetrics, write_metrics

__all__ = [
    "Cluster",
    "CountingOptions",
    "PilotOptions",
    "Run",
    "RunMetrics",
    "coherence",
    "compact",
    "connect",
    "create",
    "drift_since",
    "forget",
    "grow",
    "html_report",
    "pilot_of",
    "polish",
    "rebase",
    "refit",
    "select",
    "transform",
    "update",
    "write_metrics",
]

if not TYPE_CHECKING:
    __getattr__ = late(
        __name__,
        {
            "cluster.cluster": ("Cluster", "connect"),
            "cluster.run": ("Run",),
            "jobs.create": ("CountingOptions", "PilotOptions", "create"),
            "jobs.update": ("update",),
            "jobs.refit": ("coherence", "refit"),
            "jobs.select": ("select",),
            "jobs.outputs.transform": ("transform",),
            "jobs.forget": ("forget",),
            "jobs.compact": ("compact",),
            "jobs.grow": ("grow",),
            "jobs.polish": ("polish",),
            "jobs.rebase": ("pilot_of", "rebase"),
            "jobs.measure_drift": ("drift_since",),
            "reports.html_report": ("html_report",),
            "reports.metrics": ("RunMetrics", "write_metrics"),
        },
    )
    __getattr__ = checked(__getattr__)
