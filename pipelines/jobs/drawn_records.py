"""Draw records at random from the shards of a pass, for a second start of a polish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streaming_moments.errors import ShardError
from streaming_moments.models.starts import ROWS
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.run import Run
from streaming_moments.pipelines.counting_options import PilotOptions
from streaming_moments.pipelines.jobs.create import quotas
from streaming_moments.storage.contents import changed, content_of
from streaming_moments.storage.formats import START
from streaming_moments.storage.shards import Shard


def drawn_records(
    marked: Sequence[tuple[Shard, str]],
    reading: Any,
    joined: Callable[[Sequence[Any]], Any],
    run: Run,
    in_flight: int,
    keep_going: bool,
) -> Any:
    """Return some 8,000 records of at most 64 shards as a batch; None without records.

    The choice of records depends only on the shards and their order. `reading` is the future of a
    `ReadingContext`, and `joined` joins several batches into one. With `keep_going`, unreadable
    shards are left out; otherwise they raise ShardError.
    """
    mark_of, options = dict(marked), PilotOptions(pilot_documents=2 * ROWS)
    calls = [
        (shard, mark_of[shard], quota, place, reading, joined, keep_going)
        for place, (shard, quota) in enumerate(quotas([*mark_of], options))
    ]
    parts = run.calls("drawing records", draw_of_shard, calls, in_flight)
    held = [part for part in parts if part is not None]
    return joined(held) if held else None


def draw_of_shard(
    shard: Shard,
    mark: str,
    number: int,
    seed: int,
    reading: ReadingContext,
    joined: Callable[[Sequence[Any]], Any],
    keep_going: bool,
) -> Any:
    """Return up to `number` random records of a shard.

    The choice does not depend on where batches are cut.
    """
    rng, drawn, keys = np.random.default_rng(seed), None, np.empty(0)
    try:
        content = content_of(shard, reading.storage_options)
        if content.mark != mark:
            raise changed(shard.url)
        for read in reading.reader.read(shard, START, content):
            keys = np.concatenate([keys, rng.random(read.batch.held)])
            order = np.argsort(keys, kind="stable")[:number]
            drawn = joined([read.batch] if drawn is None else [drawn, read.batch]).take(order)
            keys = keys[order]
    except ShardError:
        if not keep_going:
            raise
        return None
    return drawn
