"""Waiting: how long a job does without workers."""

from __future__ import annotations

WORKER_TIMEOUT = 300.0  # seconds: a cluster that scales from zero may take minutes
