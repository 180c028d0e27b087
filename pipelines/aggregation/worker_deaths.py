"""Decide what happens to shards whose worker died while it read them.

A dead worker casts suspicion on all shards that it was reading. They are read again while no other
task runs. If a worker dies again, their bundle is halved, until it has one shard. Only a shard that
kills its workers when it is alone is bad.
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

# The job fails if more workers than this die while they make the shared context. After each death,
# another worker makes the context.
_CONTEXT_DEATHS = 3


class Suspected(Exception):
    """A worker died while it read these shards, although an earlier pass counted them."""

    def __init__(self, urls: frozenset[str]) -> None:
        super().__init__(urls)
        self.urls = urls


def suspect(group: Group, waiting: deque[Bundle], bundle: Bundle, death: KilledWorker) -> None:
    """Return the shards of a dead worker to `waiting`, to be read while no other task runs.

    A bundle that was already read alone is halved. If it has a single shard, this shard is bad.
    """
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
            "every worker that read it died, even when it read nothing else. If it ran out of "
            "memory, give workers more or split the shard. If code that reads it crashed, such as "
            "a tokeniser of your own, mend that code"
        )
        error = KillsWorkers(bundle.shards[0].url, reason)
        if counted:
            raise WithoutShard(error.url, error) from death
        group.bad.append(error)


def begin_again(
    waiting: deque[Bundle], bundles: Sequence[Bundle], leave: set[str], apart: frozenset[str]
) -> None:
    """Return the bundles of a group to `waiting`, without the shards in `leave`.

    Bundles with suspected shards (`apart`) will be read while no other task runs. A bundle that was
    already read in this way is split into halves.
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
    """Compute the shared context again, if it was lost with its workers."""
    context = group.gathering.context
    # Do nothing if the context still exists: another task killed the worker, such as a task with a
    # bad shard.
    if context.status == "error":
        group.context_deaths += 1
        if group.context_deaths > _CONTEXT_DEATHS:
            raise WorkersLost(
                "the workers died repeatedly before they read a shard; see their logs, and run "
                "the job again"
            ) from death
        context.retry()
