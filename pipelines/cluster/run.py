"""Run: where a job runs, and what all of its steps are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.cluster.progress import Silent, StepProgress
from streaming_moments.storage.formats import ReadLimits

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster

_AT_ONCE = 100  # shards that a task looks at
_TURNS = 4
COMMIT_EVERY = 600.0


def _untold(line: str) -> None:
    """Tell nobody."""


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
    commit_every : float
        Seconds that shards are counted between two commits; never less than a minute, nor than
        20 times what a commit takes.
    tell : callable
        Prints a line that users should know before the job ends.
    detail : callable
        Prints a line for users who asked for details.
    """

    cluster: Cluster
    progress: StepProgress = field(default_factory=Silent)
    limits: ReadLimits = LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    commit_every: float = COMMIT_EVERY
    tell: Callable[[str], None] = _untold
    detail: Callable[[str], None] = _untold

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        per_worker: int,
    ) -> list[Any]:
        """Results of `function(*call)`, so many at a time on a worker; errors as `run_bounded`."""
        # Dask is loaded by who has something to compute
        from streaming_moments.pipelines.cluster.tasks import run_bounded

        cluster = self.cluster
        in_flight = cluster.workers * per_worker
        return run_bounded(cluster, function, calls, in_flight, self.progress, step)

    def looked_at(
        self, step: str, function: Callable[..., Any], shards: Sequence[object]
    ) -> list[Any]:
        """Results of `function(shard, storage_options)`, which reads little of each shard.

        A task looks at several, so that a million shards are no million tasks.
        """
        per_worker = 2 * self.cluster.threads
        # a few tasks for each that runs at once, so that none is left with much
        tasks = _TURNS * per_worker * max(1, self.cluster.workers)
        each = max(1, min(_AT_ONCE, len(shards) // tasks))
        starts = range(0, len(shards), each)
        calls = [(function, shards[at : at + each], self.storage_options) for at in starts]
        several = replace(self, progress=_InShards(self.progress, each, len(shards)))
        found = several.calls(step, _look_at, calls, per_worker)
        return [result for results in found for result in results]


@dataclass(frozen=True)
class _InShards:
    """Progress of tasks of several shards, told in shards."""

    progress: StepProgress
    each: int
    shards: int

    def advance(self, step: str, done: int, total: int) -> None:
        self.progress.advance(step, min(done * self.each, self.shards), self.shards)


def _look_at(
    function: Callable[..., Any],
    shards: Sequence[object],
    storage_options: Mapping[str, object] | None,
) -> list[Any]:
    return [function(shard, storage_options) for shard in shards]
