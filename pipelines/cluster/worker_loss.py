"""Worker loss: how long a job does without workers, and what it says then."""

from __future__ import annotations

from streaming_moments.errors import StreamingMomentsError

WORKER_TIMEOUT = 300.0  # seconds: a cluster that scales from zero may take minutes


class WorkersLost(StreamingMomentsError):
    """The cluster cannot do the work: no worker is there or at work, or a task kills them."""


def why_nobody_works(paused: int, workers: int, timeout: float) -> str:
    if not paused:
        return (
            f"the cluster has had no workers for {timeout:g} seconds; start some and "
            "run it again, every commit so far is kept (--worker-timeout waits longer)"
        )
    return (
        f"Dask has paused {paused} of {workers} workers, whose memory is nearly full, and nothing "
        f"was done for {timeout:g} seconds: give less --memory, or workers a higher "
        "--memory-limit, let one job at a time run on a cluster, and run it again; every commit "
        "so far is kept"
    )
