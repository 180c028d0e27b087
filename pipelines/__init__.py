"""Pipelines: Dask jobs over shards and stores, and the command line."""

from typing import TYPE_CHECKING

from streaming_moments.lazy_imports import attach

attach(__name__)

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster as Cluster
    from streaming_moments.pipelines.cluster.cluster import connect as connect
    from streaming_moments.pipelines.cluster.run import Run as Run
    from streaming_moments.pipelines.counting_options import (
        CountingOptions as CountingOptions,
    )
    from streaming_moments.pipelines.counting_options import PilotOptions as PilotOptions
    from streaming_moments.pipelines.jobs.compact import compact as compact
    from streaming_moments.pipelines.jobs.create import create as create
    from streaming_moments.pipelines.jobs.drift.measure_drift import drift_since as drift_since
    from streaming_moments.pipelines.jobs.forget import forget as forget
    from streaming_moments.pipelines.jobs.grow import grow as grow
    from streaming_moments.pipelines.jobs.kinds.options import KindOptions as KindOptions
    from streaming_moments.pipelines.jobs.outputs.transform import transform as transform
    from streaming_moments.pipelines.jobs.polish import polish as polish
    from streaming_moments.pipelines.jobs.rebase import pilot_of as pilot_of
    from streaming_moments.pipelines.jobs.rebase import rebase as rebase
    from streaming_moments.pipelines.jobs.refit import coherence as coherence
    from streaming_moments.pipelines.jobs.refit import refit as refit
    from streaming_moments.pipelines.jobs.rename import rename as rename
    from streaming_moments.pipelines.jobs.select import select as select
    from streaming_moments.pipelines.jobs.sites.merge import merge as merge
    from streaming_moments.pipelines.jobs.update import update as update
    from streaming_moments.pipelines.reports.html_report import html_report as html_report
    from streaming_moments.pipelines.reports.metrics import RunMetrics as RunMetrics
    from streaming_moments.pipelines.reports.metrics import write_metrics as write_metrics
