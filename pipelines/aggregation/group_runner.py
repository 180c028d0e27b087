"""Read groups of shards on the cluster and add each group up into one uncommitted segment."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain, cycle, islice
from typing import Any

from distributed import Future, KilledWorker

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.aggregation import Gathering, refusal_of
from streaming_moments.pipelines.aggregation.bundles import Bundle
from streaming_moments.pipelines.aggregation.counting import count_bundle
from streaming_moments.pipelines.aggregation.freeze import settle
from streaming_moments.pipelines.aggregation.group_state import Group, WithoutShard
from streaming_moments.pipelines.aggregation.reduction import Reduction
from streaming_moments.pipelines.aggregation.sums import Opening, SumsAstray
from streaming_moments.pipelines.aggregation.worker_deaths import (
    Suspected,
    begin_again,
    make_context_again,
    suspect,
)
from streaming_moments.pipelines.cluster.tasks import FinishedTasks, cancel, outcome_of, task_key
from streaming_moments.storage.segments.segments import Segment
from streaming_moments.storage.shards import Shard

_LOOK = 5.0  # seconds between two checks for new workers


@dataclass(frozen=True)
class Gathered:
    """Result of one group of shards.

    segment : segment with the counts of the shards; None if no shard could be read
    shards : shards of the segment
    bad : errors of the shards that were left out
    seconds : time of the tokeniser, and time of all reading including the tokeniser, each summed
        over the threads
    """

    segment: Segment | None
    shards: tuple[Shard, ...]
    bad: tuple[ShardError, ...]
    seconds: tuple[float, float] = (0.0, 0.0)


def gather_group(gathering: Gathering, waiting: deque[Bundle], before: int, total: int) -> Gathered:
    """Read shards until the group closes, and add them up in a segment.

    Each worker process adds counts to sums of its own, which its threads share. At the end the sums
    are frozen and compared with the receipts of the tasks. If a worker died, the others count its
    shards again. Then the workers add up each row block and write it. If a worker cannot hold all
    row blocks, the group takes several passes. Each pass reads the shards for some of the blocks.

    A dead worker casts suspicion on all shards that it was reading. These shards move to the end of
    `waiting`, to be read alone in a group of their own. If a worker dies again, their bundle is
    halved, until it has one shard. Only a shard that kills its workers when it is alone is bad.

    Raises ShardError or InvalidInput with the names of all unreadable shards of the group. Raises
    SumExceeded if a sum could exceed 2^62. Raises StoreError if the store cannot be written.

    waiting : bundles to read; the group removes its bundles from the front
    before, total : number of shards that earlier groups finished, and number of all shards, both
        to report the progress
    """
    late: list[ShardError] = []
    while True:
        bundles = list(waiting)
        try:
            return _gather_group(gathering, waiting, late, before, total)
        except WithoutShard as spoilt:
            if not gathering.keep_going:
                raise refusal_of([spoilt.error]) from spoilt.error
            late.append(spoilt.error)
            begin_again(waiting, bundles, {spoilt.url}, frozenset())
        except Suspected as suspected:
            begin_again(waiting, bundles, set(), suspected.urls)


def _gather_group(
    gathering: Gathering,
    waiting: deque[Bundle],
    late: Sequence[ShardError],
    before: int,
    total: int,
) -> Gathered:
    store, run = gathering.store, gathering.run
    contents = None if gathering.unique is None else dict(gathering.unique)
    passes = gathering.plan.blocks(store.row_blocks)
    least = gathering.least_limit
    opening = Opening(gathering.owner, next(gathering.numbers), 0, passes[0], least)
    group = Group(gathering, list(late), opening, contents)
    reduction, close = Reduction(store), 0.0
    for number, blocks in enumerate(passes):
        if number:
            group.next_pass(blocks)
        while True:
            with closing(_read(group, waiting)) as reading:
                for _ in reading:
                    done = before + len(group.rows) + len(group.bad)
                    run.progress.advance("reading shards", done, total)
            if group.bad and not gathering.keep_going:
                raise refusal_of(group.bad)
            closed = time.monotonic()
            if not group.rows:
                return Gathered(None, (), tuple(group.bad), group.seconds)
            receipts = {number: receipt for number, (_, receipt) in group.receipts.items()}
            settled = settle(run.cluster.client, group.opening, receipts)
            group.opening = replace(group.opening, epoch=group.opening.epoch + 1)
            group.closed = True
            group.void(settled.void)
            if group.again:
                # some sums are lost: count their shards again before anything is added up
                reduction.fruitless = 0
                continue
            store.foundation.require_bounded(settled.bound)
            if reduction.run(gathering, group.opening, settled.sources):
                break
        close += time.monotonic() - closed
    begun = time.monotonic()
    segment = reduction.seal(run, group.totals(), group.records(), group.dates)
    gathering.pace.close = close + time.monotonic() - begun
    return Gathered(segment, tuple(group.shards.values()), tuple(group.bad), group.seconds)


def _read(group: Group, waiting: deque[Bundle]) -> Generator[None, None, None]:
    """Count shards that must be counted again, and new shards while the group is open.

    Reading continues after a bad shard even if the job will fail because of it, so that the error
    names all bad shards.
    """
    gathering = group.gathering
    cluster, client = gathering.run.cluster, gathering.run.cluster.client
    running: dict[Future[Any], tuple[Bundle, int]] = {}
    finished = FinishedTasks(cluster)
    # Look for workers now and every `_LOOK` seconds, because they may join at any time.
    known, each, looked = cluster.addresses(), gathering.plan.reads_in_flight, time.monotonic()
    slots = max(gathering.slots, len(known) * each)
    # Dask prefers a worker that already has the context. At first that is a single worker, so the
    # first tasks are given to the workers in turn.
    turns: Iterator[str] = islice(cycle(known), slots)
    # a frozen group accepts no new shards
    open_to_new = not group.closed
    try:
        while True:
            bundle = None
            if time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                # ignore a dead scheduler here, because the client itself soon reports it
                with suppress(OSError):
                    there = cluster.addresses()
                    joined = [address for address in there if address not in known]
                    slots, known = max(slots, len(there) * each), there
                    turns = chain(islice(cycle(joined), len(joined) * each), turns)
            if len(running) < slots:
                if group.again:
                    bundle = group.again.popleft()
                elif open_to_new and waiting and group.may_take(waiting[0], running):
                    bundle = waiting.popleft()
                    group.take(bundle)
            if bundle is not None:
                number, place = next(gathering.numbers), next(turns, None)
                lump = gathering.plan.lump_bytes
                future = client.submit(
                    count_bundle,
                    *(bundle, gathering.context, group.opening, number, lump),
                    pure=False,
                    key=task_key("reading shards"),
                    workers=place,
                    allow_other_workers=place is not None,
                )
                running[future] = (bundle, number)
                finished.add(future)
                continue
            if not running:
                return
            future = finished.next()
            bundle, number = running.pop(future)
            outcome = outcome_of(cluster, future)
            if isinstance(outcome, KilledWorker) and outcome.task != future.key:
                make_context_again(group, outcome)
                group.again.append(bundle)
            else:
                _take_in(group, waiting, bundle, number, outcome)
            yield
    finally:
        cancel(cluster, running)


def _take_in(
    group: Group, waiting: deque[Bundle], bundle: Bundle, number: int, outcome: Any
) -> None:
    """Record the outcome of a task: its receipt, or why its shards must be read again."""
    if isinstance(outcome, SumsAstray):
        group.again.append(bundle)
    elif isinstance(outcome, KilledWorker):
        suspect(group, waiting, bundle, outcome)
    elif isinstance(outcome, ShardError):
        # only a task that subtracts fails like this: its shard has changed or no longer exists
        raise WithoutShard(bundle.shards[0].url, outcome)
    elif isinstance(outcome, BaseException):
        raise outcome
    else:
        group.note(number, bundle, outcome)
