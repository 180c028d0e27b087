"""Metrics of a store and its last run, as a text file for the node exporter of Prometheus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile

from streaming_moments.errors import InvalidInput, StoreError
from streaming_moments.pipelines.jobs.drift.measures import DRIFT_MEASURES
from streaming_moments.printing.short_repr import short_repr

_SUFFIX = ".prom"
_DriftNumbers: Any = make_dataclass(
    "_DriftNumbers",
    [(one.key, float | None, None) for one in DRIFT_MEASURES],
    frozen=True,
    kw_only=True,
)


@dataclass(frozen=True)
# the base class has a field for each measure of drift
class RunMetrics(_DriftNumbers):  # type: ignore[misc]
    """Numbers to monitor; a number with the value None is left out.

    Each number of `quality.Drift` is also a parameter, by its name and as a keyword.

    Parameters
    ----------
    store : str
        URL of the store, which labels every metric.
    version : int or None
        Version of the store.
    documents, tokens, shards : int or None
        Numbers in the store.
    state_bytes : int or None
        Bytes of the statistics of the store.
    commit_time : float or None
        Time of the latest commit in Unix seconds; its age is `time()` minus it.
    finished : float
        When the run ended, in Unix seconds.
    exit_code : int
        Exit code of the run.
    last_success : float, optional
        When a run last published a model, in Unix seconds.
    step_seconds : mapping
        Seconds by step.
    left_out : int
        Shards that could not be read.
    warnings : int
        Warnings of the run, such as patterns that match nothing.
    """

    __repr__ = short_repr

    store: str
    version: int | None
    documents: int | None
    tokens: int | None
    shards: int | None
    state_bytes: int | None
    commit_time: float | None
    finished: float
    exit_code: int
    last_success: float | None = None
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    left_out: int = field(default=0, kw_only=True)
    warnings: int = field(default=0, kw_only=True)


def metrics_registry(metrics: RunMetrics) -> CollectorRegistry:
    """Return the metrics as a registry of the Prometheus client.

    Examples
    --------
    >>> metrics = RunMetrics("store", 3, 1200, 90_000, 4, 1 << 20, 1e9, 1e9, 0)
    >>> registry = metrics_registry(metrics)
    >>> registry.get_sample_value("streaming_moments_documents", {"store": "store"})
    1200.0
    """
    registry = CollectorRegistry()
    values = (
        ("version", "Version of the store.", metrics.version),
        ("documents", "Documents in the store.", metrics.documents),
        ("tokens", "Vocabulary tokens in the store.", metrics.tokens),
        ("shards", "Shards in the ledger of the store.", metrics.shards),
        ("shards_left_out", "Shards that the last run could not read.", metrics.left_out),
        ("run_warnings", "Warnings of the last run, such as unmatched patterns.", metrics.warnings),
        ("state_bytes", "Bytes of the statistics of the store.", metrics.state_bytes),
        ("commit_timestamp_seconds", "Time of the latest commit.", metrics.commit_time),
        ("run_timestamp_seconds", "Time at which the last run ended.", metrics.finished),
        ("run_exit_code", "Exit code of the last run.", metrics.exit_code),
        (
            "last_success_timestamp_seconds",
            "Time at which a run last published a model.",
            metrics.last_success,
        ),
        *((one.metric, one.help, getattr(metrics, one.key)) for one in DRIFT_MEASURES),
    )
    for name, text, value in values:
        if value is not None:
            gauge = Gauge(f"streaming_moments_{name}", text, ["store"], registry=registry)
            gauge.labels(store=metrics.store).set(value)
    steps = Gauge(
        "streaming_moments_step_seconds",
        "Seconds of each step of the last run.",
        ["store", "step"],
        registry=registry,
    )
    for step, seconds in metrics.step_seconds.items():
        steps.labels(store=metrics.store, step=step).set(seconds)
    return registry


def require_collected(path: str | Path) -> None:
    """Raise InvalidInput if the node exporter ignores files of this name.

    Raises StoreError if the folder does not exist.
    """
    place = Path(path)
    if place.suffix != _SUFFIX:
        raise InvalidInput(
            f"{place} does not end in {_SUFFIX}, and the node exporter reads only "
            "files that do; rename it"
        )
    if not place.parent.is_dir():
        raise StoreError(f"{place.parent} is not a folder; create it, or name another one")


def write_metrics(path: str | Path, metrics: RunMetrics) -> None:
    """Write the metrics to a local file; readers see the complete old or the complete new file.

    Parameters
    ----------
    path : str or Path
        File in the folder that the node exporter reads (--collector.textfile.directory); its name
        ends in .prom.
    metrics : RunMetrics
        Metrics to write.

    Raises
    ------
    InvalidInput
        The node exporter would not read a file of that name.
    StoreError
        The folder is missing or cannot be written.
    """
    require_collected(path)
    try:
        write_to_textfile(str(path), metrics_registry(metrics))
        # let everyone read the file, because the node exporter runs as another user
        os.chmod(path, 0o644)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written ({error.strerror}); free space, or name another file"
        ) from error
