"""Errors of a cluster without working workers."""

from __future__ import annotations

from streaming_moments.errors import StreamingMomentsError

WORKER_TIMEOUT = 300.0  # seconds; a cluster that scales from zero may need minutes


class WorkersLost(StreamingMomentsError):
    """The cluster cannot do the work: no worker is ready, or a task kills them."""


def why_nobody_works(paused: int, workers: int, timeout: float) -> str:
    if not paused:
        return (
            f"the cluster has had no workers for {timeout:g} seconds. Start some and run it "
            "again (all commits so far are stored), or wait longer with --worker-timeout"
        )
    return (
        f"Dask has paused {paused} of {workers} workers because their memory is nearly full, "
        f"and no task ran for {timeout:g} seconds. Use a smaller --memory, a higher "
        "--memory-limit of the workers, or one job at a time, and run it again; all commits so "
        "far are stored"
    )
