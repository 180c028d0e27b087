"""Worker deaths: what becomes of the shards that were read where a worker died.

A worker that dies takes blame for all that it was doing: these shards are read alone, halved until
it is one, and only one that kills its workers there too is a bad one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from distributed import KilledWorker

from streaming_moments.errors import KillsWorkers
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.aggregation.group_state import Group, WithoutShard
from streaming_moments.pipelines.cluster.worker_loss import WorkersLost

_CONTEXT_DEATHS = 3  # of workers that were making what all tasks need, each time again


class Suspected(Exception):
    """Shards that kill their workers, though they were counted once."""

    def __init__(self, urls: frozenset[str]) -> None:
        super().__init__(urls)
        self.urls = urls


def suspect(group: Group, waiting: deque[Bundle], bundle: Bundle, death: KilledWorker) -> None:
    """Have shards whose readers died read alone; one that was alone is a bad one."""
    if bundle.taken is not None:
        raise WithoutShard(bundle.taken.url, bundle.taken.error) from death
    counted = frozenset(shard.url for shard in bundle.shards if shard.url in group.rows)
    if counted and not (bundle.alone and len(bundle.shards) == 1):
        raise Suspected(counted) from death
    if not bundle.alone:
        waiting.append(replace(bundle, alone=True))
    elif len(bundle.shards) > 1:
        waiting.extend(bundle.halves())
    else:
        reason = (
            "killed every worker that read it, though nothing else ran there; give workers more "
            "memory, or cut it into smaller shards"
        )
        error = KillsWorkers(bundle.shards[0].url, reason)
        if counted:
            raise WithoutShard(error.url, error) from death
        group.bad.append(error)


def begin_again(
    waiting: deque[Bundle], bundles: Sequence[Bundle], leave: set[str], apart: frozenset[str]
) -> None:
    """Put back what a group has taken, but for shards left out; those apart are read alone.

    Of those that were alone, halves.
    """
    known = {shard.url for bundle in waiting if bundle.alone for shard in bundle.shards}
    alone: list[Bundle] = []
    waiting.clear()
    for bundle in bundles:
        kept = bundle.without(leave)
        shards = {shard.url for shard in kept.shards}
        if not shards:
            continue
        if shards & apart and kept.alone:
            alone.extend(kept.halves())
        elif shards & (apart | known) and not kept.alone:
            alone.append(replace(kept, alone=True))
        else:
            waiting.append(kept)
    waiting.extend(alone)


def make_context_again(group: Group, death: KilledWorker) -> None:
    """Have what all tasks need made again, of whichever part of it workers died."""
    context = group.gathering.context
    # a worker may have died of what it read beside it, once the other copies were gone
    if context.status == "error":
        group.context_deaths += 1
        if group.context_deaths > _CONTEXT_DEATHS:
            raise WorkersLost(
                "the workers died time and again before they read a shard; see their logs, and "
                "run it again"
            ) from death
        context.retry()
