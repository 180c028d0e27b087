"""Divide shards that one group must not mix, by days and by vocabulary.

New shards are divided by the days of their documents. Shards that were counted before are also
divided by the vocabulary with which they were counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from streaming_moments.errors import ShardError
from streaming_moments.pipelines.aggregation.aggregation import Gathering
from streaming_moments.pipelines.aggregation.reading import ReadingContext
from streaming_moments.pipelines.cluster.tasks import completed, task_key
from streaming_moments.storage.dates import DateRange
from streaming_moments.storage.documents import days_of
from streaming_moments.storage.files.parts import given_name
from streaming_moments.storage.operations.growth import store_of_era
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store.store import MomentStore


def with_days(
    gathering: Gathering, shards: Sequence[Shard]
) -> tuple[Gathering, tuple[ShardError, ...]]:
    """Find the days of shards, and return the job with these days added to its `dates`.

    If the dates are in a column, tasks on the cluster read them.

    Also returns an error for each shard with unreadable dates. If the job does not leave out bad
    shards, the first such error is raised.
    """
    store, run = gathering.store, gathering.run
    source = store.dates
    found: dict[str, DateRange] = {}
    bad: list[ShardError] = []
    if source.column is None:
        for shard in shards:
            days = source.in_url(given_name(gathering.names.get(shard.url, shard.url)))
            if days is not None:
                found[shard.url] = days
        return replace(gathering, dates={**gathering.dates, **found}), ()
    form = store.form
    calls = [(shard, form, source, run.storage_options) for shard in shards]
    in_flight = run.cluster.workers * run.cluster.threads
    finished = completed(run.cluster, days_of, calls, in_flight, "reading dates")
    for done, (place, days) in enumerate(finished, 1):
        if isinstance(days, ShardError) and gathering.keep_going:
            bad.append(days)
        elif isinstance(days, BaseException):
            raise days
        else:
            found[shards[place].url] = days
        run.progress.advance("reading dates", done, len(calls))
    return replace(gathering, dates={**gathering.dates, **found}), tuple(bad)


def by_days(shards: Sequence[Shard], dates: Mapping[str, DateRange]) -> list[Shard]:
    """Sort shards by their days, with shards without dates first.

    Shards with equal days stay in the given order.
    """
    undated = [shard for shard in shards if shard.url not in dates]
    dated = [shard for shard in shards if shard.url in dates]
    return undated + sorted(dated, key=lambda shard: dates[shard.url])


def as_counted(
    gathering: Gathering, shards: Sequence[Shard]
) -> Iterator[tuple[Gathering, list[Shard]]]:
    """Group counted shards by the vocabulary with which they were counted.

    Yields pairs: a job that counts with the vocabulary of the group, and the shards of the group.
    """
    store = gathering.store
    if not store.commit.lineage.eras:
        yield gathering, list(shards)
        return
    names = {gathering.names.get(shard.url, shard.url): shard for shard in shards}
    for words in dict.fromkeys(part.words for part in store.commit.segments):
        own = [part for part in store.commit.segments if part.words == words]
        urls = store.ledger().of_segments(own).counted(list(names))
        if urls:
            yield _in_era(gathering, words), [names[url] for url in urls]


def _in_era(gathering: Gathering, words: int | None) -> Gathering:
    if words is None:
        return gathering
    store = store_of_era(gathering.store, words)
    client = gathering.run.cluster.client
    context = client.submit(
        _with_store, gathering.context, store, pure=False, key=task_key("opening the store")
    )
    return replace(gathering, store=store, context=context)


def _with_store(context: ReadingContext, store: MomentStore) -> ReadingContext:
    return ReadingContext.of(store, context.limits, context.storage_options)
