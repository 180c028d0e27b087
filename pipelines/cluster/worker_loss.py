"""Errors of a cluster without working workers."""

from __future__ import annotations

from streaming_moments.errors import StreamingMomentsError
from streaming_moments.printing.remedies import remedy

# seconds to wait for a worker; a cluster that scales from zero may need minutes
WORKER_TIMEOUT = 300.0


class WorkersLost(StreamingMomentsError):
    """The cluster cannot do the work: no worker is ready, or a task kills every worker."""


MORE_MEMORY = remedy(
    "Give them more memory, or a smaller {option.memory} budget, and run the job again"
)


def why_nobody_works(paused: int, workers: int, timeout: float) -> WorkersLost:
    if not paused:
        return WorkersLost(
            f"the cluster has had no workers for {timeout:g} seconds.",
            "Start some and run the job again (all commits so far are stored), or wait longer with "
            "{option.worker_timeout}",
        )
    return WorkersLost(
        f"Dask has paused {paused} of {workers} workers because their memory is nearly full, "
        f"and no task ran for {timeout:g} seconds.",
        "Use a smaller {option.memory}, a higher --memory-limit of the workers, or one "
        "job at a time, and run it again; all commits so far are stored",
    )
