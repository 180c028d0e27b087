"""Days: of which days the documents of shards are, so that groups keep them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.gathering import Gathering
from streaming_moments.pipelines.tasks import completed
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.documents import days_of
from streaming_moments.storage.shards import Shard


def with_days(
    gathering: Gathering,
    shards: Sequence[Shard],
    storage_options: Mapping[str, object] | None = None,
) -> tuple[Gathering, tuple[ShardError, ...]]:
    """The gathering with the days of some more shards; a column of dates is read on the cluster.

    Returns
    -------
    Gathering, tuple of ShardError
        Those whose dates cannot be read, where the gathering leaves bad shards out.

    Raises
    ------
    ShardError
        The dates of a shard cannot be read, and bad shards are not to be left out.
    WorkersLost, SchedulerLost
        The cluster cannot do the work.
    """
    store, cluster = gathering.store, gathering.cluster
    source, form = store.dates, store.form
    found: dict[str, DateRange] = {}
    bad: list[ShardError] = []
    if source.column is None:
        for shard in shards:
            days = source.in_url(gathering.names.get(shard.url, shard.url))
            if days is not None:
                found[shard.url] = days
        return replace(gathering, dates={**gathering.dates, **found}), ()
    calls = [(shard, form, source, storage_options) for shard in shards]
    in_flight = cluster.workers * cluster.threads
    for done, (place, days) in enumerate(completed(cluster, days_of, calls, in_flight), 1):
        if isinstance(days, ShardError) and gathering.keep_going:
            bad.append(days)
        elif isinstance(days, BaseException):
            raise days
        else:
            found[shards[place].url] = days
        gathering.progress.advance("reading dates", done, len(calls))
    return replace(gathering, dates={**gathering.dates, **found}), tuple(bad)


def by_days(shards: Sequence[Shard], dates: Mapping[str, DateRange]) -> list[Shard]:
    """Shards without dates first, then the others by their days; else in their order."""
    undated = [shard for shard in shards if shard.url not in dates]
    dated = [shard for shard in shards if shard.url in dates]
    return undated + sorted(dated, key=lambda shard: dates[shard.url])
