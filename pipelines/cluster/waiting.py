"""Waiting: how long a job does without workers."""

from __future__ import annotations

from streaming_moments.errors import StreamingMomentsError

WORKER_TIMEOUT = 300.0  # seconds: a cluster that scales from zero may take minutes


class WorkersLost(StreamingMomentsError):
    """The cluster cannot do the work: no worker is there or at work, or a task kills them."""
