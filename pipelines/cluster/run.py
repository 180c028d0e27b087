"""Run: where a job runs, and the options that all of its steps share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from streaming_moments.pipelines.cluster.memory import LIMITS
from streaming_moments.pipelines.cluster.progress import Silent, StepProgress
from streaming_moments.printing.remedies import Remedy
from streaming_moments.printing.short_repr import short_repr
from streaming_moments.storage.formats import ReadLimits

if TYPE_CHECKING:
    from streaming_moments.pipelines.cluster.cluster import Cluster

_AT_ONCE = 100  # most shards that one task examines
_TURNS = 4
COMMIT_EVERY = 600.0


def _untold(line: object) -> None:
    """Print nothing."""


@dataclass(frozen=True)
class Run:
    """A cluster, and the options that every job on it shares.

    Parameters
    ----------
    cluster : Cluster
        Where to run.
    progress : StepProgress
        Receives each finished shard and row block.
    limits : ReadLimits
        Limits on the size of documents. The memory limits how much is read at a time.
    storage_options : mapping, optional
        fsspec options of the file systems of the shards and of a new store; never stored.
    commit_every : float
        Seconds of counting between two commits; at least a minute, and at least 20 times the
        duration of a commit.
    tell : callable
        Prints a line that users should know before the job ends.
    detail : callable
        Prints a line for users who asked for details.
    """

    __repr__ = short_repr

    cluster: Cluster
    progress: StepProgress = field(default_factory=Silent)
    limits: ReadLimits = LIMITS
    storage_options: Mapping[str, object] | None = field(default=None, repr=False)
    commit_every: float = COMMIT_EVERY
    tell: Callable[[Remedy | str], None] = _untold
    detail: Callable[[str], None] = _untold

    def calls(
        self,
        step: str,
        function: Callable[..., Any],
        calls: Sequence[tuple[Any, ...]],
        per_worker: int,
    ) -> list[Any]:
        """Return results of `function(*call)` for each of `calls`; see `run_bounded`.

        At most `per_worker` tasks run on a worker at a time.
        """
        # imported here so that jobs without computation start faster
        from streaming_moments.pipelines.cluster.tasks import run_bounded

        cluster = self.cluster
        in_flight = cluster.workers * per_worker
        return run_bounded(cluster, function, calls, in_flight, self.progress, step)

    def looked_at(
        self, step: str, function: Callable[..., Any], shards: Sequence[object]
    ) -> list[Any]:
        """Return results of `function(shard, storage_options)`, which reads little of each shard.

        A task examines several shards, so that a million shards need fewer tasks.
        """
        per_worker = 2 * self.cluster.threads
        # a few tasks for each thread, so that all threads end at about the same time
        tasks = _TURNS * per_worker * max(1, self.cluster.workers)
        each = max(1, min(_AT_ONCE, len(shards) // tasks))
        starts = range(0, len(shards), each)
        calls = [(function, shards[at : at + each], self.storage_options) for at in starts]
        several = replace(self, progress=_InShards(self.progress, each, len(shards)))
        found = several.calls(step, _look_at, calls, per_worker)
        return [result for results in found for result in results]


@dataclass(frozen=True)
class _InShards:
    """Reports progress as a number of shards, although each task examines several."""

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
