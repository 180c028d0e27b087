"""Run: where a job runs, and what all of its steps are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streaming_moments.pipelines.cluster.cluster import Cluster
from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.cluster.progress import Silent, StepProgress
from streaming_moments.pipelines.cluster.tasks import run_bounded
from streaming_moments.storage.formats import ReadLimits


@dataclass(frozen=True)
class Run:
    """A cluster, and what every job on it is told.

    Parameters
    ----------
    cluster : Cluster
        Where to run.
    progress : StepProgress
        Told of each shard and row block.
    limits : ReadLimits
        Bounds on documents; how much is read at a time follows from the memory.
    storage_options : mapping, optional
        fsspec options of the shards' file systems, and of a store that is made; never stored.
    """

    cluster: Cluster
    progress: StepProgress = field(default_factory=Silent)
    limits: ReadLimits = LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        per_worker: int,
    ) -> list[Any]:
        """Results of `function(*call)`, so many at a time on a worker; errors as `run_bounded`."""
        cluster = self.cluster
        in_flight = cluster.workers * per_worker
        return run_bounded(cluster, function, calls, in_flight, self.progress, step)

    def looked_at(
        self, step: str, function: Callable[..., Any], shards: Sequence[object]
    ) -> list[Any]:
        """Results of `function(shard, storage_options)`, which reads little of each shard."""
        calls = [(shard, self.storage_options) for shard in shards]
        return self.calls(step, function, calls, 2 * self.cluster.threads)
