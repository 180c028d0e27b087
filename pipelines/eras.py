"""Eras: counted shards are read again with the vocabulary they were counted with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from streaming_moments.pipelines.gathering import Gathering
from streaming_moments.pipelines.parts import ReadingContext
from streaming_moments.storage.growth import store_of_era
from streaming_moments.storage.shards import Shard
from streaming_moments.storage.store import MomentStore


def as_counted(
    gathering: Gathering, shards: Sequence[Shard]
) -> Iterator[tuple[Gathering, list[Shard]]]:
    """Counted shards by the vocabulary that they were counted with, and how each are gathered.

    Raises
    ------
    StoreError
        A basis is missing or damaged.
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
    client = gathering.cluster.client
    context = client.submit(_with_store, gathering.context, store, pure=False)
    return replace(gathering, store=store, context=context)


def _with_store(context: ReadingContext, store: MomentStore) -> ReadingContext:
    return ReadingContext.of(store, context.limits, context.storage_options)
